"""Every test has a home of its own, short enough for the paths of sockets."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="crux-"))
    for name in ("CRUX_SOCKET", "CRUX_CONFIG", "XDG_CONFIG_HOME", "CRUX_PANE", "CRUX_PANE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("DARI_HOME", str(made / "dari"))
    monkeypatch.setenv("SHELL", "/bin/bash")
    yield made
    shutil.rmtree(made, ignore_errors=True)
