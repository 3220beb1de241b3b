"""Every command that serves HTTP refuses the token when another user of this machine shows it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.wire import ROOT
from tests.transport.test_peer_uids import INITIALIZE, REPLAY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the user of a TCP socket")

# Only root can be somebody else. Without root the same runs show that the owner gets in.
STRANGER, EXPECTED = (65534, "403") if os.geteuid() == 0 else (os.geteuid(), "200")
COMMANDS = [
    pytest.param(("dari", "up", "--http-port", "0"), id="dari up"),
    pytest.param(("dari", "mcp", "--transport", "http", "--http-port", "0", "--no-servers"), id="dari mcp"),
    pytest.param(("dari.cli.crab_mcp", "--transport", "http", "--http-port", "0"), id="crab-mcp"),
    pytest.param(("dari.cli.cruxd", "serve", "--http", "0", "--idle", "60"), id="cruxd"),
]


@pytest.fixture
def home() -> Iterator[Path]:
    """Short enough for the paths of sockets."""
    made = Path(tempfile.mkdtemp(prefix="dari-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@asynccontextmanager
async def serving(home: Path, *words: str) -> AsyncIterator[tuple[str, Path]]:
    """The port and the token file of a command that serves."""
    environment = {"PATH": os.environ["PATH"], "DARI_HOME": str(home), "HOME": str(home), "SHELL": "/bin/sh"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *words), cwd=ROOT, env=environment, stdin=-3, stdout=-3, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/mcp[\s\S]*?token(?: file|_path)[ =]+(\S+)", said)):
            line = await process.stderr.readline()
            assert line, said
            said += line.decode()
        yield found[1], Path(found[2])
    finally:
        process.send_signal(signal.SIGTERM)
        await process.communicate()
        if (pid_file := home / "run" / "crabd" / "daemon.pid").exists() and (pid := pid_file.read_text().split()):
            os.kill(int(pid[0]), signal.SIGTERM)


async def replay(port: str, token: Path) -> str:
    words = (sys.executable, "-c", REPLAY, str(STRANGER), port, token.read_text().strip(), "POST", "/mcp", INITIALIZE)
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("words", COMMANDS)
async def test_a_stolen_token_is_refused(home: Path, words: tuple[str, ...]) -> None:
    async with serving(home, *words) as (port, token):
        assert (await replay(port, token)).startswith(EXPECTED)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("words", COMMANDS)
async def test_a_user_who_was_named_gets_in(home: Path, words: tuple[str, ...]) -> None:
    async with serving(home, *words, "--allow-uid", str(STRANGER)) as (port, token):
        assert (await replay(port, token)).startswith("200")
