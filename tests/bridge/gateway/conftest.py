from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of these tests may reach the tester's own pins, logs and profiles."""
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
