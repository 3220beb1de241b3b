"""A stdout or stderr that cannot be written: no traceback, a message where there is room, a code of the program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.daemon.lock import lock_holder
from dari.knowledge.daemon import KebabPaths
from tests.cli.hub.processes import private_home
from tests.support.processes import wait_for_end

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")]

WITHIN_S = 50
# What a program exits with when its stdout is full: `docs/guide` has the codes of each.
PRINTING = {
    "dari --version": 3,
    "dari --help": 3,
    "dari mcp --help": 1,
    "dari tokens --help": 3,
    "dari audit verify": 3,
    "dari uninstall --dry-run": 3,
    "dari proxy status": 3,
    "dari remote --help": 4,
    "dari remote servers --no-daemon": 4,
    "dari.cli.crewx --help": 4,
    "dari.cli.crewx tool --help": 3,
    "dari.cli.crewx_tools.main --help": 3,
    "dari.cli.crewx_tools.main serve --help": 3,
    "dari.cli.crux.main --version": 3,
    "dari.cli.crux.main exec --help": 3,
    "dari.cli.crux.main tmux -V": 1,
    "dari.cli.crux_mcp_bridge --help": 2,
    "dari.cli.crabd --help": 1,
    "dari.cli.crab_mcp --help": 1,
    "dari.cli.kebabd --version": 1,
    "dari.cli.kebab.fast_client schema --no-daemon": 2,
    "dari.cli.kebab.fast_client --help": 2,
    "dari.cli.kebab.fast_client mcp --help": 2,
    "dari.cli.kebab.fast_client daemon status": 2,
}
WRONG = {
    "dari nosuch": 2,
    "dari proxy nosuch": 2,
    "dari remote nosuch --no-daemon": 1,
    "dari.cli.crewx nosuch": 1,
    "dari.cli.crewx_tools.main nosuch": 1,
    "dari.cli.crux.main nosuch": 1,
    "dari.cli.crux.main exec --nosuch": 1,
    "dari.cli.crux_mcp_bridge nosuch": 2,
    "dari.cli.crabd nosuch": 2,
    "dari.cli.crab_mcp nosuch": 2,
    "dari.cli.kebab.fast_client nosuch": 2,
}


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with private_home(monkeypatch) as path:
        yield path


def run(words: str, redirections: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", f'exec "$0" -m {words} {redirections}', sys.executable]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        env={**os.environ, **environ},
    )


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("words", PRINTING)
def test_a_full_stdout_is_told_with_a_code_of_the_program(words: str, unbuffered: str, home: Path) -> None:
    done = run(words, ">/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert "error: " in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert "the disk is full" in done.stderr or "No space left" in done.stderr
    assert done.returncode == PRINTING[words]


@pytest.mark.parametrize("words", PRINTING)
def test_with_a_full_stderr_as_well_the_code_is_the_same(words: str, home: Path) -> None:
    assert run(words, ">/dev/full 2>/dev/full").returncode == PRINTING[words]


@pytest.mark.parametrize("words", PRINTING)
def test_a_closed_stdout_and_a_full_stderr_are_no_failure(words: str, home: Path) -> None:
    assert run(words, ">&- 2>/dev/full").returncode == 0


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("words", WRONG)
def test_a_message_that_cannot_be_written_changes_no_exit_code(words: str, unbuffered: str, home: Path) -> None:
    assert run(words, "2>/dev/full", PYTHONUNBUFFERED=unbuffered).returncode == WRONG[words]


def test_an_answer_of_kebabd_that_stdout_does_not_take_is_an_error(home: Path) -> None:
    kebab = "dari.cli.kebab.fast_client"
    assert run(f"{kebab} daemon start", "").returncode == 0
    pid = lock_holder(KebabPaths().lock)
    try:
        done = run(f"{kebab} schema", ">/dev/full")
        assert (done.returncode, "Traceback" in done.stderr, "error: " in done.stderr) == (2, False, True)
    finally:
        assert run(f"{kebab} daemon stop", "").returncode == 0
        assert pid is not None
        wait_for_end(pid)
