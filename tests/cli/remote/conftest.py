from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the person who runs the tests is read or written."""
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
