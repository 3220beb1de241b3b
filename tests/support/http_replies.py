"""An HTTP server on loopback that answers every request by one function of the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(reply: Reply) -> Iterator[str]:
    """GET and POST; the address ends with `/v1`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply(self)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, location: str = "") -> None:
    handler.send_response(status)
    handler.send_header("content-length", str(len(body)))
    if location:
        handler.send_header("location", location)
    handler.end_headers()
    handler.wfile.write(body)
