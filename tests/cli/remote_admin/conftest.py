from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.remote_user import Person


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    return Person(tmp_path)
