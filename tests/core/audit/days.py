"""A log whose clock the test sets."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dari.core.audit.files import log_files
from dari.core.audit.log import AuditLog

DAY = datetime(2026, 11, 16, 12, tzinfo=UTC)
Opened = Callable[..., AuditLog]


class Days:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.at = DAY

    def __call__(self) -> float:
        return self.at.timestamp()


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in log_files(directory) for line in file.path.read_text().splitlines()]
