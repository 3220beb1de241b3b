"""Logs that are closed when their test ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dari.core.audit.log import AuditLog
from tests.core.audit.days import Opened


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    logs: list[AuditLog] = []

    def open_log(**more: Any) -> AuditLog:
        given = {"batch_s": 0.001, **more}
        logs.append(AuditLog(tmp_path / "audit", **given))
        return logs[-1]

    yield open_log
    for log in logs:
        log.close()
