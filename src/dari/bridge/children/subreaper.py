"""Orphans come to us: on Linux a subreaper adopts every process below it whose parent has ended."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_SET_CHILD_SUBREAPER = 36


@cache
def become_subreaper() -> bool:
    """For the life of this process. False where the system has no such thing."""
    if sys.platform != "linux":
        return False
    try:
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (AttributeError, OSError):
        return False
