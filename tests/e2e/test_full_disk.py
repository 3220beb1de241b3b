"""A disk without room: every command says so with a path and a next step, and none ends in a traceback."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.wire import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs, or limits the size of files")

SERVING = [
    ("dari", "up", "--http-port", "0"),
    ("dari", "up", "--http-port", "0", "--no-servers"),
    ("dari", "mcp", "--transport", "http", "--http-port", "0"),
    ("dari.cli.crab_mcp", "--transport", "http", "--http-port", "0"),
    ("dari.cli.crabd", "serve"),
    ("dari.cli.cruxd", "serve"),
]
COMMANDS = [
    ("dari", "doctor"),
    ("dari", "proxy", "start", "--listen", "127.0.0.1:0"),
    ("dari", "proxy", "mcp", "start"),
    ("dari", "remote", "add", "own", "--", "true"),
    ("dari.cli.crux.main", "exec", "true"),
    ("dari.cli.crux_mcp_bridge",),
]


@pytest.fixture
def full_home() -> Iterator[Path]:
    """A home on a tmpfs that was filled to its last byte; without root, one in which no file may hold a byte."""
    made = Path(tempfile.mkdtemp(prefix="dari-"))
    is_mounted = os.geteuid() == 0 and _mounts(made)
    if is_mounted:
        _fill(made)
    yield made
    if is_mounted:
        subprocess.run(["umount", "-l", str(made)], check=True)
    shutil.rmtree(made, ignore_errors=True)


def _mounts(folder: Path) -> bool:
    options = ["mount", "-t", "tmpfs", "-o", "size=256k", "dari-test", str(folder)]
    return subprocess.run(options, capture_output=True).returncode == 0


def _fill(folder: Path) -> None:
    for block_bytes in (4096, 1):
        with pytest.raises(OSError), open(folder / f"filler-{block_bytes}", "wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * block_bytes)


def environment_of(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "DARI_HOME": str(home / "d"), "SHELL": "/bin/sh"}


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    is_full = os.path.ismount(home)

    def limit() -> None:
        if not is_full:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    return subprocess.run(
        [sys.executable, "-B", "-m", *words],
        cwd=ROOT, env=environment_of(home), preexec_fn=limit, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip


@pytest.mark.timeout(90)
@pytest.mark.parametrize("words", [*SERVING, *COMMANDS], ids=" ".join)
def test_a_full_disk_is_told_with_a_path_and_a_next_step(full_home: Path, words: tuple[str, ...]) -> None:
    done = run(full_home, *words)
    assert_told(done, words)
    assert str(full_home) in done.stdout + done.stderr


def run_freely(home: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT, env=environment_of(home), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture
def full_daemons() -> Iterator[Path]:
    """Daemons that run, and may not write a byte more: the disk has become full since they started."""
    home = Path(tempfile.mkdtemp(prefix="dari-"))
    run_freely(home, "dari", "proxy", "start", "--listen", "127.0.0.1:0")
    run_freely(home, "dari.cli.crux.main", "exec", "true")
    pids = [int((home / "d" / place / "daemon.pid").read_text()) for place in ("run/crabd", "crux")]
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    yield home
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    run_freely(home, "dari", "proxy", "stop", "--daemon")
    run_freely(home, "dari.cli.crux.main", "kill-server")
    shutil.rmtree(home, ignore_errors=True)


TOOLS = {
    "crux_save_session": {"name": "own"},
    "crab_traffic_export_har": {},
    "crab_rules_add_allow": {"matcher": "example.com"},
    "crab_ca_generate": {},
    "crab_engine_set_policy": {"passes_through_pinned": True},
}


@pytest.mark.timeout(180)
def test_daemons_whose_disk_became_full_say_so(full_daemons: Path) -> None:
    for words in (
        ("dari", "proxy", "rules", "add", "allow", "example.com"),
        ("dari", "proxy", "har", "export", str(full_daemons / "out.har")),
        ("dari", "proxy", "ca", "generate"),
        ("dari.cli.crux.main", "save-session", "own"),
    ):
        assert_told(run(full_daemons, *words), words)
    for tool, arguments in TOOLS.items():
        words = ("dari.cli.crewx", "mcp", "call_tool", tool, "--params", json.dumps(arguments), "--json")
        assert_told(run(full_daemons, *words), words)


def assert_told(done: subprocess.CompletedProcess[str], words: tuple[str, ...]) -> None:
    said = done.stdout + done.stderr
    assert done.returncode not in (0, 101), (words, said)
    assert "the disk is full" in said or "No usable temporary directory" in said, (words, said)
    assert "hint" in said, (words, said)
    assert "Traceback" not in said and "bug" not in said, (words, said)


@pytest.mark.parametrize("words", [("dari", "--version"), ("dari", "uninstall"), ("dari", "proxy", "status")])
def test_what_writes_nothing_works_on_a_full_disk(full_home: Path, words: tuple[str, ...]) -> None:
    done = run(full_home, *words)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
