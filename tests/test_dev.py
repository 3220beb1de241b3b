"""`./dev test` in CI asks one single failed test once more; `./dev coverage` measures what coverage.py would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType

import coverage
import coverage.tracer
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


SAMPLE = """
import threading

def halve(number):
    if number % 2:
        return None
    for _ in range(1):
        number //= 2
    return number

halve(4)
worker = threading.Thread(target=halve, args=(3,))
worker.start()
worker.join()
"""


def test_the_light_hook_of_coverage_sees_what_coverage_py_sees(tmp_path: Path) -> None:
    """It loads the tracer of coverage.py alone, which promises nothing: this is what a new version would fail."""
    source, parts, unfinished = (tmp_path / name for name in ("source", "parts", "unfinished"))
    for folder in (source, parts, unfinished):
        folder.mkdir()
    sample = source / "sample.py"
    sample.write_text(SAMPLE)
    known = {"MEASURING": (os.getpid(), f"{source}/", coverage.tracer.__file__, str(parts), str(unfinished))}
    hook = f"exec(open({str(ROOT / 'tools/devtools/measured.py')!r}).read(), {known!r})"
    unmeasured = {"DARI_UNMEASURED": "1"}  # also where this test runs under `./dev coverage`
    ours = f"import os; del os.environ['DARI_UNMEASURED']; {hook}; import coverage.core, runpy"
    run_python("-c", f"{ours}; runpy.run_path({str(sample)!r})", env=unmeasured)
    join = str(ROOT / "tools/devtools/measured_parts.py")
    run_python("-P", join, str(parts), str(tmp_path / "ours"), str(source), env=unmeasured)
    run_python("-m", "coverage", "run", "--branch", f"--data-file={tmp_path / 'theirs'}", str(sample), env=unmeasured)

    def read_arcs(data_file: Path) -> set[tuple[int, int]]:
        data = coverage.CoverageData(str(data_file))
        data.read()
        return set(data.arcs(str(sample)) or ())

    assert read_arcs(tmp_path / "ours") == read_arcs(tmp_path / "theirs") != set()


def run_python(*words: str, env: Mapping[str, str] = MappingProxyType({})) -> None:
    subprocess.run([sys.executable, *words], check=True, cwd="/", env={"PATH": os.defpath, **env}, timeout=60)
