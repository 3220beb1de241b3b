"""Requests to a model's server, against a real HTTP server on loopback."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dari.errors import TimedOut
from dari.knowledge.errors import ConfigInvalid, ModelNotInstalled, ModelUnreachable
from dari.knowledge.model_server import ModelServer

Reply = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def _serving(reply: Reply) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            reply(self)

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


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    handler.send_response(status)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _body(handler: BaseHTTPRequestHandler) -> dict[str, object]:
    return json.loads(handler.rfile.read(int(handler.headers["content-length"])))  # type: ignore[no-any-return]


def test_a_request_carries_its_body_and_the_key_of_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")

    def reply(handler: BaseHTTPRequestHandler) -> None:
        seen = {"path": handler.path, "key": handler.headers["authorization"], "body": _body(handler)}
        _send(handler, 200, json.dumps(seen).encode())

    with _serving(reply) as endpoint:
        assert ModelServer(endpoint, "MY_KEY").post("/embeddings", {"input": "다리"}) == {
            "path": "/v1/embeddings",
            "key": "Bearer s3cret",
            "body": {"input": "다리"},
        }


def test_a_stream_gives_its_events_until_done() -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        _body(handler)
        _send(handler, 200, b': hello\n\ndata: {"n": 1}\n\ndata: {"n": 2}\n\ndata: [DONE]\n\ndata: {"n": 3}\n\n')

    with _serving(reply) as endpoint:
        assert list(ModelServer(endpoint).stream("/chat/completions", {})) == [{"n": 1}, {"n": 2}]


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        with pytest.raises(ModelUnreachable) as failure:
            ModelServer(f"http://127.0.0.1:{reserved.getsockname()[1]}").post("/x", {})
    assert failure.value.hint


def test_an_unknown_model_is_not_installed() -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        _body(handler)
        _send(handler, 404, b'{"error": {"message": "model \'x\' not found"}}')

    with _serving(reply) as endpoint, pytest.raises(ModelNotInstalled) as failure:
        ModelServer(endpoint).post("/chat/completions", {})
    assert "'x' not found" in failure.value.message


def test_a_refused_key_is_a_fault_of_the_configuration_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")

    def reply(handler: BaseHTTPRequestHandler) -> None:
        _body(handler)
        _send(handler, 401, b'{"error": "bad key"}')

    with _serving(reply) as endpoint, pytest.raises(ConfigInvalid) as failure:
        ModelServer(endpoint, "MY_KEY").post("/chat/completions", {})
    assert "s3cret" not in failure.value.message + failure.value.hint


def test_a_key_that_is_not_set_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ConfigInvalid) as failure:
        ModelServer("http://127.0.0.1:9", "MY_KEY").post("/x", {})
    assert "MY_KEY" in failure.value.message


def test_a_silent_server_times_out() -> None:
    release = threading.Event()

    def reply(handler: BaseHTTPRequestHandler) -> None:
        release.wait(30)

    with _serving(reply) as endpoint:
        try:
            with pytest.raises(TimedOut):
                ModelServer(endpoint, timeout_s=0.2).post("/x", {})
        finally:
            release.set()


@pytest.mark.parametrize("body", [b"<html>", b"", b"\xff\xfe"])
def test_a_reply_that_is_not_json_is_unreachable(body: bytes) -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        _body(handler)
        _send(handler, 200, body)

    with _serving(reply) as endpoint, pytest.raises(ModelUnreachable):
        ModelServer(endpoint).post("/x", {})


def test_an_endpoint_needs_a_scheme() -> None:
    with pytest.raises(ConfigInvalid):
        ModelServer("file:///etc/passwd").post("", {})
