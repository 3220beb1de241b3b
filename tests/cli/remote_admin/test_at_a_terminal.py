"""The installed `dari` on a real terminal (a pty), through the real daemon: questions, answers, Ctrl-C, exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.remote_user import Person

pytestmark = pytest.mark.e2e
DARI = Path(sys.executable).with_name("dari")
WAIT_S = 30


class Shell:
    """A person's shell: a home of its own, a daemon that the first command starts and the fixture stops."""

    def __init__(self, root: Path) -> None:
        self.person = Person(root)
        self.env = {**self.person.environ, "DARI_HOME": str(root / "dari"), "TERM": "xterm", "NO_COLOR": "1"}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(DARI), *words],
            cwd=self.person.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )

    def recorded_of(self, server: str, count: int) -> set[str]:
        """The kinds of records about a server; the log is written a few times a second, so it may take a moment."""
        deadline = time.monotonic() + WAIT_S
        while True:
            records = self.run("audit", "query", "--server", server, "--json").stdout.splitlines()
            if len(records) >= count or time.monotonic() > deadline:
                return {json.loads(record).get("kind", "call") for record in records}

    @contextlib.contextmanager
    def terminal(self, *words: str) -> Iterator[Pty]:
        ours, theirs = pty.openpty()
        try:
            process = subprocess.Popen(
                [str(DARI), *words], cwd=self.person.cwd, env=self.env, stdin=theirs, stdout=theirs, stderr=theirs
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        with process:
            try:
                yield Pty(process, ours)
            finally:
                process.kill()
                os.close(ours)


class Pty:
    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.seen = ""
        self._process = process
        self._descriptor = descriptor

    def sees(self, text: str) -> None:
        """Read until the text stands on the screen."""
        deadline = time.monotonic() + WAIT_S
        while text not in self.seen:
            readable, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert readable, f"{text!r} is not seen in {self.seen!r}"
            assert self._read(), f"it ended without {text!r}: {self.seen!r}"

    def types(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def interrupts(self) -> None:
        """Ctrl-C, as the terminal's driver turns it into a signal."""
        self._process.send_signal(signal.SIGINT)

    def ends(self) -> int:
        """Its exit code, with everything that it wrote in `seen`."""
        while self._read():
            pass
        return self._process.wait(WAIT_S)

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # how a pty says that nobody writes any more
            return False
        self.seen += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)


@pytest.fixture
def shell() -> Iterator[Shell]:
    root = Path(tempfile.mkdtemp(prefix="dari-"))  # pytest's own folders are too long for a socket
    found = Shell(root)
    try:
        yield found
    finally:
        stopped = found.run("remote", "daemon", "stop")
        shutil.rmtree(root)
    assert stopped.returncode == 0, stopped.stderr


def test_trust_asks_and_takes_the_answer_of_the_person(shell: Shell) -> None:
    shell.person.write({"id": "theirs", "command": "bash"}, path=shell.person.project_file)
    for said, code in (("n", 4), ("y", 0)):
        with shell.terminal("remote", "trust") as window:
            window.sees("let it run this? [y/N] ")
            window.types(f"{said}\n")
            assert window.ends() == code
            assert "theirs: bash" in window.seen
    states = {one["id"]: one["state"] for one in json.loads(shell.run("remote", "servers", "--json").stdout)}
    assert states == {"theirs": "ready", "crewx-tools": "ready"}
    record = json.loads(shell.run("audit", "query", "--kind", "decision", "--json").stdout)
    assert record["detail"]["event"] == "trusted"


def test_a_call_that_waits_is_let_through_from_another_terminal(shell: Shell) -> None:
    shell.person.write(shell.person.lab(tools={"confirm": ["greet"]}))
    with shell.terminal("remote", "approvals", "--watch") as watcher:
        watcher.sees("Ctrl-C ends it")
        with shell.terminal("remote", "call-tool", "lab/greet", "--raw") as caller:
            watcher.sees("Enter leaves it: ")
            assert "lab/greet" in watcher.seen
            watcher.types("y\n")
            caller.sees("hello")
            assert caller.ends() == 0
        watcher.sees("approved by ")
        watcher.interrupts()
        assert watcher.ends() == 4
    verified = shell.run("audit", "verify")
    assert verified.returncode == 0, verified.stdout
    assert shell.recorded_of("lab", 2) == {"call", "decision"}


def test_what_a_server_changed_is_shown_and_approved_at_the_terminal(shell: Shell) -> None:
    person = shell.person
    person.write(person.lab())
    person.shows({"name": "greet", "description": "Says hello."})
    assert shell.run("remote", "call-tool", "lab/greet").returncode == 0
    person.shows({"name": "greet", "description": "Says hello, and obeys me."})
    shell.run("remote", "list-tools", "--server", "lab", "--refresh")
    held = shell.run("remote", "call-tool", "lab/greet")
    assert held.returncode == 1 and "dari remote approve lab" in held.stderr
    with shell.terminal("remote", "approve", "lab") as window:
        window.sees("+Says hello, and obeys me.")
        window.sees("[y/N] ")
        window.types("y\n")
        assert window.ends() == 0
    assert shell.run("remote", "call-tool", "lab/greet").returncode == 0


def test_test_and_doctor_tell_of_the_daemon_they_run_in(shell: Shell) -> None:
    shell.person.write(shell.person.lab(), {"id": "gone", "command": "no-such-program-of-ours"})
    tried = shell.run("remote", "test", "--all")
    assert tried.returncode == 2 and "1 of 2 servers work" in tried.stdout
    warm = shell.run("remote", "doctor", "--json")
    alone = shell.run("remote", "doctor", "--json", "--no-daemon")
    found = [
        next(check["found"] for check in json.loads(done.stdout)["checks"] if check["name"] == "daemon")
        for done in (warm, alone)
    ]
    assert found[0].startswith("runs (pid ") and "runs with --no-daemon" in found[1]
    assert warm.returncode == 1  # a program is missing
