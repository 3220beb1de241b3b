"""A umask of 000 opens nothing: what we make in the home is for its owner alone."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.wire import ROOT

SERVER = f"{sys.executable} -m dari mcp --no-servers"


@pytest.fixture
def home() -> Iterator[Path]:
    """Short enough for the paths of sockets."""
    made = Path(tempfile.mkdtemp(prefix="dari-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def environment(home: Path, **further: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "SHELL": "/bin/sh", "PYTHONPATH": str(ROOT), **further}


def run(home: Path, module: str, *words: str, **further: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=home, env=environment(home, **further), umask=0, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def run_up(home: Path, *words: str, **further: str) -> None:
    """Start the hub, and stop it once it serves."""
    with subprocess.Popen(
        [sys.executable, "-m", "dari", "up", "--http-port", "0", *words],
        cwd=home, env=environment(home, **further), umask=0, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr
        assert any(re.search("Ctrl-C stops it", line) for line in process.stderr)
        process.terminate()
        process.stderr.read()


def open_to_others(home: Path) -> list[str]:
    """What others may write to; a link's own mode says nothing."""
    found = []
    for path in home.rglob("*"):
        mode = path.lstat().st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(mode) and "__pycache__" not in path.parts:
            found.append(f"{stat.S_IMODE(mode):04o} {path.relative_to(home)}")
    return found


@pytest.mark.timeout(180)
@pytest.mark.parametrize("named", [{}, {"DARI_HOME": "deep/down/dari"}], ids=["usual places", "DARI_HOME"])
def test_with_umask_000_nobody_else_may_write_to_what_we_make(home: Path, named: dict[str, str]) -> None:
    further = {name: str(home / value) for name, value in named.items()}
    run_up(home, "--token-path", str(home / "tokens" / "of" / "mine" / "token"), **further)
    run(home, "dari", "remote", "add", "own", "--", *SERVER.split(), **further)
    run(home, "dari", "remote", "list-tools", "--server", "own", **further)
    run(home, "dari", "remote", "daemon", "stop", **further)
    run(home, "dari", "proxy", "start", "--listen", "127.0.0.1:0", **further)
    run(home, "dari", "proxy", "har", "export", str(home / "out.har"), **further)
    run(home, "dari", "proxy", "stop", "--daemon", **further)
    run(home, "dari.cli.crux.main", "exec", "true", **further)
    run(home, "dari.cli.crux.main", "kill-server", **further)
    run(home, "dari.cli.crux.main", "tmux", "--install", str(home / "shims" / "deep"), **further)
    assert open_to_others(home) == []
    assert stat.S_IMODE((home / "out.har").stat().st_mode) == 0o600
