"""Questions to a person at a real terminal, through the thin client."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.hub.processes import WITHIN_S, crewx, crewx_process, demo_host


@pytest.fixture
def host(home: Path) -> Iterator[int]:
    with demo_host() as pid:
        yield pid


class Screen:
    """The person's side of a terminal."""

    def __init__(self, ours: int, theirs: int) -> None:
        self._ours = ours
        self.theirs = theirs
        self.seen = b""

    def wait_for(self, text: bytes) -> None:
        while text not in self.seen:
            ready, _, _ = select.select([self._ours], [], [], WITHIN_S)
            assert ready, f"{text!r} did not come; the screen shows {self.seen!r}"
            self.seen += os.read(self._ours, 4096)

    def type(self, text: bytes) -> None:
        os.write(self._ours, text)

    @property
    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self.theirs)[3] & termios.ECHO)


@contextmanager
def asked(secret: str) -> Iterator[tuple[Screen, subprocess.Popen[bytes]]]:
    ours, theirs = pty.openpty()
    try:
        with crewx_process("ask", "Name? ", secret, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs) as process:
            screen = Screen(ours, theirs)
            screen.wait_for(b"Name? ")
            yield screen, process
    finally:
        os.close(ours)
        os.close(theirs)


def test_what_is_typed_is_the_answer(host: int) -> None:
    with asked("open") as (screen, process):
        screen.type("Ada ✓\n".encode())
        out, _ = process.communicate(timeout=WITHIN_S)
        assert (process.returncode, out.decode()) == (0, "<Ada ✓>\n")
        screen.wait_for("Ada ✓".encode())


def test_a_secret_is_not_shown_while_it_is_typed(host: int) -> None:
    with asked("secret") as (screen, process):
        assert not screen.echoes
        screen.type(b"hunter2\n")
        out, _ = process.communicate(timeout=WITHIN_S)
        assert (process.returncode, out) == (0, b"<hunter2>\n")
        assert screen.echoes
        screen.wait_for(b"\n")
        assert b"hunter2" not in screen.seen


def test_the_end_of_input_is_an_empty_answer(host: int) -> None:
    with asked("open") as (screen, process):
        screen.type(b"\x04")
        out, _ = process.communicate(timeout=WITHIN_S)
        assert (process.returncode, out) == (0, b"<>\n")


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_at_a_question_ends_with_4_and_gives_the_terminal_back(times: int, host: int) -> None:
    with asked("secret") as (screen, process):
        for _ in range(times):
            process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == 4
        assert screen.echoes


def test_without_a_terminal_nobody_is_asked(host: int) -> None:
    done = crewx("ask", "Name? ", "open", input=b"Ada\n", stdin=None)
    assert done.returncode == 1
    assert b"stdin is not a terminal" in done.stderr
