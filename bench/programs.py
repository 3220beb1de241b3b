"""Contenders that are installed programs: what must be there for each to run, and which version it is."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    title: str
    program: Path
    """What must be there for it to run."""
    version: Callable[[], str]

    @property
    def missing(self) -> str:
        """Why it cannot start, or an empty string."""
        return "" if self.program.exists() else f"{self.program} does not exist"


def python_package(python: Path, *names: str) -> Callable[[], str]:
    script = "import sys, importlib.metadata as m; print(', '.join(n + ' ' + m.version(n) for n in sys.argv[1:]))"
    return lambda: said([str(python), "-c", script, *names])


def said(command: list[str]) -> str:
    reply = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return reply.stdout.strip() or "of an unknown version"
