"""The everything server in a process of its own, alone or behind the gateway."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.conformance.suite import ROOT

START_S = 60
STOP_S = 30

Upstream = Literal["stdio", "http"]


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


def everything_serving(log: Path) -> AbstractContextManager[Serving]:
    """Start on a free port, yield, stop as a user would."""
    return _serving(log, ["-m", "tests.conformance.everything", "--http-port", "0"])


@contextmanager
def gateway_serving(
    folder: Path, upstream: Upstream, protocol: str = "auto", isolation: str = "shared"
) -> Iterator[Serving]:
    """Our gateway, with the everything server behind it: as its child, or at an address."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        words = [
            "-m",
            "tests.conformance.gateway",
            "--home",
            str(folder),
            "--protocol",
            protocol,
            "--isolation",
            isolation,
        ]
        if upstream == "http":
            behind = stack.enter_context(everything_serving(folder / "upstream.log"))
            words += ["--upstream", behind.url]
        yield stack.enter_context(_serving(folder / "gateway.log", words))


@contextmanager
def _serving(log: Path, words: list[str]) -> Iterator[Serving]:
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, *words],
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
        raise RuntimeError(f"the server did not start in {START_S} s:\n{log.read_text()}")
    return url
