"""kebab as people and clients start it: some notes, `kebab mcp` on stdio, `kebab search` with its daemon warm."""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.bridge.household import environment
from bench.bridge.upstreams import fast_echo, program, write_profiles
from bench.cold import read_line
from bench.errors import BenchError
from bench.knowledge.contenders import OURS
from bench.machine import ROOT
from bench.messages import encode, initialize
from bench.processes import Scratch, rss_mb, spawn, stop

BIN = ROOT / ".venv" / "bin"
TIMEOUT_S = 120
_NOTES = 300
_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
_SEARCH = {"name": "search", "arguments": {"query": "note about topic 7", "mode": "lexical"}}


@dataclass(frozen=True, slots=True)
class Notes:
    """A home with an index of some hundred notes, and a server that `dari remote` calls."""

    env: dict[str, str]
    home: Path
    scratch: Scratch

    def run(self, *words: str, expected: str = "") -> float:
        """Milliseconds from exec to exit; what it prints is checked."""
        began = time.perf_counter()
        done = subprocess.run(
            words,
            cwd=self.home,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        took_ms = (time.perf_counter() - began) * 1000
        if done.returncode or expected not in done.stdout:
            raise BenchError(
                f"{' '.join(words[1:])} exited with {done.returncode}: {done.stdout[-300:]}{done.stderr[-600:]}"
            )
        return took_ms

    def search_ms(self) -> float:
        return self.run(str(BIN / "kebab"), "search", "note about topic 7", "--mode", "lexical", expected="7.md")

    def call_tool_ms(self) -> float:
        return self.run(str(BIN / "dari"), "remote", "call-tool", "echo/echo", "--text", "hi", "--raw", expected="hi")

    def first_hit(self) -> tuple[float, float]:
        """`kebab mcp` from exec to the first lexical hit in ms, and its memory then in MB."""
        began = time.perf_counter()
        process = spawn(OURS, [str(BIN / "kebab"), "mcp"], self.scratch, pipes=True, env=self.env)
        try:
            assert process.stdin is not None
            process.stdin.write(encode(initialize()) + b"\n")
            read_line(OURS, process, self.scratch)
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": _SEARCH}
            process.stdin.write(_INITIALIZED + json.dumps(call).encode() + b"\n")
            reply = read_line(OURS, process, self.scratch)
            took_ms = (time.perf_counter() - began) * 1000
            if b"7.md" not in reply:
                raise BenchError(f"kebab mcp found nothing: {reply[:400]!r}")
            return took_ms, rss_mb(process)
        finally:
            stop(process)


@contextmanager
def notes(scratch: Scratch) -> Iterator[Notes]:
    """Index the notes and warm both daemons; they are stopped afterwards."""
    home = Path(tempfile.mkdtemp(prefix="notes-", dir=scratch.path))
    folder = home / "notes"
    folder.mkdir(parents=True)
    for number in range(_NOTES):
        (folder / f"{number}.md").write_text(
            f"# Note {number}\n\nThis note is about topic {number} and nothing else.\n"
        )
    profiles = write_profiles(home / "mcp.json", {"echo": program(fast_echo())})
    more = {"DARI_HOME": str(home / "dari"), "CREWX_MCP_JSON": str(profiles), "KEBAB_EMBEDDING_MODEL": "none"}
    made = Notes(environment(home, BIN, **more), home, scratch)
    made.run(str(BIN / "kebab"), "init", str(folder))
    made.run(str(BIN / "kebab"), "ingest")
    try:
        made.run(str(BIN / "dari"), "remote", "daemon", "start")
        for _ in range(2):
            made.search_ms()
            made.call_tool_ms()
        yield made
    finally:
        made.run(str(BIN / "kebab"), "daemon", "stop")
        made.run(str(BIN / "dari"), "remote", "daemon", "stop")
