"""Models behind HTTP: any server with OpenAI's `/v1/embeddings` (llama.cpp, vLLM, LM Studio, …), or Ollama's own
`/api/embed`.

Passages go in batches; a server that says it is busy (429, 502 … 504) is asked again twice.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from dari.errors import Failed
from dari.knowledge.errors import ConfigInvalid, ModelUnreachable
from dari.knowledge.model_server import ModelServer
from dari.knowledge.models.manifest import model_key
from dari.knowledge.models.settings import EmbeddingSettings
from dari.knowledge.models.unit_rows import QueryCache, unit_rows
from dari.paths import private_dir, read_regular, write_private
from dari.struct_types import ready

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vectors = NDArray[float32]

RETRIES = 2
FIRST_WAIT_S = 0.25
DEFAULT_LEXICAL_WEIGHT = 0.6
_BUSY = (429, 502, 503, 504)


class _OpenAiRow(Struct):
    embedding: list[float]
    index: int = -1


class _OpenAiReply(Struct):
    data: list[_OpenAiRow]


class _OllamaReply(Struct):
    embeddings: list[list[float]]


class HttpModel:
    """Its dimension is asked for once and kept in the data folder, so that a store opens while the server is away."""

    def __init__(self, settings: EmbeddingSettings, data_dir: Path) -> None:
        if not settings.endpoint.startswith(("http://", "https://")) or settings.model in ("", "auto"):
            raise ConfigInvalid(
                f"embedding.provider = {settings.provider!r} needs embedding.endpoint and embedding.model",
                'such as endpoint = "http://127.0.0.1:11434", model = "bge-m3"',
            )
        self._settings = settings
        base, self._path = _address(settings)
        self._server = ModelServer(base, settings.api_key_env, settings.timeout_s)
        self._key_file = data_dir / "models" / "servers" / f"{self.key}.json"
        self._queries = QueryCache(lambda text: self._embed([settings.query_prefix + text])[0])
        self._dim = 0

    @property
    def key(self) -> str:
        """The server's address is part of it: two servers may serve different weights under one name."""
        one = self._settings
        parts = (one.provider, self._server.endpoint, one.model, one.dim, one.query_prefix, one.passage_prefix)
        name = "".join(char if char.isalnum() else "-" for char in one.model.lower())[:40].strip("-")
        return model_key(name or "server", hashlib.sha256(msgspec.json.encode(parts)).hexdigest())

    @property
    def name(self) -> str:
        return self._settings.model

    @property
    def dim(self) -> int:
        if not self._dim:
            self._dim = self._known_dim() or self._embed(["dimension"]).shape[1]
        return self._dim

    @property
    def lexical_weight(self) -> float:
        weight = self._settings.lexical_weight
        return DEFAULT_LEXICAL_WEIGHT if weight is None else weight

    @property
    def max_tokens(self) -> int:
        return 0

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        one = self._settings
        cut = [one.passage_prefix + text[: one.max_chars] for text in texts]
        rows = [self._embed(cut[at : at + one.batch_size]) for at in range(0, len(cut), one.batch_size)]
        return np.concatenate(rows) if rows else np.zeros((0, self.dim), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        return self._queries.get(text)

    def _embed(self, texts: list[str]) -> Vectors:
        import numpy as np

        body: dict[str, Any] = {"model": self._settings.model, "input": texts}
        if self._settings.provider == "openai":
            body["encoding_format"] = "float"
            if self._settings.dim:
                body["dimensions"] = self._settings.dim
        values = self._decode(self._post(body))
        if len(values) != len(texts) or len({len(row) for row in values}) != 1:
            raise Failed(
                f"{self._server.endpoint} returned {len(values)} vectors for {len(texts)} texts",
                "is this an embedding model?",
            )
        if not values[0]:
            raise Failed(f"{self._server.endpoint} returned vectors without a number", "is this an embedding model?")
        with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite, and is refused
            rows = np.array(values, dtype=np.float32)
        if not np.isfinite(rows).all():
            raise Failed(
                f"{self._server.endpoint} returned a vector with a value that is not finite", "try another model"
            )
        known = self._dim or self._known_dim()
        if known and rows.shape[1] != known:
            raise Failed(
                f"{self._settings.model} at {self._server.endpoint} had {known} dimensions, now {rows.shape[1]}",
                f"if the model was changed there, remove {self._key_file} and run `kebab reset --vector-only`",
            )
        self._remember(rows.shape[1])
        return unit_rows(rows)

    def _decode(self, reply: Any) -> list[list[float]]:
        try:
            if self._settings.provider == "ollama":
                return msgspec.convert(reply, ready(_OllamaReply)).embeddings
            rows = msgspec.convert(reply, ready(_OpenAiReply)).data
        except (msgspec.ValidationError, OverflowError) as error:
            raise Failed(f"{self._server.endpoint} answered without vectors: {error}", "check the endpoint") from error
        if all(row.index >= 0 for row in rows):
            rows.sort(key=lambda row: row.index)
        return [row.embedding for row in rows]

    def _post(self, body: dict[str, Any]) -> Any:
        for attempt in range(RETRIES):
            try:
                return self._server.post(self._path, body)
            except ModelUnreachable as error:
                if error.details.get("status") not in _BUSY:
                    raise
                time.sleep(FIRST_WAIT_S * 2**attempt)  # in a thread of its own; the server said that it is busy
        return self._server.post(self._path, body)

    def _known_dim(self) -> int:
        try:
            return msgspec.json.decode(read_regular(self._key_file, 1024), type=dict[str, int]).get("dim", 0)
        except (OSError, msgspec.MsgspecError):
            return 0

    def _remember(self, dim: int) -> None:
        if self._dim == dim:
            return
        self._dim = dim
        if not self._known_dim():
            private_dir(self._key_file.parent)
            write_private(self._key_file, msgspec.json.encode({"dim": dim}))


def _address(settings: EmbeddingSettings) -> tuple[str, str]:
    """(base, path): an endpoint may end where people end it, at the host, at `/v1`, at the method."""
    base = settings.endpoint.rstrip("/")
    if settings.provider == "ollama":
        return base.removesuffix("/v1").removesuffix("/api/embed"), "/api/embed"
    base = base.removesuffix("/embeddings")
    has_path = "/" in base.partition("://")[2]
    return (base if has_path else f"{base}/v1"), "/embeddings"
