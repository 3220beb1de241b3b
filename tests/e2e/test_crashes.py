"""A crash in native code leaves the Python stack: in the log of a daemon, on the stderr of a server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.cli.hub.paths import BridgePaths
from dari.daemon.launch import ensure_started_sync
from dari.knowledge.daemon import KebabPaths
from dari.proxy.daemon import CrabPaths
from dari.terminal.paths import CruxPaths
from tests.cli.hub.processes import WITHIN_S, private_home
from tests.support.processes import wait_for_end, wait_for_line
from tests.support.wire import initialize

pytestmark = pytest.mark.e2e

CRASHED = "Fatal Python error: Segmentation fault"
DAEMONS = {"hub": BridgePaths, "crabd": CrabPaths, "cruxd": CruxPaths, "kebabd": KebabPaths}
SERVERS = {
    "dari mcp": ("dari", "mcp"),
    "crab-mcp": ("dari.cli.crab_mcp", "--ensure-daemon", "false"),
    "kebab mcp": ("dari.cli.kebab.fast_client", "mcp"),
    "crewx-tools serve": ("dari.cli.crewx_tools.main", "serve"),
}


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with private_home(monkeypatch) as path:
        yield path


@pytest.mark.parametrize("name", DAEMONS)
def test_a_daemon_that_crashes_leaves_its_stack_in_its_log(name: str, home: Path) -> None:
    paths = DAEMONS[name]()
    pid = ensure_started_sync(paths, paths.command())
    assert pid is not None
    os.kill(pid, signal.SIGSEGV)
    wait_for_end(pid)
    log = paths.log.read_text()
    assert CRASHED in log
    assert "in run_to_exit" in log, log


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_on_stdin_and_stdout_that_crashes_leaves_its_stack_on_stderr(name: str, home: Path) -> None:
    module, *words = SERVERS[name]
    command = [sys.executable, "-m", module, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=home, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(initialize("2025-11-25")).encode() + b"\n")
        process.stdin.flush()
        wait_for_line(process.stdout.fileno())
        process.send_signal(signal.SIGSEGV)
        _, said = process.communicate(timeout=WITHIN_S)
    assert process.returncode == -signal.SIGSEGV
    assert CRASHED in said.decode()
