"""Calls over a pipe: encoded ahead, written and read raw, so that the server is what is measured."""

import gc
import json
import os
import select
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from bench.errors import BenchError
from bench.messages import ECHO, FIRST_ID, HANDSHAKE, Era, Json, encode, initialize, initialized
from bench.processes import Process
from bench.results import Named

REPLY_TIMEOUT_S = 20
# Ids come round after this many calls, far beyond the calls in flight.
ENCODED_CALLS = 16_384


@dataclass(slots=True)
class Pipe:
    """A server on stdio with its handshake done and one call checked; every reply has one length."""

    who: str
    write_fd: int
    read_fd: int
    lines: bytes
    line_bytes: int
    reply_bytes: int = 0

    def p50_us(self, seconds: float) -> float:
        """Median time of calls made one after another."""
        took: list[int] = []
        with _watched(self.who, seconds):
            stop_ns = time.perf_counter_ns() + int(seconds * 1e9)
            started = 0
            while started < stop_ns:
                at = len(took) % ENCODED_CALLS * self.line_bytes
                started = time.perf_counter_ns()
                os.write(self.write_fd, self.lines[at : at + self.line_bytes])
                reply = os.read(self.read_fd, 65_536)
                while not reply.endswith(b"\n"):
                    reply += self._more()
                took.append(time.perf_counter_ns() - started)
                if len(reply) != self.reply_bytes:
                    raise BenchError(f"{self.who} answered {reply[:400]!r}")
        return statistics.median(took) / 1000

    def calls_per_s(self, in_flight: int, seconds: float) -> float:
        """Rate with `in_flight` calls waiting: each reply read is followed by one more call."""
        view = memoryview(self.lines + self.lines[: in_flight * self.line_bytes])
        with _watched(self.who, seconds):
            started = time.perf_counter()
            stop = started + seconds
            sent = os.write(self.write_fd, view[: in_flight * self.line_bytes]) // self.line_bytes
            received_bytes = answered = 0
            while (now := time.perf_counter()) < stop:
                replies = os.read(self.read_fd, 65_536)
                received_bytes += len(replies)
                arrived = replies.count(b"\n")
                if not replies:
                    raise BenchError(f"{self.who} closed its output under load")
                if arrived:
                    answered += arrived
                    at = sent % ENCODED_CALLS * self.line_bytes
                    os.write(self.write_fd, view[at : at + arrived * self.line_bytes])
                    sent += arrived
            counted = answered
            while answered < sent:
                replies = self._more()
                received_bytes += len(replies)
                answered += replies.count(b"\n")
        if received_bytes != answered * self.reply_bytes:
            raise BenchError(
                f"{self.who} answered {received_bytes / answered:.1f} bytes a call, not {self.reply_bytes}"
            )
        return counted / (now - started)

    def ask(self, message: Json) -> tuple[Json, int]:
        """One request and its reply, with the length of the reply's line; notifications are passed over."""
        os.write(self.write_fd, encode(message) + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            line += self._more()
        *_, last = line.splitlines()
        reply: Json = json.loads(last)
        return reply, len(last) + 1

    def _more(self) -> bytes:
        if not select.select([self.read_fd], [], [], REPLY_TIMEOUT_S)[0]:
            raise BenchError(f"{self.who} did not answer within {REPLY_TIMEOUT_S} s")
        if data := os.read(self.read_fd, 65_536):
            return data
        raise BenchError(f"{self.who} closed its output in the middle of a reply")


def connect(contender: Named, process: Process, era: Era) -> Pipe:
    """Shake hands where the era does, and check one echo."""
    if process.stdin is None or process.stdout is None:
        raise BenchError(f"{contender.name} was started without pipes")
    encoded = [encode(ECHO.message(era, FIRST_ID + n)) + b"\n" for n in range(ENCODED_CALLS)]
    write_fd, read_fd = process.stdin.fileno(), process.stdout.fileno()
    pipe = Pipe(contender.name, write_fd, read_fd, b"".join(encoded), len(encoded[0]))
    if era == HANDSHAKE:
        pipe.ask(initialize())
        os.write(write_fd, encode(initialized()) + b"\n")
    reply, pipe.reply_bytes = pipe.ask(ECHO.message(era))
    ECHO.check(contender.name, reply)
    return pipe


@contextmanager
def _watched(who: str, seconds: float) -> Iterator[None]:
    """No collector pauses in the loader while it takes times, and no waiting for ever in a raw read."""

    def give_up(signum: int, frame: FrameType | None) -> None:
        raise BenchError(f"{who} stopped answering under load")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds + REPLY_TIMEOUT_S)
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
