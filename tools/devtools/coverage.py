"""Branch coverage of every process: tests, daemons, commands, whatever environment and folder they run in.

A variable that switches the measuring on would reach few of them: daemons and servers get environments of their own.
So a line in .venv does, for as long as the run lasts.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from devtools.stages import Outcome, Stage, run_openly
from devtools.workspace import DEV, ROOT, VENV_PYTHON

FOLDER = DEV / "coverage"
DATA = FOLDER / "data"
PARTS = FOLDER / "parts"
UNFINISHED = FOLDER / "unfinished"  # a process that is killed while it writes leaves half a file
REPORT = FOLDER / "report.json"
SOURCE = ROOT / "src" / "dari"
HOOK = Path(__file__).with_name("measured.py")
JOIN = Path(__file__).with_name("measured_parts.py")


def run(tests: Sequence[str], env: dict[str, str], *, is_whole: bool) -> list[Outcome]:
    """The tests, then the report. A part of the tests cannot reach the whole's mark and is not held to it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for folder in (PARTS, UNFINISHED):
        folder.mkdir(parents=True)
    with _every_process_measured():
        outcomes = [run_openly(Stage("tests", (str(VENV_PYTHON), "-m", "pytest", *tests)), env)]
    python = str(VENV_PYTHON)
    data, gate = f"--data-file={DATA}", () if is_whole else ("--fail-under=0",)
    for name, words in (
        ("join", ("-P", str(JOIN), str(PARTS), str(DATA), str(SOURCE))),
        ("json", ("-m", "coverage", "json", "--quiet", data, "--fail-under=0", "-o", str(REPORT))),
        ("coverage", ("-m", "coverage", "report", data, "--skip-covered", *gate)),
    ):
        outcomes.append(run_openly(Stage(name, (python, *words)), env))
    return outcomes


@contextmanager
def _every_process_measured() -> Iterator[None]:
    find = (
        "import sysconfig, coverage.tracer; print(sysconfig.get_path('purelib'), coverage.tracer.__file__, sep='\\n')"
    )
    found = subprocess.run([VENV_PYTHON, "-c", find], capture_output=True, text=True, check=True).stdout
    packages, tracer = found.splitlines()
    known = {"MEASURING": (os.getpid(), f"{SOURCE}/", tracer, str(PARTS), str(UNFINISHED))}
    line = f"import sys; exec(open({str(HOOK)!r}).read(), {known!r})"
    path = Path(packages, "dari_measured.pth")
    path.write_text(f"{line}\n")
    try:
        yield
    finally:
        path.unlink()
