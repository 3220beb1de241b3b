"""The `dari` command as it is installed, running the hub."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.real_clients import DARI


@dataclass(frozen=True)
class Hub:
    process: asyncio.subprocess.Process
    url: str
    token: str
    socket: Path


@asynccontextmanager
async def dari_up(home: Path, *options: str) -> AsyncIterator[Hub]:
    """`dari up` in a home of its own, on a free port, until the block ends; then stopped as a person would."""
    token, socket = home / "token", home / "run" / "mcp.sock"
    process = await asyncio.create_subprocess_exec(
        *(str(DARI), "up", "--http-port", "0", "--token-path", str(token), "--socket", str(socket), *options),
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "DARI_HOME": str(home / "dari")},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr
    try:
        seen = ""
        while line := (await process.stderr.readline()).decode():
            seen += line
            if found := re.search(r"event=start url=(\S+)", line):
                break
        else:
            raise AssertionError(f"dari up did not start:\n{seen}")
        yield Hub(process, found[1], token.read_text().strip(), socket)
        process.terminate()
        await process.communicate()
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        process._transport.close()  # type: ignore[attr-defined]
