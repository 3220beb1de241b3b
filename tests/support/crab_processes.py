"""`crab-mcp` and its `crabd` as processes of their own, in a run directory of their own, gone when the block ends."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

from dari.daemon.lock import lock_holder
from dari.proxy.daemon import CrabPaths
from tests.support.daemon_homes import remove_home
from tests.support.daemons import wait_until_unlocked
from tests.support.waiting import until
from tests.support.wire import ROOT, DemoProcess, HttpWire

CRAB_MCP = (sys.executable, "-m", "dari.cli.crab_mcp")
PIPE = asyncio.subprocess.PIPE


@contextmanager
def run_directory() -> Iterator[Path]:
    """A short path, because a socket's may have 103 bytes; what still runs in it at the end is killed by its pid."""
    path = Path(tempfile.mkdtemp(prefix="crab-"))
    try:
        yield path
    finally:
        end_crabd(path)
        remove_home(path)


def crabd_pid(run_dir: Path) -> int | None:
    return lock_holder(CrabPaths(run_dir).lock)


def end_crabd(run_dir: Path, number: signal.Signals = signal.SIGKILL) -> None:
    if (pid := crabd_pid(run_dir)) is not None:
        os.kill(pid, number)
        wait_until_unlocked(CrabPaths(run_dir).lock)


class CrabMcp(DemoProcess):
    """A running `crab-mcp`; `said` is what it wrote to stderr before it listened."""

    def __init__(self, process: asyncio.subprocess.Process, run_dir: Path) -> None:
        super().__init__(process, 0, run_dir / "none", "")
        self.run_dir = run_dir
        self.said = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def token_now(self) -> str:
        return (self.run_dir / "mcp.token").read_text().strip()

    async def http(self) -> HttpWire:
        self.token = self.token_now()
        return await super().http()

    async def stop(self) -> int:
        """As a person would; returns the exit code."""
        if self.process.returncode is None:
            self.process.terminate()
        return await self.process.wait()

    async def listens(self) -> None:
        assert self.process.stderr
        while line := (await self.process.stderr.readline()).decode():
            self.said += line
            if found := re.search(r"^crab-mcp listening on http://127\.0\.0\.1:(\d+)/mcp$", line):
                self.port = int(found[1])
                return
        raise AssertionError(f"crab-mcp did not listen:\n{self.said}")


def _environment(run_dir: Path) -> dict[str, str]:
    """The hub that is started to record a refusal ends after its client."""
    home = {"HOME": str(run_dir), "DARI_HOME": str(run_dir / "home"), "DARI_BRIDGE_IDLE_S": "1"}
    return {"PATH": os.environ["PATH"], **home}


async def started(run_dir: Path, *options: str, command: tuple[str, ...] = CRAB_MCP) -> CrabMcp:
    process = await asyncio.create_subprocess_exec(
        *(*command, "--run-dir", str(run_dir), *options),
        cwd=ROOT,
        env=_environment(run_dir),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=64 * 1024 * 1024,
    )
    return CrabMcp(process, run_dir)


@asynccontextmanager
async def crab_mcp(
    run_dir: Path, *options: str, transport: str = "both", command: tuple[str, ...] = CRAB_MCP
) -> AsyncIterator[CrabMcp]:
    """Started, and listening unless it is on stdio alone."""
    ports = () if transport == "stdio" else ("--http-port", "0")
    server = await started(run_dir, "--transport", transport, *ports, *options, command=command)
    try:
        if transport != "stdio":
            await server.listens()
        yield server
    finally:
        await server.close()


async def until_on_disk(run_dir: Path, flows: int) -> None:
    """Flows are written a few times a second: what a kill must not lose has to be there first."""
    database = CrabPaths(run_dir).state_dir / "traffic" / "traffic.db"

    def count() -> int:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM flows").fetchone()[0])

    await until(lambda: count() >= flows)


@asynccontextmanager
async def crabd(run_dir: Path) -> AsyncIterator[int]:
    """A `crabd` that was started by hand; yields its pid."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dari.cli.crabd", "serve", "--run-dir", str(run_dir)),
        cwd=ROOT,
        env=_environment(run_dir),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=PIPE,
    )
    assert process.stderr
    try:
        while b"event=listening" not in (line := await process.stderr.readline()):
            assert line, "crabd did not start"
        yield process.pid
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
