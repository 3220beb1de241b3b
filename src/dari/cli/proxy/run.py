"""`dari proxy run -- CMD`: set up what one command needs, list its requests, and clean up afterwards.

Which requests are its own: every process below the command inherits a variable of ours, so a live one can be asked. A
process that is gone counts as the command's unless it was there before. Without /proc, and for a connection whose
process is not known, the time decides.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dari.cli.kit.console import Output, encode_json, paint_err
from dari.cli.kit.table import format_size
from dari.cli.proxy import flows
from dari.cli.proxy.child import (
    NOT_EXECUTABLE,
    NOT_FOUND,
    ProxyAddress,
    Signals,
    joined_environment,
    run_child,
    upstream_of,
)
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.flows import Flow
from dari.cli.proxy.lease import Lease, StartedByRun
from dari.cli.proxy.options import Commands, for_shell, leaf
from dari.errors import Conflict, DariError, Failed, InvalidInput, NotFound
from dari.os_errors import describe_os_error, suggest_next_step
from dari.proxy.errors import ProxyAlreadyRunning

RUN_ID_VARIABLE = "DARI_PROXY_RUN"


class Attribution:
    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        """The value of `VARIABLE` in the command's environment."""
        self._before = _pids()
        self._verdicts: dict[int, bool] = {}

    def own(self, flows: Iterable[Flow]) -> list[Flow]:
        return [flow for flow in flows if self._is_own(flow.get("pid"))]

    def _is_own(self, pid: int | None) -> bool:
        if pid is None:
            return True
        if pid not in self._verdicts:
            self._verdicts[pid] = pid not in self._before and self._is_marked(pid)
        return self._verdicts[pid]

    def _is_marked(self, pid: int) -> bool:
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return True  # gone, or not ours to read: a process of sudo
        # A process that ends has no environment any more.
        return not environment or f"{RUN_ID_VARIABLE}={self.mark}".encode() in environment.split(b"\0")


def _pids() -> frozenset[int]:
    try:
        return frozenset(int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        return frozenset()


_NOT_HTTP = frozenset({"ssh", "scp", "sftp", "ping", "dig", "nslookup", "host", "psql", "mysql", "redis-cli", "nc"})
_DAEMONS = {
    "docker": "the Docker daemon",
    "podman": "the Podman service",
    "kubectl": "the cluster",
    "bazel": "a server",
}
_GO_LOCALHOST = (
    "a Go program never uses a proxy for localhost and 127.0.0.1: call the server by this machine's name or LAN address"
)


def likely_reasons(words: Sequence[str], code: int, others: int) -> Iterator[str]:
    """`others`: requests of other processes during the run."""
    name = os.path.basename(words[0])
    if code != 0:
        yield f"the command ended with {code}, maybe before it asked for anything"
    if name in _NOT_HTTP:
        yield f"{name} does not speak HTTP, and only HTTP goes through the proxy"
    if name in _DAEMONS:
        yield f"{_DAEMONS[name]} makes the requests, in an environment of its own"
    if others:
        yield f"{others} requests of other processes went by: a server that ran before may do the work for the command"
    if name == "go" or is_go_program(words[0]):
        yield _GO_LOCALHOST
    yield "a program that ignores the variables HTTPS_PROXY and https_proxy connects directly; give it its proxy option"
    yield "a program may have had the answer in a cache"
    if name != "go" and not is_go_program(words[0]):
        yield _GO_LOCALHOST


def is_go_program(path: str) -> bool:
    """By the build information that the Go linker writes near the start of a program."""
    found = shutil.which(path)
    if found is None:
        return False
    try:
        with open(found, "rb") as file:
            return file.read(4) == b"\x7fELF" and b"\xff Go buildinf:" in file.read(8 * 1024 * 1024)
    except OSError:
        return False


_RUN = """
dari proxy run -- curl -s https://example.com/
dari proxy run -- npm test                                what does the test suite call?
dari proxy run --host api.example.com -- ./app            decrypt this host only
dari proxy run --no-decrypt -- git fetch                  hosts, sizes and times only
dari proxy run --har out.har --json out.json -- python job.py
"""
_EVERYTHING, _PLAIN_HTTP = "*", "/"
_SETTLE_S = 2.0
_POLL_S = 0.02
_MAX_FLOWS = 10_000
_PORTS_TRIED = 20


def add_run(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    parser = leaf(commands, "run", _run, help, _RUN, has_json=False)
    parser.add_argument("--no-decrypt", action="store_true", help="let HTTPS pass unread")
    parser.add_argument(
        "--host", metavar="HOST", action="append", default=[], help="decrypt this host only; repeatable (default: all)"
    )
    parser.add_argument("--json", dest="json_file", metavar="FILE", help="write the requests there; - is stdout")
    parser.add_argument("--har", metavar="FILE", help="write the requests there as HAR 1.2, secrets hidden")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not list the requests on stderr")
    parser.add_argument("words", metavar="-- CMD", nargs=argparse.REMAINDER, help="the command and its arguments")


async def _run(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words:
        raise InvalidInput(
            "no command to run", "dari proxy run -- CMD, such as: dari proxy run -- curl https://example.com/"
        )
    if arguments.no_decrypt and arguments.host:
        raise InvalidInput("--no-decrypt and --host exclude each other", "give one of them")
    if shutil.which(words[0]) is None:
        exists = os.path.exists(words[0])
        out.note(f"dari proxy run: {words[0]}: {'cannot be executed' if exists else 'no such command'}")
        return NOT_EXECUTABLE if exists else NOT_FOUND
    with Signals() as signals:
        try:
            return await _through_proxy(arguments, words, crab, out, signals)
        except asyncio.CancelledError:
            if signals.ended_by is None:
                raise
            return 128 + signals.ended_by


async def _through_proxy(
    arguments: argparse.Namespace, words: list[str], crab: Crab, out: Output, signals: Signals
) -> int:
    code: int | None = None
    try:
        async with Lease(crab.place) as lease, _running(crab, lease, out):
            await _keep_upstream(crab, lease, out)
            if not arguments.no_decrypt:
                await _ensure_ca(crab, out)
            async with _allowing(crab, lease, _matchers(arguments)):
                given = await crab.call("proxy.environment")
                if signals.ended_by is not None:
                    return 128 + signals.ended_by
                own = Attribution()
                started_ms = int(time.time() * 1000)
                with tempfile.TemporaryDirectory(prefix="dari-run-") as folder:
                    environment = _environment(given, Path(folder)) | {RUN_ID_VARIABLE: own.mark}
                    code = await run_child(words, environment, signals)
                seen = await _settled(crab, started_ms)
                found = own.own(seen)
                await _report(arguments, crab, out, found, started_ms)
                if not found and not arguments.quiet:
                    reasons = likely_reasons(words, code, len(seen))
                    out.note("Likely reasons:", *(f"  - {reason}" for reason in reasons))
    except DariError as error:
        if code is None:
            raise
        out.error(error)  # the command has done its work: its exit code stands
    return code


def _environment(given: dict[str, Any], folder: Path) -> dict[str, str]:
    parts = urlsplit(given["proxy_url"])
    address = ProxyAddress(parts.hostname or "127.0.0.1", parts.port or 8888)
    try:
        return joined_environment(given["variables"], given["ca_cert_path"], address, os.environ, folder)
    except OSError as error:
        raise Failed(
            f"cannot prepare the command's environment: {error.filename}: {error.strerror}", "free some space"
        ) from error


async def _keep_upstream(crab: Crab, lease: Lease, out: Output) -> None:
    """A proxy that the caller's environment names is how this machine reaches the network: go through it, too."""
    found = upstream_of(os.environ)
    if found is None:
        return
    async with lease.starting():
        now = (await crab.call("engine.config_dump"))["upstream"]
        ours = (await crab.call("proxy.info"))["address"]
        parts = urlsplit(found.url)
        if now["proxy"] is not None or f"{parts.hostname}:{parts.port}" == ours:
            return
        lease.note(upstream=True)
        await crab.call("engine.set_upstream", proxy=found.url, bypass=list(found.bypass))
    shown = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    out.note(f"dari proxy run: requests go on through {shown} ({found.variable})")


@asynccontextmanager
async def _running(crab: Crab, lease: Lease, out: Output) -> AsyncIterator[None]:
    """crabd, the proxy and the capture; what any run had to start is ended by the last of them."""
    try:
        async with lease.starting():
            await crab.start()
            if crab.started_pid is not None:
                lease.note(crabd=True)
                crab.started_pid = None
            if (await crab.call("proxy.status"))["status"] == "stopped":
                await _start(crab, lease, out)
            if (await crab.call("capture.status"))["status"] == "stopped":
                await crab.call("capture.start")
                lease.note(capture=True)
        yield
    finally:
        borrowed = lease.last_one()
        if borrowed is not None:
            await _give_back(crab, borrowed)


async def _start(crab: Crab, lease: Lease, out: Output) -> None:
    lease.note(proxy=True)
    try:
        await crab.call("proxy.start")
    except ProxyAlreadyRunning:
        lease.note(proxy=False)
    except Failed as taken:
        # By a notebook server, say. The command gets the address, so any other will do.
        listen = (await crab.call("proxy.info"))["listen_addr"]
        host, _, port = listen.rpartition(":")
        lease.note(listen_addr=listen)
        if not await _start_nearby(crab, host, int(port)):
            raise taken
        address = (await crab.call("proxy.info"))["address"]
        out.note(f"dari proxy run: {listen} is taken; the proxy listens on {address} for this run")


async def _start_nearby(crab: Crab, host: str, port: int) -> bool:
    """On the next port that is free, or on any."""
    nearby = range(port + 1, min(port + 1 + _PORTS_TRIED, 65536)) if port else ()
    for candidate in (*nearby, 0):
        await crab.call("engine.set_listen_addr", listen_addr=f"{host}:{candidate}")
        try:
            await crab.call("proxy.start")
        except Failed:
            continue
        return True
    return False


async def _give_back(crab: Crab, borrowed: StartedByRun) -> None:
    for rule_id in borrowed.rule_ids:  # of a run that was killed
        await _remove_rule(crab, rule_id)
    if borrowed.capture:
        await crab.call("capture.stop")
    if borrowed.proxy:
        await crab.call("proxy.stop")
    if borrowed.upstream:
        await crab.call("engine.set_upstream", proxy="", bypass=[])
    if borrowed.listen_addr is not None:
        await crab.call("engine.set_listen_addr", listen_addr=borrowed.listen_addr)
    # Somebody may have ended crabd during the run, and the clean-up started it again.
    if borrowed.crabd or crab.started_pid is not None:
        await crab.shut_down()


async def _ensure_ca(crab: Crab, out: Output) -> None:
    status = await crab.call("ca.status")
    out.note(*(f"dari proxy run: {for_shell(warning)}" for warning in status["warnings"]))
    if not status["loaded"]:
        try:
            made = await crab.call("ca.generate")
        except Conflict:
            return  # another one has just made it
        out.note(f"dari proxy run: made a CA to decrypt with: {made['cert_path']}")


def _matchers(arguments: argparse.Namespace) -> list[str]:
    """A list that names hosts only would hide the plain requests to all others."""
    if arguments.no_decrypt:
        return [_PLAIN_HTTP]
    return [*arguments.host, _PLAIN_HTTP] if arguments.host else [_EVERYTHING]


@asynccontextmanager
async def _allowing(crab: Crab, lease: Lease, matchers: list[str]) -> AsyncIterator[None]:
    ids: list[str] = []
    try:
        for matcher in matchers:
            rule = await crab.call("rules.add", rule={"kind": "allow", "matcher": matcher})
            ids.append(rule["id"])
            lease.add_rule(rule["id"])
        yield
    finally:
        for rule_id in ids:
            await _remove_rule(crab, rule_id)
            lease.drop_rule(rule_id)


async def _remove_rule(crab: Crab, rule_id: str) -> None:
    try:
        await crab.call("rules.remove", id=rule_id)
    except NotFound:
        pass  # somebody cleared the rules meanwhile


async def _settled(crab: Crab, started_ms: int) -> list[flows.Flow]:
    """What was requested since then, once all of it has ended or some time has passed."""
    deadline = time.monotonic() + _SETTLE_S
    while True:
        found = await flows.newest(crab, {"since_unix_ms": started_ms}, _MAX_FLOWS)
        if all(flow["state"] == "done" for flow in found) or time.monotonic() > deadline:
            return found
        await asyncio.sleep(_POLL_S)


async def _report(
    arguments: argparse.Namespace, crab: Crab, out: Output, found: list[flows.Flow], started_ms: int
) -> None:
    if not arguments.quiet:
        width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
        shown = flows.lines(found, paint=partial(paint_err, console=out.console), width=width, has_time=False)
        received = sum(flow.get("response_bytes", 0) for flow in found)
        count = f"{len(found)} request{'s' if len(found) != 1 else ''}, {format_size(received)} received"
        out.note("", count if found else "No requests", *shown)
    if arguments.json_file == "-":
        out.json({"flows": found, "count": len(found)})
    elif arguments.json_file is not None:
        _write(Path(arguments.json_file), encode_json({"flows": found, "count": len(found)}) + "\n")
    if arguments.har is not None:
        from dari.cli.proxy.har import export

        ids = {flow["id"] for flow in found}
        await export(crab, Path(arguments.har), {"since_unix_ms": started_ms}, ids=ids, overwrite=True)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise Failed(
            f"cannot write {path}: {describe_os_error(error)}", suggest_next_step(error, "name another file")
        ) from error
