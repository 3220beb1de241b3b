"""The labelled outputs: a folder an intent, a file an output with what is known about it above the line `---`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"


@dataclass(frozen=True)
class Sample:
    name: str
    intent: str
    command: str
    exit_code: int | None
    source: str
    """`run`: printed by the tool itself. `known`: written from the tool's documentation and memory."""
    group: str
    """`first`: seen while the rules were written. `held`: written after they were fixed."""
    output: str


def read_sample(path: Path) -> Sample:
    head, _, output = path.read_text("utf-8").partition("---\n")
    facts = dict(line.split(": ", 1) if ": " in line else (line.rstrip(":"), "") for line in head.splitlines())
    code = None if facts["exit"] == "none" else int(facts["exit"])
    return Sample(path.stem, path.parent.name, facts["command"], code, facts["source"], facts["set"], output)


def all_samples() -> list[Sample]:
    return [read_sample(path) for path in sorted(SAMPLES.glob("*/*.txt"))]
