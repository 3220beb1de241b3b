"""One thing that was looked at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Status = Literal["ok", "warning", "failed"]


class Check(Struct, frozen=True):
    """What was looked at, what was found, and what to do about it."""

    name: str
    status: Status
    found: str
    hint: str = ""


def worst_status(checks: Iterable[Check]) -> Status:
    """The status of the whole: the worst of its parts."""
    found = {check.status for check in checks}
    order: tuple[Status, ...] = ("failed", "warning", "ok")
    return next(status for status in order if status == "ok" or status in found)
