"""What runs note for the last of them to put right is not lost on the way."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from dari.cli.proxy import lease
from dari.cli.proxy.lease import StartedByRun


def test_a_note_that_the_disk_does_not_take_leaves_the_one_before(tmp_path: Path) -> None:
    file = os.open(tmp_path / "runs.lease", os.O_RDWR | os.O_CREAT, 0o600)
    lease._write(file, StartedByRun(proxy=True, rule_ids=("r1", "r2")))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(OSError):
            lease._write(file, StartedByRun())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert lease._read(file) == StartedByRun(proxy=True, rule_ids=("r1", "r2"))
    lease._write(file, StartedByRun())
    assert lease._read(file) == StartedByRun()
    os.close(file)
