"""`cruxd` as `pip install` leaves it, in a home of its own, and `crux-mcp-bridge` in front of it."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.bridge.household import environment
from bench.errors import BenchError
from bench.processes import START_TIMEOUT_S, Process, Scratch, died, stop
from bench.terminal.contenders import BIN, OURS
from bench.terminal.talking import Client, client

# Twenty that print and one that a person types in; the usual limit is twenty.
CONFIG = "[mcp.security]\nmax_panes = 40\n"


@dataclass(frozen=True, slots=True)
class Crux:
    process: Process
    env: dict[str, str]
    socket: Path
    scratch: Scratch

    @property
    def pid(self) -> int:
        return self.process.pid

    def client(self) -> AbstractContextManager[Client]:
        return client(OURS, self.command(), self.env, self.scratch)

    def command(self) -> list[str]:
        return [str(BIN / "crux-mcp-bridge"), "--socket", str(self.socket), "--no-start"]


@contextmanager
def cruxd(scratch: Scratch) -> Iterator[Crux]:
    """Told to end when this does; it ends its panes."""
    home = scratch.path / "crux-home"
    env = environment(home, BIN, SHELL="/bin/bash", TERM="xterm-256color", LC_ALL="C.UTF-8")
    config = home / "crux.toml"
    config.write_text(CONFIG)
    env |= {"DARI_HOME": str(home / "dari"), "CRUX_CONFIG": str(config)}
    path = home / "dari" / "crux" / "mcp.sock"
    with scratch.log(OURS).open("ab") as log:
        process = subprocess.Popen(
            [str(BIN / "cruxd"), "serve", "--log", "warning"],
            env=env,
            cwd=os.sep,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    try:
        _await(path, process, scratch)
        yield Crux(process, env, path, scratch)
    finally:
        stop(process)


def _await(path: Path, process: Process, scratch: Scratch) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise died(OURS, scratch, f"cruxd exited with {process.returncode} before it listened")
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
                return
            except OSError:
                time.sleep(0.02)
    raise BenchError(f"cruxd did not listen within {START_TIMEOUT_S} s")
