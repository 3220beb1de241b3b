"""How long one hostile input holds up everybody else: a task that wants to run every 2 ms, and the memory that grew."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter, thread_time

_BEAT_S = 0.002
ATTACK_LIMIT_S = 90.0


@dataclass(frozen=True, slots=True)
class Stall:
    longest_ms: float
    """How late the task came at most."""
    busy_ms: float
    """How long this thread computed at most before it came; the rest of the delay belongs to a busy machine."""
    grown_mb: float


async def beside(attack: Callable[[], Awaitable[object]]) -> Stall:
    """Run the attack in this loop, which serves others too."""
    longest_s = busy_s = 0.0

    async def beat() -> None:
        nonlocal longest_s, busy_s
        while True:
            before, computed = perf_counter(), thread_time()
            await asyncio.sleep(_BEAT_S)
            longest_s = max(longest_s, perf_counter() - before - _BEAT_S)
            busy_s = max(busy_s, thread_time() - computed)

    _reset_peak()
    before_mb = _memory_mb("VmHWM")
    task = asyncio.create_task(beat())
    await asyncio.sleep(0.05)
    longest_s = busy_s = 0.0
    try:
        async with asyncio.timeout(ATTACK_LIMIT_S):
            await attack()
    finally:
        await asyncio.sleep(0.01)
        task.cancel()
    return Stall(longest_s * 1000, busy_s * 1000, max(0.0, _memory_mb("VmHWM") - before_mb))


async def sent(port: int, data: bytes, *, reads: bool = True) -> None:
    """Send bytes from a thread until all is sent or the peer hangs up; what it answers is read and dropped."""
    await asyncio.to_thread(_send, port, data, reads)


def _send(port: int, data: bytes, reads: bool) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=ATTACK_LIMIT_S) as line:
        reader = threading.Thread(target=_drain, args=(line,), daemon=True)
        reader.start()
        try:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the peer has had enough
        if reads:
            reader.join(ATTACK_LIMIT_S)


def _drain(line: socket.socket) -> None:
    try:
        while line.recv(65536):
            pass
    except OSError:
        pass


def _reset_peak() -> None:
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def _memory_mb(field: str) -> float:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
    return 0.0
