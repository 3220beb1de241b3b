"""Stages: named commands, timed, two at a time, each closed by one line that says how it ended."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from devtools.workspace import ROOT


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    command: tuple[str, ...]
    has_notes: bool = False  # print what it says even when it passes


@dataclass(frozen=True, slots=True)
class Outcome:
    stage: str
    code: int
    seconds: float
    output: str = ""

    @property
    def ok(self) -> bool:
        return self.code == 0

    def line(self) -> str:
        end = "ok" if self.ok else f"FAILED (exit {self.code})"
        return f"{self.stage:<16} {self.seconds:6.1f} s  {end}"


def run_quietly(stages: Sequence[Stage]) -> list[Outcome]:
    """All stages, in parallel, in order of the list on the screen; a failure stops none of the others."""
    outcomes = []
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        for stage, outcome in zip(stages, pool.map(_captured, stages), strict=True):
            if outcome.output and (stage.has_notes or not outcome.ok):
                print(outcome.output)
            print(outcome.line(), flush=True)
            outcomes.append(outcome)
    return outcomes


def run_openly(stage: Stage, env: dict[str, str]) -> Outcome:
    """One stage whose output goes straight to the screen."""
    sys.stdout.flush()
    started = time.monotonic()
    code = subprocess.run(stage.command, cwd=ROOT, env=env).returncode
    return Outcome(stage.name, code, time.monotonic() - started)


def verdict(outcomes: Sequence[Outcome]) -> int:
    """Name what failed; 0 when nothing did."""
    failed = [outcome.stage for outcome in outcomes if not outcome.ok]
    print(f"failed: {', '.join(failed)}" if failed else "all stages ok", flush=True)
    return 1 if failed else 0


def _captured(stage: Stage) -> Outcome:
    started = time.monotonic()
    done = subprocess.run(
        stage.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    return Outcome(stage.name, done.returncode, time.monotonic() - started, done.stdout.strip())
