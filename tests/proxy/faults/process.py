"""The test's side of `engine_process`: start it, ask it, end it."""

from __future__ import annotations

import asyncio
import json
import resource
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.proxy.faults.stage import trusting
from tests.support.proxy_engine import Wire
from tests.support.proxy_lab import OURS, THEIRS
from tests.support.wire import ROOT

MIB = 1 << 20
_START_S = 30.0


@dataclass
class Stats:
    rss_kib: int
    peak_kib: int
    fds: int
    connections: int
    pooled: int
    tasks: int
    began: int
    finished: int
    frames: int
    outcomes: dict[str, int]


class EngineProcess:
    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self._lock = asyncio.Lock()
        self.port = port
        self.trusts: ssl.SSLContext = trusting()
        self.h2_trusts: ssl.SSLContext = trusting()
        """For httpx, which offers HTTP/2 in it."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def stats(self) -> Stats:
        return Stats(**await self._ask("stats"))

    async def forget_peak(self) -> Stats:
        return Stats(**await self._ask("forget peak"))

    async def flows(self) -> list[dict[str, Any]]:
        """The newest finished ones, oldest of them first."""
        found: list[dict[str, Any]] = await self._ask("flows")
        return found

    async def until(self, is_so: Callable[[Stats], bool], limit_s: float = 30.0) -> Stats:
        stats = await self.stats()
        try:
            async with asyncio.timeout(limit_s):
                while not is_so(stats):
                    await asyncio.sleep(0.02)
                    stats = await self.stats()
        except TimeoutError:
            raise AssertionError(f"not so after {limit_s:g} s: {stats}") from None
        return stats

    @asynccontextmanager
    async def line(self) -> AsyncIterator[Wire]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 18)
        try:
            yield Wire(reader, writer)
        finally:
            writer.transport.abort()

    @asynccontextmanager
    async def tunnel(self, authority: str) -> AsyncIterator[Wire]:
        async with self.line() as line:
            await line.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
            assert (await line.head()).status == 200
            yield line

    @asynccontextmanager
    async def decrypted(self, authority: str) -> AsyncIterator[Wire]:
        async with self.tunnel(authority) as line:
            await line.start_tls(self.trusts, "localhost")
            yield line

    async def _ask(self, command: str) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        async with self._lock:
            self._process.stdin.write(command.encode() + b"\n")
            answer = await self._process.stdout.readline()
        assert answer, "the engine's process ended"
        return json.loads(answer)


@asynccontextmanager
async def engine_process(
    directory: Path, *, capacity: int = 500, stores: bool = False, **config: object
) -> AsyncIterator[EngineProcess]:
    OURS.save(directory / "ca.pem", directory / "ca.key")
    (directory / "roots.pem").write_bytes(THEIRS.pem)
    options = {"directory": str(directory), "capacity": capacity, "stores": stores, "config": config}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.proxy.faults.engine_process", json.dumps(options), cwd=ROOT,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    try:
        async with asyncio.timeout(_START_S):
            port = json.loads(await process.stdout.readline())["port"]
        yield EngineProcess(process, port)
        process.stdin.close()
        async with asyncio.timeout(_START_S):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


@contextmanager
def many_files(count: int) -> Iterator[None]:
    """Room for so many descriptors, in this process and in those it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, count) if hard == resource.RLIM_INFINITY else min(max(soft, count), hard)
    assert wanted >= count, f"only {hard} files may be open here, {count} are needed"
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
