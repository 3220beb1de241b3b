"""Requests to a model's server, against a real HTTP server on loopback."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from dari.errors import TimedOut
from dari.knowledge.errors import ConfigInvalid, ModelNotInstalled, ModelUnreachable
from dari.knowledge.model_server import ModelServer
from tests.support.http_replies import send, serving


def _body(handler: BaseHTTPRequestHandler) -> dict[str, object]:
    return json.loads(handler.rfile.read(int(handler.headers["content-length"])))  # type: ignore[no-any-return]


def test_a_request_carries_its_body_and_the_key_of_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")

    def reply(handler: BaseHTTPRequestHandler) -> None:
        seen = {"path": handler.path, "key": handler.headers["authorization"], "body": _body(handler)}
        send(handler, 200, json.dumps(seen).encode())

    with serving(reply) as endpoint:
        assert ModelServer(endpoint, "MY_KEY").post("/embeddings", {"input": "다리"}) == {
            "path": "/v1/embeddings",
            "key": "Bearer s3cret",
            "body": {"input": "다리"},
        }


def test_a_stream_gives_its_events_until_done() -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        _body(handler)
        send(handler, 200, b': hello\n\ndata: {"n": 1}\n\ndata: {"n": 2}\n\ndata: [DONE]\n\ndata: {"n": 3}\n\n')

    with serving(reply) as endpoint:
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
        send(handler, 404, b'{"error": {"message": "model \'x\' not found"}}')

    with serving(reply) as endpoint, pytest.raises(ModelNotInstalled) as failure:
        ModelServer(endpoint).post("/chat/completions", {})
    assert "'x' not found" in failure.value.message


def test_a_refused_key_is_a_fault_of_the_configuration_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")

    def reply(handler: BaseHTTPRequestHandler) -> None:
        _body(handler)
        send(handler, 401, b'{"error": "bad key"}')

    with serving(reply) as endpoint, pytest.raises(ConfigInvalid) as failure:
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

    with serving(reply) as endpoint:
        try:
            with pytest.raises(TimedOut):
                ModelServer(endpoint, timeout_s=0.2).post("/x", {})
        finally:
            release.set()


@pytest.mark.parametrize("body", [b"<html>", b"", b"\xff\xfe"])
def test_a_reply_that_is_not_json_is_unreachable(body: bytes) -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        _body(handler)
        send(handler, 200, body)

    with serving(reply) as endpoint, pytest.raises(ModelUnreachable):
        ModelServer(endpoint).post("/x", {})


def test_an_endpoint_needs_a_scheme() -> None:
    with pytest.raises(ConfigInvalid):
        ModelServer("file:///etc/passwd").post("", {})


@contextmanager
def _endless(piece: bytes, *, head: bytes = b"", every_s: float = 0.01) -> Iterator[tuple[str, threading.Event]]:
    """A server that sends `piece` again and again, until its client is gone; the event says that it is."""
    gone, ended = threading.Event(), threading.Event()

    def reply(handler: BaseHTTPRequestHandler) -> None:
        _body(handler)
        try:
            handler.wfile.write(b"HTTP/1.0 200 OK\r\n" + head)
            while not gone.wait(every_s):
                handler.wfile.write(piece)
                handler.wfile.flush()
        except OSError:
            pass
        finally:
            handler.close_connection = True
            ended.set()

    with serving(reply) as endpoint:
        try:
            yield endpoint, ended
        finally:
            gone.set()


@pytest.mark.parametrize("piece", [b": heartbeat\n\n", b'data: {"n": 1}\n\n', b"x"])
def test_a_stream_without_end_is_late_however_often_it_sends(piece: bytes) -> None:
    with _endless(piece, head=b"\r\n") as (endpoint, ended), pytest.raises(TimedOut):
        try:
            list(ModelServer(endpoint, timeout_s=0.1).stream("/chat/completions", {}))
        finally:
            assert ended.wait(10), "the connection was left open"


@pytest.mark.parametrize("head", [b"", b"\r\n", b"content-length: 1000000\r\n\r\n"])
def test_a_reply_that_drips_is_late(head: bytes) -> None:
    """In the headers as in the body: each byte begins the socket's own time again."""
    with _endless(b"a", head=head) as (endpoint, ended), pytest.raises(TimedOut):
        try:
            ModelServer(endpoint, timeout_s=0.3).post("/embeddings", {})
        finally:
            assert ended.wait(10), "the connection was left open"


def test_a_stream_of_more_bytes_than_allowed_is_ended() -> None:
    event = b'data: {"n": "' + b"x" * 5000 + b'"}\n\n'
    with _endless(event, head=b"\r\n", every_s=0) as (endpoint, _), pytest.raises(ModelUnreachable) as failure:
        list(ModelServer(endpoint).stream("/chat/completions", {}, 100_000))
    assert "100000" in failure.value.message


@pytest.mark.parametrize("body", [b"[" * 200_000, b"9" * 10_000, b'{"a":' * 100_000])
def test_json_that_no_decoder_takes_is_unreachable(body: bytes) -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        _body(handler)
        send(handler, 200, body)

    with serving(reply) as endpoint, pytest.raises(ModelUnreachable):
        ModelServer(endpoint).post("/x", {})


def test_a_reply_that_is_not_http_is_unreachable() -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        _body(handler)
        handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

    with serving(reply) as endpoint, pytest.raises(ModelUnreachable):
        ModelServer(endpoint).post("/x", {})


@pytest.mark.parametrize("key", ["s3cret\r", "s3cret\n", "s3\x00cret", "s3cret\u2014"])
def test_a_key_with_a_strange_character_is_a_fault_of_the_configuration_and_is_not_shown(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The environment itself cannot hold a zero byte.
    monkeypatch.setattr("dari.knowledge.model_server.os.environ", {"MY_KEY": key})
    with pytest.raises(ConfigInvalid) as failure:
        ModelServer("http://127.0.0.1:9", "MY_KEY").post("/x", {})
    assert "MY_KEY" in failure.value.message
    assert "cret" not in failure.value.message + failure.value.hint


@pytest.mark.parametrize("endpoint", ["http://", "http://[::1", "http://host:port/v1", "https:///v1"])
def test_an_endpoint_that_names_no_server_is_a_fault_of_the_configuration(endpoint: str) -> None:
    with pytest.raises(ConfigInvalid):
        ModelServer(endpoint).post("/x", {})


@pytest.mark.parametrize(
    "endpoint", [f"http://{'a' * 70}.example/v1", "http://127.0.0.1:9/경로", "http://127.0.0.1:9/a b"]
)
def test_an_address_that_cannot_be_asked_is_unreachable(endpoint: str) -> None:
    with pytest.raises(ModelUnreachable):
        ModelServer(endpoint).post("/x", {})
