"""Cold start: from the spawn of a server on stdio to the first byte line it answers; `dari mcp` with its hub, too."""

import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.contenders import OURS, Contender
from bench.errors import BenchError
from bench.machine import ROOT, clean_environment
from bench.messages import encode, initialize
from bench.processes import START_TIMEOUT_S, Process, Scratch, died, spawn, stop

_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
_PING = b'{"jsonrpc":"2.0","id":"hub","method":"ping"}\n'


def start_ms(contender: Contender, scratch: Scratch) -> float:
    command = contender.command("stdio", scratch.token_path)
    with _started(contender, command, scratch, clean_environment()) as (_, took_ms):
        return took_ms


@dataclass(frozen=True, slots=True)
class HubStarts:
    """`dari mcp` as clients start it, in a home of its own. `close` ends the hub."""

    scratch: Scratch
    home: Path

    @classmethod
    def open(cls, scratch: Scratch) -> "HubStarts":
        return cls(scratch, Path(tempfile.mkdtemp(prefix="hub-", dir=scratch.path)))

    def warm_ms(self) -> float:
        """The hub runs."""
        return self._start_ms()

    def known_ms(self) -> float:
        """No hub runs; one has answered with these options before."""
        self._stop_hub()
        return self._start_ms()

    def first_ms(self) -> float:
        """No hub runs, and none ever has."""
        self._stop_hub()
        shutil.rmtree(self.home)
        self.home.mkdir()
        return self._start_ms()

    def close(self) -> None:
        self._stop_hub()

    def _start_ms(self) -> float:
        command = [str(OURS.python), "-m", "dari", "mcp"]
        with _started(OURS, command, self.scratch, self._environment()) as (process, took_ms):
            assert process.stdin is not None
            process.stdin.write(_INITIALIZED + _PING)
            # Only the hub answers that, so that it is there to be stopped.
            while b'"id":"hub"' not in read_line(OURS, process, self.scratch):
                pass
            return took_ms

    def _stop_hub(self) -> None:
        command = [str(OURS.python), "-m", "dari", "remote", "daemon", "stop"]
        environment = self._environment()
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=START_TIMEOUT_S)
        if done.returncode:
            raise BenchError(f"the hub was not stopped: {done.stderr.decode(errors='replace')[-400:]}")

    def _environment(self) -> dict[str, str]:
        return {**clean_environment(), "HOME": str(self.home), "DARI_HOME": str(self.home / "dari")}


@contextmanager
def _started(
    contender: Contender, command: list[str], scratch: Scratch, environment: dict[str, str]
) -> Iterator[tuple[Process, float]]:
    """The process once it has answered `initialize`, and how long that took."""
    started = time.perf_counter()
    process = spawn(contender, command, scratch, pipes=True, env=environment)
    try:
        if process.stdin is None:
            raise died(contender, scratch, "has no pipes")
        process.stdin.write(encode(initialize()) + b"\n")
        reply = read_line(contender, process, scratch)
        took_ms = (time.perf_counter() - started) * 1000
        if b'"protocolVersion"' not in reply:
            raise died(contender, scratch, f"answered initialize with {reply[:400]!r}")
        yield process, took_ms
    finally:
        stop(process)


def read_line(contender: Contender, process: Process, scratch: Scratch) -> bytes:
    """What it says up to the end of a line; perhaps several lines."""
    if process.stdout is None:
        raise died(contender, scratch, "has no pipes")
    reply = b""
    while not reply.endswith(b"\n"):
        if not select.select([process.stdout], [], [], START_TIMEOUT_S)[0]:
            raise died(contender, scratch, f"did not answer within {START_TIMEOUT_S} s")
        data = process.stdout.read(65_536)
        if not data:
            raise died(contender, scratch, "closed its output before it answered")
        reply += data
    return reply


HUB_STARTS: tuple[tuple[str, float, Callable[[HubStarts], float]], ...] = (
    ("hub warm", 0.1, HubStarts.warm_ms),
    ("hub cold, its last answer known", 0.4, HubStarts.known_ms),
    ("hub cold, the first start ever", 0.4, HubStarts.first_ms),
)
"""What is measured of `dari mcp`, and at most how much of the SDK's time it may take."""
