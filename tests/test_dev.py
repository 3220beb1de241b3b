"""`./dev test` in CI: one single failed test is asked once more, and nothing else is."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
PASSES = (sys.executable, "-c", "raise SystemExit(0)")
FAILS = (sys.executable, "-c", "raise SystemExit(1)")


@pytest.fixture
def dev(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools")
    from devtools import main

    return main


def record_failed(root: Path, *names: str) -> None:
    folder = root / ".pytest_cache" / "v" / "cache"
    folder.mkdir(parents=True)
    (folder / "lastfailed").write_text(json.dumps(dict.fromkeys(names, True)))


def ask_once_more(dev: ModuleType, root: Path, command: tuple[str, ...]) -> int:
    outcome: int = dev.ask_once_more(dev.Outcome("tests", 1, 0.0), command, dict(os.environ), root).code
    return outcome


def test_a_run_that_failed_without_a_failed_test_has_failed(dev: ModuleType, tmp_path: Path) -> None:
    assert ask_once_more(dev, tmp_path, PASSES) == 1


def test_two_failed_tests_are_not_asked_again(dev: ModuleType, tmp_path: Path) -> None:
    record_failed(tmp_path, "a.py::one", "a.py::two")
    assert ask_once_more(dev, tmp_path, PASSES) == 1


@pytest.mark.parametrize(("command", "code"), [(PASSES, 0), (FAILS, 1)])
def test_one_failed_test_is_asked_again_alone(
    dev: ModuleType, tmp_path: Path, command: tuple[str, ...], code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    record_failed(tmp_path, "a.py::one@group")
    assert ask_once_more(dev, tmp_path, command) == code
    assert ("PASSED ALONE: a.py::one\n" in capfd.readouterr().err) == (code == 0)
