"""A tmux server of our own: on a socket in the scratch directory, without anybody's configuration."""

import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.bridge.household import environment
from bench.errors import BenchError
from bench.terminal.contenders import BIN, TMUX_PATH
from bench.terminal.data import PANE_COLS, PANE_ROWS

CALL_TIMEOUT_S = 60.0
HISTORY_ROWS = 10_000
POLL_S = 0.01
SHELL = "bash --noprofile --norc -i"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Tmux:
    env: dict[str, str]
    socket: str
    """Its name, for `-L`."""
    pid: int

    def run(self, *words: str) -> str:
        return _run(self.env, self.socket, *words)

    def open(self, command: str = SHELL, cols: int = PANE_COLS, rows: int = PANE_ROWS) -> str:
        """A window of its own; its pane's id."""
        pane = self.run("new-window", "-d", "-P", "-F", "#{pane_id}", command).strip()
        self.run("resize-window", "-t", pane, "-x", str(cols), "-y", str(rows))
        return pane

    def close(self, pane: str) -> None:
        self.run("kill-pane", "-t", pane)

    def capture(self, pane: str, *words: str) -> str:
        return self.run("capture-pane", "-p", "-t", pane, *words)

    def execute(self, pane: str, command: str, marker: str) -> None:
        """As agents do it that have nothing else: keys, then looking at the screen until the marker is there.

        `marker` is in two pieces in what is typed, so that its echo is not taken for it.
        """
        middle = len(marker) // 2
        typed = f"{command}; echo {marker[:middle]}''{marker[middle:]}$?"
        self.run("send-keys", "-t", pane, typed, "Enter")
        deadline = time.monotonic() + CALL_TIMEOUT_S
        while marker not in self.capture(pane):
            if time.monotonic() > deadline:
                raise BenchError(f"tmux did not show {marker} within {CALL_TIMEOUT_S:g} s")
            time.sleep(POLL_S)

    def await_text(self, pane: str, text: str, poll_s: float) -> float:
        """Look every `poll_s` until it is there; when it was seen."""
        deadline = time.monotonic() + CALL_TIMEOUT_S
        while text not in self.capture(pane):
            if time.monotonic() > deadline:
                raise BenchError(f"tmux did not show {text} within {CALL_TIMEOUT_S:g} s")
            time.sleep(poll_s)
        return time.monotonic()


@contextmanager
def tmux_server(folder: Path, history_rows: int = HISTORY_ROWS) -> Iterator[Tmux]:
    """Nobody is attached, so it draws for nobody: its time is that of reading and parsing."""
    home = folder / "tmux-home"
    env = environment(home, BIN, TMUX_TMPDIR=str(folder), SHELL="/bin/bash", TERM="xterm-256color", LC_ALL="C.UTF-8")
    env.pop("TMUX", None)
    socket = f"bench-{next(_numbers)}"  # one that ends still holds its socket for a moment
    try:
        _run(
            env,
            socket,
            *("set-option", "-g", "history-limit", str(history_rows), ";"),
            *("new-session", "-d", "-s", "bench", "-x", str(PANE_COLS), "-y", str(PANE_ROWS), SHELL, ";"),
            *("set-option", "-g", "status", "off"),
        )
        yield Tmux(env, socket, int(_run(env, socket, "display-message", "-p", "#{pid}")))
    finally:
        subprocess.run(_command(socket, "kill-server"), env=env, capture_output=True, timeout=CALL_TIMEOUT_S)


def _run(env: dict[str, str], socket: str, *words: str) -> str:
    done = subprocess.run(_command(socket, *words), env=env, capture_output=True, timeout=CALL_TIMEOUT_S, cwd=os.sep)
    if done.returncode:
        raise BenchError(f"tmux {words[0]} exited with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="replace")


def _command(socket: str, *words: str) -> list[str]:
    return [str(TMUX_PATH), "-L", socket, "-f", os.devnull, *words]
