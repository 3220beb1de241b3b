"""Calls through our server in one process, with and without the audit log: rates, and the CPU that a record takes.

`echo` shows what a record costs; `crab` is a real tool, a read of the proxy's rules in a crabd of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

from bench.machine import LOAD_CORE, SERVER_CORE
from bench.servers.dari_tools import registry_of
from dari.core.audit.log import AuditLog
from dari.core.audit.spool import AuditSpool
from dari.core.audit.writer import RecordWriter
from dari.core.scopes import MCP_GRANT
from dari.mcp.reply_channel import ReplyChannel
from dari.mcp.server import Info, Server

STOP_S = 0.5
TURN_S = 0.5
CALLS = {
    "echo": {"name": "echo", "arguments": {"text": "hello there"}},
    "crab": {"name": "crab_rules_list", "arguments": {"kind": "block"}},
}


class CountingWire(ReplyChannel):
    """Keeps so many calls in flight until the time is over."""

    def __init__(self, server: Server) -> None:
        self.grant = MCP_GRANT
        self.session = server.open_session(self)
        self._server = server
        self.calls = 0
        self._until_s = 0.0
        self._running = 0
        self._done = asyncio.Event()
        self._params = b""
        self._sent = 0

    def reply(self, message: bytes, code: int = 0) -> None:
        self.calls += 1
        self._running -= 1
        assert not code and b'"isError":true' not in message, message
        if time.perf_counter() < self._until_s:
            asyncio.get_running_loop().call_soon(self._send)
        elif not self._running:
            self._done.set()

    def emit(self, message: bytes) -> None:
        pass

    def initialize(self) -> None:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._running += 1
        self._server.receive(_request("initialize", params), self)

    async def load(self, params: dict[str, Any], in_flight: int, seconds: float) -> None:
        self.calls, self._until_s = 0, time.perf_counter() + seconds
        self._params = json.dumps(params).encode()
        self._done.clear()
        for _ in range(in_flight):
            self._send()
        await self._done.wait()

    def _send(self) -> None:
        self._running += 1
        self._sent += 1
        body = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%b}' % (self._sent, self._params)
        self._server.receive(body, self)


def _request(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 0, "method": method, "params": params}).encode()


@asynccontextmanager
async def _server(tool: str, home: Path) -> AsyncIterator[Server]:
    if tool == "echo":
        yield Server(registry_of(1), Info("bench", "1"))
        return
    from dari.app import build_crab
    from dari.proxy.daemon import CrabPaths, crabd_client
    from dari.settings import ServeSettings

    place = CrabPaths(home / "run")
    async with crabd_client(place, "cli") as crabd:
        await crabd.call("system.ping")
        try:
            yield build_crab(crabd, ServeSettings())
        finally:
            await crabd.call("system.shutdown")
    await asyncio.sleep(STOP_S)  # crabd still writes its state


@dataclass(frozen=True, slots=True)
class Turn:
    """What the calls of one turn took, per call."""

    calls_per_s: float
    loop_us: float
    all_us: float


async def _turn(wire: CountingWire, call: dict[str, Any], in_flight: int, log: RecordWriter) -> Turn:
    """Half a second of calls, after one that does not count: its records are written while the others are made, as
    those of the last half second are after it. So a turn bears the work of as many records as it makes."""
    await wire.load(call, in_flight, TURN_S)
    began_s, thread_s, process_s = time.perf_counter(), time.thread_time(), time.process_time()
    await wire.load(call, in_flight, TURN_S)
    took_s, thread_s, process_s = (
        time.perf_counter() - began_s,
        time.thread_time() - thread_s,
        time.process_time() - process_s,
    )
    await asyncio.to_thread(log.flush)
    return Turn(wire.calls / took_s, thread_s / wire.calls * 1e6, process_s / wire.calls * 1e6)


async def _measured(tool: str, kind: str, in_flight: int, pairs: int, home: Path) -> dict[str, Any]:
    """Recorded and unrecorded calls in turn, in one process: what else the machine does meets both. Each pair of
    turns makes one ratio; the median of them counts, so that a disturbed turn does not."""
    os.sched_setaffinity(0, {SERVER_CORE})  # crabd inherits it
    async with _server(tool, home) as server:
        os.sched_setaffinity(0, {LOAD_CORE})  # the event loop, and the log's thread, which begins later
        log = AuditLog(home / "audit") if kind == "log" else AuditSpool(home / "spool")
        wire = CountingWire(server)
        wire.initialize()
        plain: list[Turn] = []
        recorded: list[Turn] = []
        await wire.load(CALLS[tool], in_flight, TURN_S)
        for turn in range(2 * pairs):
            is_recorded = turn % 4 in (0, 3)  # neither is always the second
            server.registry.call_log = (lambda: log) if is_recorded else None
            (recorded if is_recorded else plain).append(await _turn(wire, CALLS[tool], in_flight, log))
        log.close()
    ratios = sorted(one.calls_per_s / other.calls_per_s for one, other in zip(recorded, plain, strict=True))
    return {
        "plain": _medians(plain),
        "recorded": _medians(recorded),
        "ratio": statistics.median(ratios),
        "interval": _interval(ratios),
        "loop_us": statistics.median(one.loop_us - other.loop_us for one, other in zip(recorded, plain, strict=True)),
        "all_us": statistics.median(one.all_us - other.all_us for one, other in zip(recorded, plain, strict=True)),
    }


def _medians(turns: list[Turn]) -> dict[str, float]:
    return {
        name: statistics.median(getattr(one, name) for one in turns) for name in ("calls_per_s", "loop_us", "all_us")
    }


def _interval(ordered: list[float]) -> tuple[float, float]:
    """Where the median lies with 95 % confidence, by the binomial distribution: nothing is assumed of the noise."""
    count = len(ordered)
    outside, beyond = 0, 0.5**count
    while outside < count // 2 and beyond <= 0.025:
        outside += 1
        beyond += comb(count, outside) * 0.5**count
    outside = max(0, outside - 1)
    return ordered[outside], ordered[-1 - outside]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=CALLS)
    parser.add_argument("log", choices=("log", "spool"))
    parser.add_argument("--in-flight", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=4, help="of turns, one recorded and one not, of a second each")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dari-audit-", ignore_cleanup_errors=True) as home:
        os.environ["DARI_HOME"] = home
        print(json.dumps(asyncio.run(_measured(given.tool, given.log, given.in_flight, given.pairs, Path(home)))))


if __name__ == "__main__":
    main()
