"""A language model behind a server: what it writes is bounded, whatever it was asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dari.knowledge.ask.chat import ServerChat
from dari.knowledge.ask.prompt import ChatMessage
from dari.knowledge.config import LlmSettings
from dari.knowledge.errors import ModelUnreachable


@contextmanager
def _writing(delta: str) -> Iterator[ServerChat]:
    """A server that writes the same piece until its client is gone."""
    event = b"data: " + json.dumps({"choices": [{"delta": {"content": delta}}]}).encode() + b"\n\n"

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(event)
            except OSError:
                pass

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield ServerChat(LlmSettings(endpoint=f"http://127.0.0.1:{server.server_port}/v1", model="m"))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("delta", ["word ", "x" * 100_000, ""])
def test_a_model_that_does_not_stop_is_stopped(delta: str) -> None:
    pieces: list[str] = []
    with _writing(delta) as chat, pytest.raises(ModelUnreachable) as failure:
        for piece in chat.stream([ChatMessage("user", "How long?")], 100):
            pieces.append(piece)
    assert "more than" in failure.value.message
    assert len("".join(pieces)) <= 16 * 100 + 64 * 1024
