"""Who does a task: our server, other people's servers, or a bare shell. Each call is counted with what came back."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.machine import ROOT
from bench.peers import Peer
from dari.mcp.client import Client
from dari.transport.client.child import ChildChannel

CALL_TIMEOUT_S = 240.0
BYTES_PER_TOKEN = 4
SERENA = Peer("serena", ("serena-agent==2.1.0",), is_constrained=False)
GIT = Peer("mcp-server-git", ("mcp-server-git==2026.10.19",), is_constrained=False)
_PASSED_ON = ("UV_", "PIP_", "NPM_", "npm_", "SSL_", "NODE_EXTRA")
"""What package clients need to reach their registry: serena fetches its language server at the first start."""


@dataclass(slots=True)
class Tally:
    """What a task cost: how often something was called, what was read, what had to be written."""

    calls: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    seen: list[str] = field(default_factory=list)
    """Everything that the agent read, in order."""

    @property
    def read_tokens(self) -> int:
        return self.read_bytes // BYTES_PER_TOKEN

    def add(self, sent: str, text: str) -> None:
        self.calls += 1
        self.written_bytes += len(sent.encode())
        self.read_bytes += len(text.encode("utf-8", "replace"))
        self.seen.append(text)


class Side:
    """The servers and the shell that one way of working has, in one copy of the repository."""

    def __init__(self, repo: Path, clients: dict[str, Client], listed_bytes: int) -> None:
        self.repo = repo
        self.tally = Tally()
        self.listed_tokens = listed_bytes // BYTES_PER_TOKEN
        self._clients = clients

    async def call(self, tool: str, server: str = "", **arguments: Any) -> str:
        """The text of a tool's result. BenchError when the tool failed: a task has to be done, not tried."""
        client = self._clients[server or next(iter(self._clients))]
        result = await client.call_tool(tool, arguments, timeout_s=CALL_TIMEOUT_S)
        text = "".join(getattr(block, "text", "") for block in result.content)
        self.tally.add(json.dumps({"name": tool, "arguments": arguments}), text)
        if result.is_error:
            raise BenchError(f"{tool} failed: {text[:500]}", "the script's arguments do not fit this version")
        return text

    async def shell(self, command: str) -> str:
        """What a command prints, as an agent's shell tool would hand it back; one pipeline is one call."""
        done = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-c", command],
            cwd=self.repo,
            env=shell_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=CALL_TIMEOUT_S,
            check=False,
        )
        text = done.stdout.decode("utf-8", "replace")
        self.tally.add(command, text)
        return text


def shell_environment() -> dict[str, str]:
    """With ruff, rg and pytest of our own environment: the bare shell has the same engines."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "src"}


def _server_environment(scratch: Path) -> dict[str, str]:
    passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
    return {**passed, **shell_environment(), "HOME": os.environ.get("HOME", str(scratch)), "DARI_HOME": str(scratch)}


def npm_folder() -> Path:
    if not (folder := os.environ.get("DARI_BENCH_NPM_DIR")):
        raise BenchError("the npm peers are not installed", "run it with ./dev bench codetools")
    return Path(folder)


def commands_of(name: str, repo: Path, scratch: Path) -> dict[str, Sequence[str]]:
    """The servers of a side, by the name that tasks use."""
    binaries = npm_folder() / "node_modules" / ".bin"
    if name == "dari":
        return {"tools": [str(Path(sys.executable).parent / "crewx-tools"), "serve"]}
    if name == "servers":
        return {
            "rg": [str(binaries / "mcp-ripgrep")],
            "fs": [str(binaries / "mcp-server-filesystem"), str(repo)],
            "git": [str(GIT.home / "bin" / "mcp-server-git"), "-r", str(repo)],
        }
    if name == "serena":
        words = ["start-mcp-server", "--project", str(repo), "--context", "ide", "--agent-interface", "tools"]
        return {"serena": [str(SERENA.home / "bin" / "serena"), *words, "--enable-web-dashboard", "false"]}
    return {}


@asynccontextmanager
async def open_side(name: str, repo: Path, scratch: Path) -> AsyncIterator[Side]:
    environment = _server_environment(scratch)
    node = Path(os.environ.get("DARI_NODE", shutil.which("node") or "node"))
    environment["PATH"] = f"{_uvx_shim(scratch)}{os.pathsep}{node.parent}{os.pathsep}{environment['PATH']}"
    listed = 0
    async with AsyncExitStack() as held:
        clients = {}
        for key, command in commands_of(name, repo, scratch).items():
            channel = ChildChannel(tuple(command), env=environment, cwd=repo)
            client = await held.enter_async_context(Client(channel, open_timeout_s=120, timeout_s=CALL_TIMEOUT_S))
            listed += sum(len(bytes(item)) for item in (await client.listing("tools")).items)
            clients[key] = client
        yield Side(repo, clients, listed)


def _uvx_shim(scratch: Path) -> Path:
    """serena runs `uvx -p 3.13 --from pyright …`, and fetches that Python from outside of the registries where it
    is missing; ours will do."""
    folder = scratch / "shim"
    folder.mkdir(exist_ok=True)
    uvx = shutil.which("uvx") or str(ROOT / ".dev" / "uv" / "bin" / "uvx")
    shim = folder / "uvx"
    shim.write_text(f'#!/bin/sh\n[ "$1" = -p ] && shift 2\nexec {uvx} "$@"\n')
    shim.chmod(0o755)
    return folder
