"""This process's own terminal: bytes in, bytes out, questions on a real tty."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

from dari.cli.kit.console import as_bytes
from tests.support.wire import ROOT

START = "import asyncio, sys\nfrom dari.cli.kit.console import ProcessConsole\nterminal = ProcessConsole()\n"


def ran(source: str, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[bytes]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environ}
    return subprocess.run(
        [sys.executable, "-c", START + source], input=stdin, env=env, capture_output=True, timeout=40, check=True
    )


def test_text_goes_out_as_utf8_and_bytes_as_they_came() -> None:
    done = ran("terminal.out('é\\udcff'); terminal.err('note')", LC_ALL="C")
    assert (done.stdout, done.stderr) == (b"\xc3\xa9\xff", b"note")
    assert as_bytes("a\ud800") == b"a\\ud800"


def test_stdin_is_read_to_its_end() -> None:
    done = ran("data = asyncio.run(terminal.read_stdin()); print(len(data), data[-1])", b"x" * 300_000 + b"y")
    assert done.stdout.split() == [b"300001", b"121"]


def test_a_question_needs_a_tty() -> None:
    source = """
from dari.errors import InvalidInput
try:
    asyncio.run(terminal.ask("who? "))
except InvalidInput as error:
    print(error.message)
"""
    assert b"not a terminal" in ran(source, b"Ada\n").stdout


def test_a_reader_that_leaves_is_no_error() -> None:
    source = "for _ in range(10_000): terminal.out('x' * 100 + '\\n')"
    with subprocess.Popen(
        [sys.executable, "-c", START + source],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait(30) == 0


class Tty:
    """A program on a pseudo terminal."""

    def __init__(self, source: str, cwd: Path) -> None:
        self.master, slave = pty.openpty()
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(cwd), "TERM": "xterm"}
        command = [sys.executable, "-c", START + source]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd)
        self._slave = slave
        self.seen = b""

    def until(self, text: bytes) -> None:
        while text not in self.seen:
            self.seen += os.read(self.master, 4096)

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self._slave)[3] & termios.ECHO)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._slave)
        os.close(self.master)


def test_a_line_is_asked_on_a_tty_and_a_secret_is_not_shown(tmp_path: Path) -> None:
    source = """
async def main():
    print(terminal.stdin_is_tty, terminal.colour, repr(await terminal.ask("who? ")), flush=True)
    print(repr(await terminal.ask("key? ", secret=True)), flush=True)
    print(repr(await terminal.ask("end? ")), flush=True)
asyncio.run(main())
"""
    tty = Tty(source, tmp_path)
    try:
        tty.until(b"who? ")
        tty.type("Jürgen\n".encode())
        tty.until("True True 'Jürgen'".encode())
        tty.until(b"key? ")
        assert not tty.echoes()
        tty.type(b"s3cret\n")
        tty.until(b"'s3cret'")
        assert tty.seen.count(b"s3cret") == 1 and tty.echoes()
        tty.until(b"end? ")
        tty.type(b"\x04")
        tty.until(b"''")
        assert tty.process.wait(30) == 0
    finally:
        tty.close()


def test_ctrl_c_at_a_question_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    source = """
try:
    asyncio.run(terminal.ask("key? ", secret=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    tty = Tty(source, tmp_path)
    try:
        tty.until(b"key? ")
        assert not tty.echoes()
        tty.process.send_signal(2)
        tty.until(b"interrupted")
        assert tty.process.wait(30) == 0 and tty.echoes()
    finally:
        tty.close()
