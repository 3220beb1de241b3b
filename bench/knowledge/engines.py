"""The engines' processes, seen from the benchmark: what building cost, one round of queries at a time."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.errors import BenchError
from bench.knowledge.contenders import child_command
from bench.knowledge.corpus import CorpusFiles
from bench.machine import ROOT, clean_environment
from bench.processes import Process, Scratch
from bench.programs import Contender

STOP_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Round:
    p50_ms: float
    p99_ms: float
    cpu_p50_ms: float
    """Of all threads: what a busy machine does not lengthen."""
    found: Sequence[Sequence[int]]


class RunningEngine:
    def __init__(self, contender: Contender, process: Process, scratch: Scratch) -> None:
        self.contender = contender
        self._process = process
        self._scratch = scratch
        self.built: dict[str, float] = self._read()

    def run(self, kind: str, queries: int) -> Round:
        """The first queries, once each."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{queries} {kind}\n".encode())
        self._process.stdin.flush()
        words = self._read()
        return Round(words["p50_ms"], words["p99_ms"], words["cpu_p50_ms"], words["found"])

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = self._scratch.log(self.contender).read_text()[-2000:]
            raise BenchError(
                f"{self.contender.title} ended:\n{said}", "run its child by hand: bench/knowledge/*_child.py"
            )
        words: dict[str, Any] = json.loads(line)
        return words


@contextmanager
def engine(contender: Contender, files: CorpusFiles, scratch: Scratch) -> Iterator[RunningEngine]:
    """Build and keep one engine; it may use every core, as the others may."""
    say(f"{contender.title} indexes {files.passages:,} passages …")
    began = time.monotonic()
    with scratch.log(contender).open("ab") as log:
        process = subprocess.Popen(
            child_command(contender, files.folder, files.passages),
            cwd=ROOT,
            env=clean_environment(),
            bufsize=-1,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        running = RunningEngine(contender, process, scratch)
        say(f"{contender.title} is ready after {time.monotonic() - began:.0f} s")
        yield running
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def say(text: str) -> None:
    """A run takes minutes: what it is at."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def missed_percent(found: Sequence[Sequence[int]], exact: Sequence[Sequence[int]]) -> float:
    """How many of the exact best are not among those found."""
    wanted = sum(len(one) for one in exact)
    return 100 * (1 - sum(len(set(a) & set(b)) for a, b in zip(found, exact, strict=True)) / wanted)
