"""What runs in a pane, asked of the kernel."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    name: str
    pid: int
    command_line: str


def describe(pid: int) -> ProcessInfo | None:
    """None when there is no such process (any more)."""
    if sys.platform != "linux":
        return _describe_by_ps(pid)
    try:
        with open(f"/proc/{pid}/comm") as file:
            name = file.read().rstrip("\n")
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().rstrip(b"\0").split(b"\0")
    except OSError:
        return None
    line = shlex.join(word.decode(errors="replace") for word in words) if words != [b""] else name
    return ProcessInfo(name, pid, line)


def directory_of(pid: int) -> str:
    """The working directory of a process; empty when the kernel does not tell."""
    try:
        return os.readlink(f"/proc/{pid}/cwd").removesuffix(" (deleted)")
    except OSError:
        return ""


def _describe_by_ps(pid: int) -> ProcessInfo | None:
    shown = subprocess.run(["ps", "-o", "comm=", "-p", str(pid)], capture_output=True, text=True, timeout=5)
    line = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, timeout=5)
    name = shown.stdout.strip()
    return ProcessInfo(os.path.basename(name), pid, line.stdout.strip()) if name else None
