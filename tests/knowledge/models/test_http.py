"""Models behind HTTP, against a real small server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dari.errors import DariError, Failed, TimedOut
from dari.knowledge.errors import ConfigInvalid, ModelNotInstalled, ModelUnreachable
from dari.knowledge.models.model import EmbeddingModel, load_model
from dari.knowledge.models.settings import EmbeddingSettings

DIM = 8


class EmbeddingServer(ThreadingHTTPServer):
    """`/v1/embeddings` and `/api/embed`; a text's vector is made of its characters."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, dict[str, Any], str]] = []
        self.statuses: list[int] = []  # what to answer first, before 200
        self.dim = DIM
        self.hangs = threading.Event()
        self.hangs.set()
        self.answer: bytes | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: EmbeddingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, body, self.headers.get("Authorization", "")))
        self.server.hangs.wait(30)
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        rows = [[float(sum(map(ord, text)) % (n + 7)) + 1 for n in range(self.server.dim)] for text in body["input"]]
        if self.path == "/api/embed":
            found: dict[str, Any] = {"embeddings": rows}
        else:  # out of order, as the field `index` allows
            found = {"data": [{"index": n, "embedding": row} for n, row in enumerate(rows)][::-1]}
        data = self.server.answer or json.dumps(found if status == 200 else {"error": "no such model"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _served() -> Iterator[EmbeddingServer]:
    server = EmbeddingServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.hangs.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _model(server: EmbeddingServer, data_dir: Path, **settings: Any) -> EmbeddingModel:
    chosen = {"provider": "openai", "endpoint": server.url, "model": "bge-m3", **settings}
    model = load_model(EmbeddingSettings(**chosen), data_dir)
    assert model is not None
    return model


@pytest.mark.parametrize(("provider", "path"), [("openai", "/v1/embeddings"), ("ollama", "/api/embed")])
def test_passages_go_in_batches_with_their_prefix_and_come_back_in_order(
    tmp_path: Path, provider: str, path: str
) -> None:
    with _served() as server:
        model = _model(server, tmp_path, provider=provider, batch_size=3, passage_prefix="passage: ", max_chars=5)
        rows = model.embed_passages([f"text {n}" for n in range(7)])
        alone = model.embed_passages(["text 5 is cut"])
    assert [(asked, len(body["input"])) for asked, body, _ in server.requests[:3]] == [(path, 3), (path, 3), (path, 1)]
    assert server.requests[0][1]["input"][0] == "passage: text "
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.allclose(rows[5], alone[0])


@pytest.mark.parametrize(
    ("given", "asked"),
    [("", "/v1/embeddings"), ("/v1", "/v1/embeddings"), ("/v1/embeddings", "/v1/embeddings"), ("/x/", "/x/embeddings")],
)
def test_an_endpoint_may_end_where_people_end_it(tmp_path: Path, given: str, asked: str) -> None:
    with _served() as server:
        _model(server, tmp_path, endpoint=server.url + given).embed_query("hello")
    assert server.requests[0][0] == asked


def test_the_dimension_is_known_without_the_server_after_the_first_time(tmp_path: Path) -> None:
    with _served() as server:
        assert _model(server, tmp_path).dim == DIM
    assert _model(server, tmp_path).dim == DIM
    with pytest.raises(ModelUnreachable):
        _model(server, tmp_path, model="other").dim  # noqa: B018


def test_the_key_comes_from_the_environment_and_stays_out_of_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    with _served() as server:
        model = _model(server, tmp_path, api_key_env="MY_KEY")
        model.embed_query("one")
        server.statuses = [401]
        with pytest.raises(ConfigInvalid) as caught:
            model.embed_query("two")
        monkeypatch.delenv("MY_KEY")
        with pytest.raises(ConfigInvalid):
            model.embed_query("three")
    assert server.requests[0][2] == "Bearer sk-very-secret"
    assert "secret" not in str(caught.value) + caught.value.hint


def test_a_busy_server_is_asked_again(tmp_path: Path) -> None:
    with _served() as server:
        server.statuses = [429, 503]
        assert _model(server, tmp_path).embed_query("hello").shape == (DIM,)
        server.statuses = [503, 503, 503]
        with pytest.raises(ModelUnreachable):
            _model(server, tmp_path).embed_query("again")
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("status", "kind"), [(404, ModelNotInstalled), (500, ModelUnreachable), (302, ModelUnreachable)]
)
def test_a_refusal_says_what_to_do(tmp_path: Path, status: int, kind: type[DariError]) -> None:
    with _served() as server:
        server.statuses = [status]
        with pytest.raises(kind) as caught:
            _model(server, tmp_path, provider="ollama").embed_query("hello")
    assert caught.value.hint


def test_a_server_that_does_not_answer_is_left_after_the_time_limit(tmp_path: Path) -> None:
    with _served() as server:
        server.hangs.clear()
        with pytest.raises(TimedOut):
            _model(server, tmp_path, timeout_s=0.2).embed_query("hello")


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"{}",
        b'{"data":[]}',
        b'{"data":[{"embedding":[1]},{"embedding":[2]}]}',
        b'{"data":[{"embedding":[1e999]}]}',
    ],
)
def test_an_answer_without_the_vectors_that_were_asked_for_is_refused(tmp_path: Path, answer: bytes) -> None:
    with _served() as server:
        server.answer = answer
        with pytest.raises((Failed, ModelUnreachable)):
            _model(server, tmp_path).embed_query("hello")


def test_a_model_that_changed_its_dimension_is_refused(tmp_path: Path) -> None:
    with _served() as server:
        _model(server, tmp_path).embed_query("hello")
        server.dim = DIM + 1
        with pytest.raises(Failed, match="dimensions"):
            _model(server, tmp_path).embed_query("again")


@pytest.mark.parametrize("settings", [{"endpoint": ""}, {"model": "auto"}, {"endpoint": "file:///etc/passwd"}])
def test_settings_that_lack_something_are_refused(tmp_path: Path, settings: dict[str, str]) -> None:
    given = {"provider": "openai", "endpoint": "http://127.0.0.1:1", "model": "m", **settings}
    with pytest.raises(ConfigInvalid):
        load_model(EmbeddingSettings(**given), tmp_path)  # type: ignore[arg-type]


def test_two_servers_or_prefixes_are_two_models(tmp_path: Path) -> None:
    base = EmbeddingSettings(provider="openai", endpoint="http://127.0.0.1:1", model="BAAI/bge-m3")
    others = [
        base,
        EmbeddingSettings(provider="openai", endpoint="http://127.0.0.1:2", model="BAAI/bge-m3"),
        EmbeddingSettings(provider="openai", endpoint="http://127.0.0.1:1", model="BAAI/bge-m3", passage_prefix="p"),
    ]
    models = [load_model(settings, tmp_path) for settings in others]
    keys = [model.key for model in models if model is not None]
    assert len(set(keys)) == 3
    assert all(key.startswith("baai-bge-m3-") for key in keys)


@pytest.mark.parametrize(
    "answer",
    [
        b'{"data": [{"embedding": []}]}',
        b'{"data": [{"embedding": [1e39, 0.0]}]}',
        b'{"data": [{"embedding": [NaN, 0.0]}]}',
        b'{"data": [{"embedding": [1' + b"0" * 400 + b"]}]}",
        b'{"data": ' + b"[" * 100_000,
    ],
)
def test_vectors_that_are_none_are_refused(tmp_path: Path, answer: bytes) -> None:
    with _served() as server, pytest.raises(DariError):
        server.answer = answer
        _model(server, tmp_path).embed_query("bridge")
