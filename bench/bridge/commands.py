"""The command lines that a person types, each with its daemon, timed from exec to exit."""

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.bridge.contenders import BIN, MCPDO, MCPORTER, OURS, Contender
from bench.bridge.household import environment
from bench.bridge.upstreams import NODE, everything, program, write_profiles
from bench.errors import BenchError
from bench.processes import Scratch

TIMEOUT_S = 60.0
SERVER = "everything"
HTTP_SERVER = "endpoint"

Words = list[str]


@dataclass(frozen=True, slots=True)
class Run:
    wall_ms: float
    cpu_ms: float
    """Of the command, not of the daemon it asks."""


@dataclass(frozen=True, slots=True)
class Commands:
    """What one contender is told; all of it in a home of its own."""

    contender: Contender
    home: Path
    env: dict[str, str]
    start: Words
    """The daemon, and where there is no other way a session to the server on stdio."""
    call: Words
    listing: Words
    stop: Words
    http_call: Words = field(default_factory=list)
    """Empty: it makes no call without a connection that stays."""

    def run(self, words: Words, expected: bytes = b"") -> Run:
        """Start, wait, and check that it said what was expected of it."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        process = subprocess.Popen(
            words,
            cwd=self.home,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            said, complained = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise BenchError(f"{self.contender.title} did not end within {TIMEOUT_S:g} s: {' '.join(words)}") from None
        wall_ms = (time.perf_counter() - started) * 1000
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode or expected not in said:
            raise BenchError(
                f"{self.contender.title} exited with {process.returncode}: {' '.join(words)}\n"
                f"it said {said[-400:]!r} and complained {complained[-1200:]!r}"
            )
        cpu_s = after.ru_utime - used.ru_utime + after.ru_stime - used.ru_stime
        return Run(wall_ms, cpu_s * 1000)

    def time_call(self) -> Run:
        return self.run(self.call, b"Echo: hi")

    def time_list(self) -> Run:
        return self.run(self.listing, b"get-sum")

    def time_http_call(self, *more: str) -> Run:
        return self.run([*self.http_call, *more], b"Echo: hi")


def commands_of(contender: Contender, scratch: Scratch, url: str = "http://127.0.0.1:9/mcp") -> Commands:
    """`url`: a server with Streamable HTTP, for the calls that find no daemon."""
    home = scratch.path / contender.name
    return _MAKERS[contender.name](contender, home, url)


def _dari(contender: Contender, home: Path, url: str) -> Commands:
    profiles = write_profiles(home / "mcp.json", {SERVER: program(everything()), HTTP_SERVER: {"url": url}})
    env = environment(home, NODE.parent, DARI_HOME=str(home / "dari"), CREWX_MCP_JSON=str(profiles))
    remote = [str(BIN / "crewx"), "mcp", "remote"]
    call = ["call-tool", f"{SERVER}/echo", "--message", "hi", "--raw"]
    return Commands(
        *(contender, home, env),
        start=[*remote, "daemon", "start"],
        call=[*remote, *call],
        listing=[*remote, "list-tools", "--server", SERVER, "--json"],
        http_call=[*remote, "call-tool", f"{HTTP_SERVER}/echo", "--message", "hi", "--raw"],
        stop=[*remote, "daemon", "stop"],
    )


def _mcporter(contender: Contender, home: Path, url: str) -> Commands:
    servers = {SERVER: program(everything(), lifecycle="keep-alive"), HTTP_SERVER: {"baseUrl": url}}
    profiles = write_profiles(home / "mcporter.json", servers, imports=[])
    words = [str(NODE), str(contender.program), "--config", str(profiles)]
    return Commands(
        *(contender, home, environment(home, NODE.parent)),
        start=[*words, "daemon", "start"],
        call=[*words, "call", f"{SERVER}.echo", "message=hi", "--output", "raw"],
        listing=[*words, "list", SERVER, "--json"],
        http_call=[*words, "call", f"{HTTP_SERVER}.echo", "message=hi", "--output", "raw"],
        stop=[*words, "daemon", "stop"],
    )


def _mcpdo(contender: Contender, home: Path, url: str) -> Commands:
    env = environment(home, NODE.parent, MCP_INSPECTOR_SECRET_STORE="memory")
    words = [str(NODE), str(contender.program)]
    named = [*words, "--format", "json", "--connection"]
    return Commands(
        *(contender, home, env),
        start=[*named, SERVER, "connect", "--", *everything()],
        call=[*named, SERVER, "tools/call", "echo", "message:=hi"],
        listing=[*named, SERVER, "tools/list"],
        stop=[*words, "daemon", "stop"],
    )


_MAKERS: dict[str, Callable[[Contender, Path, str], Commands]] = {
    OURS.name: _dari,
    MCPORTER.name: _mcporter,
    MCPDO.name: _mcpdo,
}
