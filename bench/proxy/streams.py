"""What a rate cannot show: when the first event of a stream arrives, and who pays for a client that does not read."""

import socket
import time

from bench.errors import BenchError
from bench.proxy import usage

_TIMEOUT_S = 20.0
_WATCHED_S = 3.0


class Timer:
    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def ms(self) -> float:
        return (time.perf_counter() - self._started) * 1000


def first_event_ms(port: int, events_port: int) -> float:
    """From the request to the first event."""
    with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S) as line:
        timer = Timer()
        line.sendall(_request(events_port, "/events"))
        received = b""
        while b"data: 0" not in received:
            data = line.recv(65_536)
            if not data:
                raise BenchError(f"no event arrived, only {received[:200]!r}")
            received += data
        return timer.ms


def unread_growth_mb(port: int, origin_port: int, pid: int) -> float:
    """How far the proxy's memory grows while a client leaves a large response unread."""
    before_mb = usage.rss_mb(pid)
    usage.forget_peak(pid)
    with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S) as line:
        line.sendall(_request(origin_port, "/unread"))
        end = time.monotonic() + _WATCHED_S
        while time.monotonic() < end:
            time.sleep(0.1)
        return max(usage.peak_mb(pid) - before_mb, 0.0)


def _request(origin_port: int, path: str) -> bytes:
    host = f"127.0.0.1:{origin_port}"
    return f"GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n".encode()
