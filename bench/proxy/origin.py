"""The origin that all proxies ask: nginx with one worker, plain and TLS, and a stream of events."""

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError
from bench.machine import LOAD_CORE, free_port, on_core
from bench.processes import START_TIMEOUT_S, stop
from bench.proxy.certificates import Pair

JSON_BYTES = 942
DOWNLOAD_BYTES = 100 * 1024 * 1024
UNREAD_BYTES = 200 * 1024 * 1024
EVENT_COUNT = 6
EVENT_PAUSE_S = 0.25

# With the five of nginx itself (Server, Date, Content-Type, Content-Length, Connection) the answer has 7 headers.
_CONFIG = """\
worker_processes 1;
daemon off;
pid {home}/nginx.pid;
error_log {home}/nginx.log error;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  sendfile on;
  keepalive_timeout 120s;
  keepalive_requests 100000000;
  client_body_temp_path {home}/temp; proxy_temp_path {home}/temp; fastcgi_temp_path {home}/temp;
  uwsgi_temp_path {home}/temp; scgi_temp_path {home}/temp;
  server {{
    listen 127.0.0.1:{plain} backlog=4096;
    listen 127.0.0.1:{tls} ssl backlog=4096;
    ssl_certificate {pair.certificate};
    ssl_certificate_key {pair.key};
    ssl_protocols TLSv1.3;
    root {home}/files;
    default_type application/octet-stream;
    location = /api/items {{
      default_type application/json;
      add_header Cache-Control no-store;
      add_header X-Request-Class list;
      return 200 '{json}';
    }}
  }}
}}
"""


_EVENTS_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Origin:
    plain_port: int
    tls_port: int
    events_port: int


def require_nginx() -> str:
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise BenchError("nginx is not on this machine", "apt-get install nginx-light")
    return found


@contextmanager
def running(home: Path, pair: Pair) -> Iterator[Origin]:
    """nginx on the load core, and the stream of events in a thread; both end with the block."""
    nginx = require_nginx()
    plain, tls = free_port(), free_port()
    (home / "files").mkdir()
    _fill(home / "files" / "download", DOWNLOAD_BYTES)
    _fill(home / "files" / "unread", UNREAD_BYTES)
    config = home / "nginx.conf"
    config.write_text(_CONFIG.format(home=home, plain=plain, tls=tls, pair=pair, json=_json()))
    for path in (home, home / "files"):
        path.chmod(0o755)  # the worker of a root nginx is another user
    with on_core(LOAD_CORE):
        process = subprocess.Popen(
            [nginx, "-p", str(home), "-c", str(config), "-e", str(home / "nginx.log")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(home / "nginx.log").open("ab"),
        )
    events = _Events()
    try:
        _wait(process, plain, home / "nginx.log")
        yield Origin(plain, tls, events.port)
    finally:
        events.close()
        stop(process)


def nginx_version() -> str:
    reply = subprocess.run([require_nginx(), "-v"], capture_output=True, text=True, timeout=10)
    return reply.stderr.partition("/")[2].split()[0] if "/" in reply.stderr else "unknown"


def _json() -> str:
    items = [{"id": number, "name": f"item {number}", "tags": ["a", "b"]} for number in range(16)]
    text = json.dumps({"items": items, "note": ""})
    return json.dumps({"items": items, "note": "x" * (JSON_BYTES - len(text))})


def _fill(path: Path, size_bytes: int) -> None:
    """A file of zeros without blocks of its own: nothing is read from a disk while it is sent."""
    with path.open("wb") as file:
        file.truncate(size_bytes)
    os.chmod(path, 0o644)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise BenchError(f"nginx did not listen on {port}: {log.read_text(errors='replace')[-2000:]}")


class _Events:
    """Server-sent events: one at once, then one every 250 ms; each connection gets its own thread."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line:
            try:
                line.recv(65_536)
                line.sendall(_EVENTS_HEAD)
                for number in range(EVENT_COUNT):
                    event = b"data: %d\n\n" % number
                    line.sendall(b"%x\r\n%b\r\n" % (len(event), event))
                    time.sleep(EVENT_PAUSE_S)
                line.sendall(b"0\r\n\r\n")
            except OSError:
                pass
