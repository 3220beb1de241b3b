"""Server processes: started on the server core, ended by their pid, memory read from /proc."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.contenders import Contender
from bench.errors import BenchError
from bench.machine import ROOT, SERVER_CORE, clean_environment, free_port, on_core
from bench.results import Named

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 5
TOKEN = "bench-0123456789abcdef0123456789abcdef"

Process = subprocess.Popen[bytes]


class Scratch:
    """A temporary directory with the token file, wrk's script and the servers' stderr."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="dari-bench-")
        self.path = Path(self._directory.name)
        self.token_path = self.path / "token"
        self.token_path.touch(mode=0o600)
        self.token_path.write_text(TOKEN + "\n")

    def close(self) -> None:
        self._directory.cleanup()

    def log(self, contender: Named) -> Path:
        return self.path / f"{contender.name}.log"


def spawn(
    contender: Named,
    command: list[str],
    scratch: Scratch,
    *,
    pipes: bool,
    env: dict[str, str] | None = None,
    cwd: Path = ROOT,
) -> Process:
    pipe = subprocess.PIPE if pipes else subprocess.DEVNULL
    with on_core(SERVER_CORE), scratch.log(contender).open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=clean_environment() if env is None else env,
            bufsize=0,
            stdin=pipe,
            stdout=pipe,
            stderr=log,
            start_new_session=True,
        )


def stop(process: Process) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not pipe.closed:
            pipe.close()
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_TIMEOUT_S)
    # A worker that was being forked when its parent was told to end (proxy.py, at a cold start) hears of nothing.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def http_server(contender: Contender, scratch: Scratch, tools: int) -> Iterator[tuple[int, Process]]:
    """A listening server of `contender`; yields its port and its process."""
    port = free_port()
    process = spawn(contender, contender.command("http", scratch.token_path, port, tools), scratch, pipes=False)
    try:
        wait_until_listening(contender, process, port, scratch)
        yield port, process
    finally:
        stop(process)


@contextmanager
def stdio_server(contender: Contender, scratch: Scratch, tools: int = 1) -> Iterator[Process]:
    process = spawn(contender, contender.command("stdio", scratch.token_path, 0, tools), scratch, pipes=True)
    try:
        yield process
    finally:
        stop(process)


def rss_mb(process: Process) -> float:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise BenchError(f"/proc/{process.pid}/status has no VmRSS line")


def died(contender: Named, scratch: Scratch, what: str) -> BenchError:
    lines = scratch.log(contender).read_text(errors="replace").splitlines()[-20:]
    return BenchError(f"{contender.name}: {what}; its stderr ends with:\n" + "\n".join(lines))


def wait_until_listening(
    contender: Named, process: Process, port: int, scratch: Scratch, pause_s: float = 0.02
) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise died(contender, scratch, f"exited with {process.returncode} before it listened")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(pause_s)
    raise died(contender, scratch, f"did not listen on {port} within {START_TIMEOUT_S} s")
