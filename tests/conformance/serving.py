"""The everything server in a process of its own."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.suite import ROOT

START_S = 20
STOP_S = 10


@dataclass(slots=True)
class Serving:
    """`exit_code` is known after the `with` block."""

    url: str
    log: Path
    exit_code: int | None = None

    def trouble(self) -> str:
        """What a healthy run does not leave behind: a bad exit, or a line in the log."""
        said = self.log.read_text()
        return said if self.exit_code == 0 else f"the server ended with exit code {self.exit_code}\n{said}"


@contextmanager
def everything_serving(log: Path) -> Iterator[Serving]:
    """Start on a free port, yield, stop as a user would."""
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.everything", "--http-port", "0"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    with process:
        try:
            serving = Serving(_url_of(process, log), log)
            yield serving
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    serving.exit_code = process.returncode


def _url_of(process: subprocess.Popen[bytes], log: Path) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_S)
    url = process.stdout.readline().decode().strip() if ready else ""
    if not url:
        raise RuntimeError(f"the everything server did not start in {START_S} s:\n{log.read_text()}")
    return url
