"""The thin client and hosts of the bridge as processes, each ended by the block that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest

from dari.cli.hub.paths import BridgePaths
from dari.daemon.lock import lock_holder
from tests.support.daemon_homes import remove_home
from tests.support.processes import wait_for_end, wait_for_line
from tests.support.wire import ROOT

CREWX = (sys.executable, "-m", "dari.cli.crewx", "mcp", "remote")
DEMO = (sys.executable, "-m", "tests.cli.hub.demo_daemon")
WITHIN_S = 40


@contextmanager
def private_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A `DARI_HOME` and a `HOME` of its own; a daemon that still runs there at the end is killed by its pid."""
    path = Path(tempfile.mkdtemp(prefix="socket-"))
    for name in ("XDG_RUNTIME_DIR", "XDG_DATA_HOME", "CREWX_MCP_JSON", "DARI_NO_DAEMON", "DARI_CHILD", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.setenv("DARI_HOME", str(path))
    try:
        yield path
    finally:
        if (path / "run").is_dir() and (pid := daemon_pid()) is not None:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(pid, signal.SIGKILL)
            wait_for_end(pid)
        remove_home(path)


def crewx(*words: str, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end."""
    settings = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": WITHIN_S, **settings}
    return subprocess.run((*CREWX, *words), **settings)


@contextmanager
def crewx_process(*words: str, **settings: Any) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    settings = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, **settings}
    with subprocess.Popen((*CREWX, *words), **settings) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def demo_host(kind: str = "daemon", version: str = "") -> Iterator[int]:
    """The pid of a host with the commands of `demo_daemon`, in `DARI_HOME`."""
    words = (*DEMO, kind, *([version] if version else []))
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=ROOT) as process:
        try:
            assert read_line(process.stdout) == b"ready\n"
            yield process.pid
        finally:
            if process.poll() is None:
                process.kill()


def daemon_pid() -> int | None:
    return lock_holder(BridgePaths().lock)


def kill_daemon(number: signal.Signals = signal.SIGKILL) -> int:
    pid = daemon_pid()
    assert pid is not None
    os.kill(pid, number)
    wait_for_end(pid)
    return pid


def read_line(stream: IO[bytes] | None) -> bytes:
    assert stream is not None
    return wait_for_line(stream.fileno(), WITHIN_S)
