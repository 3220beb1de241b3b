"""A command that fetches its server first is given minutes, and says what it is busy with."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dari.bridge.children.downloads import download_of
from dari.bridge.upstream.upstream import Upstream
from dari.errors import TimedOut
from tests.support.bridge import LAB, Place

pytestmark = pytest.mark.local_mcp


@pytest.mark.parametrize(
    ("command", "program", "package"),
    [
        ("npx -y @modelcontextprotocol/server-memory", "npx", "@modelcontextprotocol/server-memory"),
        ("/usr/local/bin/npx --yes -p @a/b c", "npx", "@a/b"),
        ("npx --package=@a/b c", "npx", "@a/b"),
        ("cmd /c npx.cmd -y pkg", "npx", "pkg"),
        ("env A=1 npx pkg", "npx", "pkg"),
        ("npm exec -y pkg", "npm exec", "pkg"),
        ("pnpm dlx pkg", "pnpm dlx", "pkg"),
        ("yarn dlx pkg", "yarn dlx", "pkg"),
        ("bunx pkg", "bunx", "pkg"),
        ("bun x pkg", "bun x", "pkg"),
        ("uvx mcp-server-time", "uvx", "mcp-server-time"),
        ("uvx --from git+https://x/y tool", "uvx", "git+https://x/y"),
        ("uvx --from git+https://me:secret@x/y tool", "uvx", "git+https://x/y"),
        ("uvx --some-option https://mirror.test/simple pkg", "uvx", "pkg"),
        ("uv tool run mcp-server-time", "uv tool run", "mcp-server-time"),
        ("uv run --with mcp server.py", "uv run", "server.py"),
        ("pipx run --spec a b", "pipx run", "a"),
        ("docker run -i --rm -e TOKEN mcp/github", "docker run", "mcp/github"),
        ("podman run image", "podman run", "image"),
    ],
)
def test_a_command_that_fetches_what_it_runs_is_recognised(command: str, program: str, package: str) -> None:
    found = download_of(command.split())
    assert found is not None and (found.program, found.package) == (program, package)


@pytest.mark.parametrize(
    "command", ["python server.py", "node dist/index.js", "npm start", "docker exec x y", "env", ""]
)
def test_a_command_that_runs_what_is_there_is_not(command: str) -> None:
    assert download_of(command.split()) is None


def fetcher(folder: Path, body: str) -> Path:
    """A program of the name `npx` that does something first, and is the server then."""
    folder.mkdir(exist_ok=True)
    path = folder / "npx"
    path.write_text(
        f"#!{sys.executable}\nimport os, runpy, sys, time\n{body}\nrunpy.run_path({str(LAB)!r}, run_name='__main__')\n"
    )
    path.chmod(0o755)
    return path


@asynccontextmanager
async def fetched(root: Path, body: str, init_ms: int = 300) -> AsyncIterator[Upstream]:
    program = fetcher(root / "bin", body)
    entry = {"id": "lab", "kind": "stdio", "command": str(program), "args": ["-y", "pkg"], "initTimeoutMs": init_ms}
    async with Place(root, entry).upstream() as upstream:
        yield upstream


async def test_a_first_start_that_downloads_may_take_longer_than_the_time_to_start(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    busy = "print('fetching pkg', file=sys.stderr, flush=True)\n"
    busy += f"while not os.path.exists({str(gate)!r}): sum(range(10000))"
    async with fetched(tmp_path, busy) as upstream:
        notes: asyncio.Queue[str] = asyncio.Queue()
        upstream.start_notes.subscribe(notes.put_nowait)
        starting = asyncio.create_task(upstream.start())
        note = await notes.get()
        assert "npx may be downloading pkg" in note and '"fetching pkg"' in note
        assert upstream.status().doing == note
        gate.touch()
        await starting
        assert upstream.known_tools() and not upstream.status().doing


async def test_one_that_is_known_and_stands_still_is_given_up_after_its_time_to_start(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    stands_still = f"while os.path.exists({str(gate)!r}): time.sleep(0.05)"
    async with fetched(tmp_path, stands_still) as upstream:
        await upstream.start()
        await upstream.stop()
        gate.touch()
        with pytest.raises(TimedOut):
            await upstream.start()
