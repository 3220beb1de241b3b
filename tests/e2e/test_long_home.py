"""A home whose path is too long for sockets: the message says so, and names no log that was never written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.daemon.unix_socket import MAX_SOCKET_PATH_BYTES
from tests.support.wire import ROOT

COMMANDS = [
    ("dari", "up", "--http-port", "0"),
    ("dari", "up", "--http-port", "0", "--no-servers"),
    ("dari", "doctor"),
    ("dari", "proxy", "start", "--listen", "127.0.0.1:0"),
    ("dari", "remote", "daemon", "start"),
    ("dari.cli.crab_mcp", "--transport", "http", "--http-port", "0"),
    ("dari.cli.crabd", "serve"),
    ("dari.cli.cruxd", "serve"),
    ("dari.cli.crux.main", "exec", "true"),
    ("dari.cli.crux_mcp_bridge",),
]


@pytest.fixture
def base() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="dari-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("size_bytes", [MAX_SOCKET_PATH_BYTES - 5, 200])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_long_home_is_told_by_its_path_and_names_no_log_that_is_not_there(
    base: Path, words: tuple[str, ...], size_bytes: int
) -> None:
    home = base / ("a" * (size_bytes - len(str(base)) - 1))
    home.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "DARI_HOME": str(home), "SHELL": "/bin/sh"}
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode not in (0, 101), said
    assert str(home) in said
    assert "path may have" in said or "path too long" in said
    assert "hint: " in said
    assert "Traceback" not in said
    for log in re.findall(r"/\S+\.log\b", said):
        assert Path(log).is_file(), said


@pytest.mark.parametrize("words", [("dari", "doctor"), ("dari", "up", "--http-port", "0"), ("dari", "uninstall")])
def test_a_name_that_no_file_system_takes_is_told_and_not_a_traceback(base: Path, words: tuple[str, ...]) -> None:
    home = base / ("a" * 300)
    environment = {"PATH": os.environ["PATH"], "HOME": str(base), "DARI_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=50
    )
    assert "Traceback" not in done.stderr
    assert str(home) in done.stdout + done.stderr
    assert done.returncode == 1
