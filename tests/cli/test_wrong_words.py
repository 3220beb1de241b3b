"""Every installed program answers a wrong word with the fact and the nearest right one, and survives closed streams."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
PROGRAMS = (
    *("dari", "crabd", "crab-mcp", "crewx", "crewx-tools"),
    *("crux", "cruxd", "crux-mcp-bridge", "kebab", "kebabd"),
)
DESIGN_SAYS_1 = ("dari remote", "crewx", "crux ")
"""Design 001's commands, under each of their names, and the terminal's."""
SLIPS = [
    ("dari dctor", "doctor"),
    ("dari doctor --jsno", "--json"),
    ("dari up --htpt-port 3", "--http-port"),
    ("dari mcp --transport http --tokenpath x", "--token-path"),
    ("dari uninstall --dryrun", "--dry-run"),
    ("dari proxy strat", "start"),
    ("dari proxy traffic list --jsn", "--json"),
    ("dari proxy rules add alow x", "allow"),
    ("dari tokens creat x", "create"),
    ("dari audit veirfy", "verify"),
    ("dari approvals aprove 1", "approve"),
    ("dari remote servres", "servers"),
    ("dari console --prnt", "--print"),
    ("dari knowledge serch x", "search"),
    ("crabd sreve", "serve"),
    ("crabd serve --rundir x", "--run-dir"),
    ("crab-mcp --transprot http", "--transport"),
    ("crab-mcp --transport htpp", "http"),
    ("crewx --vresion", "--version"),
    ("crewx-tools --vresion", "--version"),
    ("crux --sokcet x list", "--socket"),
    ("cruxd serve --htpp 1", "--http"),
    ("crux-mcp-bridge --scoket x", "--socket"),
    ("kebab --vresion", "--version"),
    ("kebab eval run --sett x", "--set"),
    ("kebabd --wathc", "--watch"),
]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A short path: a socket's may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="dari-") as folder:
        yield Path(folder)


def run(line: str, tmp_path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A line for the shell, in an empty home."""
    return subprocess.run(
        ["bash", "-c", line], env=_environ(tmp_path) | more, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )


def _environ(home: Path) -> dict[str, str]:
    return {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(home), "DARI_NO_DAEMON": "1"}


@pytest.mark.parametrize("line, meant", SLIPS, ids=[line for line, _ in SLIPS])
def test_a_slip_is_answered_with_the_word_that_was_meant(line: str, meant: str, tmp_path: Path) -> None:
    done = run(line, tmp_path)
    code = 1 if line.startswith(DESIGN_SAYS_1) else 2
    assert (done.returncode, done.stdout) == (code, "")
    first, second = done.stderr.splitlines()[:2]
    assert first.startswith("error: ") and second.startswith("hint: did you mean ") and meant in second, done.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_with_a_closed_stdout_ends_quietly(program: str, tmp_path: Path) -> None:
    done = run(f"{program} --help >&-", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_reader_that_left_is_no_complaint(program: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [BIN / program, "--help"], env=_environ(tmp_path), stdout=writer, stderr=-1, text=True, timeout=60
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
@pytest.mark.parametrize("words", [*(f"{program} --help" for program in PROGRAMS), "dari proxy status", "crux list"])
def test_a_full_disk_is_reported_once(words: str, tmp_path: Path) -> None:
    done = run(f"{words} >/dev/full", tmp_path)
    assert done.returncode not in (0, 120)
    assert done.stderr.count("error: ") == 1 and "standard output: the disk is full" in done.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_in_an_encoding_without_our_characters_is_escaped(program: str, tmp_path: Path) -> None:
    done = run(f"{program} --help", tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "") and "usage: " in done.stdout
