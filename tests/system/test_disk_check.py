"""`dari doctor` tries the disk: a folder that looks writable may have no room."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dari.system import service
from dari.system.service import check_disk
from tests.test_os_errors import files_of_at_most


def test_a_disk_with_room_is_fine_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    assert check_disk((tmp_path / "not" / "there" / "yet", tmp_path)).status in ("ok", "warning")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_takes_no_file_fails_with_its_path_and_a_hint(tmp_path: Path) -> None:
    with files_of_at_most(0):
        check = check_disk((tmp_path,))
    assert check.status == "failed"
    assert check.found.startswith(f"{tmp_path}: the disk is full")
    assert "free some space" in check.hint
    assert list(tmp_path.iterdir()) == []


def test_little_room_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MIN_FREE_BYTES", 1 << 62)
    assert check_disk((tmp_path,)).status == "warning"


@pytest.mark.parametrize("folder", ["/proc", "/sys"])
def test_a_place_where_nothing_can_be_made_fails(folder: str) -> None:
    """Root may write where the mode says that nobody may, so it is tried."""
    if not os.path.isdir(folder):
        pytest.fail(f"{folder} is missing")
    assert check_disk((Path(folder) / "dari",)).status == "failed"
