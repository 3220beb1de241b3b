"""Servers that work hard before they answer, and a record of how many of them started at the same time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.support.bridge import LAB

WORK = """
import os, runpy, sys
def note(word):
    with open({log!r}, "a") as file:
        file.write(f"{{word}} {id}\\n")
note("begin")
sum(number * number for number in range({steps}))
class Answers:
    def __init__(self, stream): self.stream, self.is_first = stream, True
    def write(self, text):
        if self.is_first:
            self.is_first = False
            note("end")
        return self.stream.write(text)
    def __getattr__(self, name): return getattr(self.stream, name)
sys.stdout = Answers(sys.stdout)
runpy.run_path({lab!r}, run_name="__main__")
"""


def heavy(id: str, root: Path, steps: int = 1_000_000, **fields: Any) -> dict[str, Any]:
    """The entry of a server that computes for a while; it notes its start and its first answer."""
    source = WORK.format(log=str(root / "starts.log"), id=id, steps=steps, lab=str(LAB))
    return {"id": id, "kind": "stdio", "command": sys.executable, "args": ["-c", source], **fields}


def starts(root: Path) -> list[tuple[str, str]]:
    """`("begin" | "end", server)` in the order in which it happened."""
    path = root / "starts.log"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(line.split()[0], line.split()[1]) for line in lines]


def most_at_once(root: Path) -> int:
    running, most = set(), 0
    for word, id in starts(root):
        (running.add if word == "begin" else running.discard)(id)
        most = max(most, len(running))
    return most
