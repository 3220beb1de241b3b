"""Which of the recorded requests a command made.

Every process below the command inherits a variable of ours, so one that still lives can be asked. One that is gone is
taken for the command's unless it was there before. Without /proc, and for a connection whose process is not known, the
time decides.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from dari.cli.proxy.flows import Flow

VARIABLE = "DARI_PROXY_RUN"


class Attribution:
    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        """The value of `VARIABLE` in the command's environment."""
        self._before = _pids()
        self._verdicts: dict[int, bool] = {}

    def own(self, flows: Iterable[Flow]) -> list[Flow]:
        return [flow for flow in flows if self._is_own(flow.get("pid"))]

    def _is_own(self, pid: int | None) -> bool:
        if pid is None:
            return True
        if pid not in self._verdicts:
            self._verdicts[pid] = pid not in self._before and self._is_marked(pid)
        return self._verdicts[pid]

    def _is_marked(self, pid: int) -> bool:
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return True  # gone, or not ours to read: a process of sudo
        # A process that ends has no environment any more.
        return not environment or f"{VARIABLE}={self.mark}".encode() in environment.split(b"\0")


def _pids() -> frozenset[int]:
    try:
        return frozenset(int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        return frozenset()
