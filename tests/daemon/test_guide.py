"""docs/guide/daemons.md: the examples run, and its table of codes is the one in the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dari.daemon.errors import ERROR_ROWS
from dari.daemon.paths import DaemonPaths
from tests.support.daemons import wait_until_unlocked

GUIDE = (Path(__file__).parents[2] / "docs/guide/daemons.md").read_text(encoding="utf-8")
DAEMON, CALLER = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def test_the_example_daemon_has_no_more_lines_than_promised() -> None:
    assert len([line for line in DAEMON.splitlines() if line.strip()]) <= 15


def test_the_examples_of_the_guide_run(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARI_HOME", str(run_dir))
    script = run_dir / "hellod.py"
    script.write_text(DAEMON)
    caller = CALLER.replace("/path/to/hellod.py", str(script))
    output = subprocess.run([sys.executable, "-c", caller], capture_output=True, text=True, timeout=50)
    wait_until_unlocked(DaemonPaths("hellod").lock)
    assert output.stdout.splitlines() == ["{'text': 'hello Dari'}", "{'status': 'shutting_down'}"], output.stderr


def test_the_guide_lists_the_codes_as_they_are() -> None:
    listed = re.findall(r"^\| (\d+) \| ([A-Z_]+) \|.*\| ([^|]*) \|$", GUIDE, re.MULTILINE)
    assert [(int(code), name) for code, name, _ in listed] == [(row.code, row.code.name) for row in ERROR_ROWS]
    for row, (_, _, raised) in zip(ERROR_ROWS, listed, strict=True):
        assert any(f"`{cls.__name__}`" in raised for cls in row.raises.__mro__)
