"""The servers behind everything that is measured, and the profiles that name them."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.machine import LOAD_CORE, ROOT, clean_environment, free_port
from bench.processes import Scratch, spawn, stop, wait_until_listening

NODE = Path(os.environ.get("DARI_NODE", "node"))
NPM_DIR = Path(os.environ.get("DARI_BENCH_NPM_DIR", ROOT / ".dev" / "bench" / "npm-bridge"))
MODULES = NPM_DIR / "node_modules"
EVERYTHING = MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
FAST_ECHO = ROOT / "bench" / "bridge" / "fast_echo.py"

Server = Mapping[str, object]
"""An entry of `mcpServers`."""


@dataclass(frozen=True, slots=True)
class Upstream:
    name: str
    title: str


REFERENCE = Upstream("everything", "server-everything")
DIRECT = Upstream("direct", "direct stdio")


def program(command: list[str], **more: object) -> Server:
    return {"command": command[0], "args": command[1:], **more}


def everything() -> list[str]:
    """The reference server on stdio."""
    return [str(NODE), str(EVERYTHING), "stdio"]


def fast_echo(tools: int = 1) -> list[str]:
    # Isolated and without site: what is in somebody's environment cannot slow its start.
    return [sys.executable, "-IS", str(FAST_ECHO), "--core", str(LOAD_CORE), "--tools", str(tools)]


def hanging() -> list[str]:
    """A server that starts, reads and never says a word."""
    return [sys.executable, "-IS", "-c", "import sys; sys.stdin.buffer.read()"]


def write_profiles(path: Path, servers: Mapping[str, Server], **more: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers, **more}, indent=2) + "\n")
    path.chmod(0o600)
    return path


@contextmanager
def everything_over_http(scratch: Scratch) -> Iterator[str]:
    """The reference server with Streamable HTTP; yields its address."""
    port = free_port()
    command = [str(NODE), str(EVERYTHING), "streamableHttp"]
    process = spawn(REFERENCE, command, scratch, pipes=False, env={**clean_environment(), "PORT": str(port)})
    try:
        wait_until_listening(REFERENCE, process, port, scratch)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        stop(process)
