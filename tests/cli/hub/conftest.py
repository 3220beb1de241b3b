"""A run directory with a short path (a socket's may have 103 bytes on macOS), and nothing left running in it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.hub.processes import private_home


@pytest.fixture
def run_dir() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="socket-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with private_home(monkeypatch) as path:
        yield path
