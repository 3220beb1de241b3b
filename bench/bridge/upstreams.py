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


def fast_echo(tools: int = 1, until: Path | None = None) -> list[str]:
    """`until` this file is there; afterwards it starts, reads and never says a word."""
    # Isolated and without site: what is in somebody's environment cannot slow its start.
    words = [sys.executable, "-IS", str(FAST_ECHO), "--core", str(LOAD_CORE), "--tools", str(tools)]
    return words if until is None else [*words, "--until", str(until)]


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
