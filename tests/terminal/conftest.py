"""A home for each test that asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.panes import fill_fish_data


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shells of this test read no file of the user's, and daemons find nothing of another test."""
    for name in ("CRUX_SOCKET", "CRUX_CONFIG", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    monkeypatch.setenv("SHELL", "/bin/bash")
    fill_fish_data(tmp_path / ".local" / "share")
