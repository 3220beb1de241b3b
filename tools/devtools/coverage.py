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
HOOK = Path(__file__).with_name("measured.py")


def run(tests: Sequence[str], env: dict[str, str], *, is_whole: bool) -> list[Outcome]:
    """The tests, then the report. A part of the tests cannot reach the whole's mark and is not held to it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for folder in (PARTS, UNFINISHED):
        folder.mkdir(parents=True)
    with _every_process_measured():
        outcomes = [run_openly(Stage("tests", (str(VENV_PYTHON), "-m", "pytest", *tests)), env)]
    tool = (str(VENV_PYTHON), "-m", "coverage")
    gate = () if is_whole else ("--fail-under=0",)
    for name, words in (
        ("combine", ("combine", "--quiet", f"--data-file={DATA}", str(PARTS))),
        ("json", ("json", "--quiet", f"--data-file={DATA}", "--fail-under=0", "-o", str(REPORT))),
        ("coverage", ("report", f"--data-file={DATA}", "--skip-covered", *gate)),
    ):
        outcomes.append(run_openly(Stage(name, (*tool, *words)), env))
    return outcomes


@contextmanager
def _every_process_measured() -> Iterator[None]:
    known = {"MEASURING": (os.getpid(), str(ROOT), str(PARTS), str(UNFINISHED))}
    line = f"import sys; exec(open({str(HOOK)!r}).read(), {known!r})"
    find = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([VENV_PYTHON, "-c", find], capture_output=True, text=True, check=True).stdout.strip()
    path = Path(packages, "dari_measured.pth")
    path.write_text(f"{line}\n")
    try:
        yield
    finally:
        path.unlink()
