"""`dari proxy mcp start | stop | status`: the MCP server of the proxy over HTTP, in the background."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from dari.cli.kit.console import Output
from dari.cli.kit.table import format_pairs
from dari.cli.ports import add_allow_uid, warn_port_moved
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.options import Commands, group, leaf
from dari.daemon.ancestry import read_process
from dari.daemon.launch import DetachedProcess
from dari.daemon.lock import FileLock
from dari.errors import DariError, TimedOut, Unavailable
from dari.paths import log_hint, private_dir, write_private
from dari.proxy.daemon import CrabPaths
from dari.settings import ServeSettings
from dari.struct_types import ready

_START_TIMEOUT_S = 15.0
_END_TIMEOUT_S = 8.0
_POLL_S = 0.02
_ANNOUNCED = re.compile(r"crab-mcp listening on (\S+)\n(?:.*\n)*?crab-mcp token file (.+)\n")


class McpProcessRecord(msgspec.Struct, frozen=True):
    """Written when it serves."""

    pid: int
    birth: str
    url: str
    token_path: str
    log_path: str


class McpProcess:
    def __init__(self, place: CrabPaths) -> None:
        folder = private_dir(place.run_dir)
        self._path = folder / "crab-mcp.json"
        self._lock = FileLock(folder / "crab-mcp.lock")
        self._log_path = place.log.with_name("crab-mcp.log")

    def running(self) -> McpProcessRecord | None:
        """The server that still runs, if any."""
        try:
            record = msgspec.json.decode(self._path.read_bytes(), type=ready(McpProcessRecord))
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return record if birth_of(record.pid) == record.birth else None

    async def start(self, command: Sequence[str]) -> tuple[McpProcessRecord, bool]:
        """The running server, and whether this call started it."""
        await self._take_turn()
        try:
            if (running := self.running()) is not None:
                return running, False
            return await self._start(command), True
        finally:
            self._lock.release()

    async def stop(self) -> McpProcessRecord | None:
        """End it and wait until it is gone; None when it did not run."""
        await self._take_turn()
        try:
            record = self.running()
            if record is not None:
                await _end(record)
            self._path.unlink(missing_ok=True)
            return record
        finally:
            self._lock.release()

    async def _take_turn(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._lock.try_acquire():
            if time.monotonic() > deadline:
                raise TimedOut("another command is starting or stopping the MCP server", f"see {self._lock.path}")
            await asyncio.sleep(_POLL_S)

    async def _start(self, command: Sequence[str]) -> McpProcessRecord:
        try:
            log_size = self._log_path.stat().st_size
        except FileNotFoundError:
            log_size = 0
        server = DetachedProcess(command, self._log_path)
        try:
            url, token_path = await self._announced(server, log_size)
            record = McpProcessRecord(server.pid, birth_of(server.pid) or "", url, token_path, str(self._log_path))
            write_private(self._path, msgspec.json.encode(record))
        except BaseException:
            server.end()
            raise
        server.reap()
        return record

    async def _announced(self, server: DetachedProcess, log_size: int) -> tuple[str, str]:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            if (found := _ANNOUNCED.search(self._said(log_size))) is not None:
                return found[1], found[2]
            failure: type[DariError] | None = None
            if (status := server.exit_status()) is not None:
                failure, said = Unavailable, f"crab-mcp ended at start with {status}"
            elif time.monotonic() > deadline:
                failure, said = TimedOut, "crab-mcp does not say that it listens"
            if failure is not None:
                raise failure(said, f"{self._log_path} ends with:\n{server.log_tail() or '(nothing)'}")
            await asyncio.sleep(_POLL_S)

    def _said(self, log_size: int) -> str:
        with self._log_path.open("rb") as log:
            if os.fstat(log.fileno()).st_size >= log_size:  # else a full log was moved away, and this one is new
                log.seek(log_size)
            return log.read().decode("utf-8", "replace")


async def _end(record: McpProcessRecord) -> None:
    deadline = time.monotonic() + _END_TIMEOUT_S
    number: signal.Signals | None = signal.SIGTERM
    while birth_of(record.pid) == record.birth:
        if time.monotonic() > deadline:
            raise TimedOut(f"crab-mcp (pid {record.pid}) is still there", log_hint(Path(record.log_path)))
        if number is not None:
            os.kill(record.pid, number)
            number = None
        await asyncio.sleep(_POLL_S)


def birth_of(pid: int) -> str | None:
    """When the process was born, as text to compare; None when it is gone."""
    process = read_process(pid)
    return None if process is None or process.is_ended else process.started


_MCP = """
dari proxy mcp start                 http://127.0.0.1:3847/mcp, or the next free port up to 3857
dari proxy mcp start --port 4000     this port or none
dari proxy mcp                       is it on? endpoint and token file
dari proxy mcp stop
claude mcp add --transport http crab "$(dari proxy mcp --json | jq -r .url)" \\
    --header "Authorization: Bearer $(cat "$(dari proxy mcp --json | jq -r .token_path)")"
"""


def add_mcp(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    words = group(commands, "mcp", help, _MCP)
    parser = leaf(words, "start", _start, "serve agents over HTTP until it is stopped", _MCP)
    parser.add_argument("--port", type=int, help="default: 3847, or the next free one up to 3857")
    add_allow_uid(parser)
    leaf(words, "stop", _stop, "end the server that start started", _MCP, starts=False)
    leaf(words, "status", _status, "whether it serves, and where", _MCP, starts=False)


async def _start(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    await crab.start()
    server = McpProcess(crab.place)
    record, is_new = await server.start(_command(arguments, crab))
    _tell(out, record, "The MCP server listens" if is_new else "The MCP server runs already")
    settings = ServeSettings(http_port=arguments.port)
    warn_port_moved("crab", settings, record.url, record.token_path, renew="dari proxy stop --daemon, then start again")
    if not is_new and arguments.port is not None and f":{arguments.port}/" not in record.url:
        out.warn(f"it keeps its port; to move it: dari proxy mcp stop && dari proxy mcp start --port {arguments.port}")
    return 0


async def _stop(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    ended = await McpProcess(crab.place).stop()
    said = "The MCP server is stopped" if ended else "Nothing to stop: the MCP server does not run"
    out.show({"status": "stopped", "was_running": ended is not None}, [said])
    return 0


async def _status(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    record = McpProcess(crab.place).running()
    if record is None:
        out.show({"status": "stopped"}, ["stopped (dari proxy mcp start)"])
    else:
        _tell(out, record, "The MCP server runs")
    return 0


def _tell(out: Output, record: McpProcessRecord, said: str) -> None:
    payload: dict[str, Any] = {"status": "running", "url": record.url, "token_path": record.token_path}
    lines = format_pairs({"  endpoint": record.url, "  token file": record.token_path, "  pid": record.pid})
    out.show({**payload, "pid": record.pid, "log_path": record.log_path}, [said, *lines])


def _command(arguments: argparse.Namespace, crab: Crab) -> list[str]:
    place = crab.place
    command = [sys.executable, "-m", "dari.cli.crab_mcp", "--transport", "http"]
    if arguments.port is not None:
        command += ["--http-port", str(arguments.port)]
    command += place.arguments()
    for uid in arguments.allow_uid:
        command += ["--allow-uid", uid]
    return command
