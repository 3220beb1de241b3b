"""A small knowledge base for tests of search: the real store and indexes, and a model that knows a few concepts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dari.knowledge.backend import Backend, FolderBackend
from dari.knowledge.config import SearchSettings, StoreSettings
from dari.knowledge.document import Chunk, Location
from dari.knowledge.paths import DataPaths
from dari.knowledge.search.searcher import Searcher
from dari.knowledge.store.records import DocumentRecord
from tests.support.knowledge_folder import store_environ

if TYPE_CHECKING:
    from dari.knowledge.index.index import VectorRows
    from dari.knowledge.models.model import Vectors

CONCEPTS = (
    ("backup", "backups", "copy", "copies", "백업", "사본"),
    ("key", "keys", "password", "열쇠", "비밀번호"),
    ("night", "evening", "밤", "야간"),
    ("boat", "ferry", "ship", "배", "여객선"),
    ("price", "fare", "cost", "요금", "가격"),
    ("dog", "hound", "강아지", "개"),
)


class ConceptModel:
    """A vector has one axis for each concept, and a faint one of its own for each text."""

    key, name, dim, lexical_weight, max_tokens = "concepts-1", "concepts", len(CONCEPTS) + 8, 0.7, 512

    def __init__(self) -> None:
        self.failure: Exception | None = None

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        return np.stack([self._embed(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        if self.failure:
            raise self.failure
        return self._embed(text)

    def _embed(self, text: str) -> Vectors:
        import numpy as np

        row = np.zeros(self.dim, np.float32)
        for axis, words in enumerate(CONCEPTS):
            row[axis] = sum(word in text.lower() for word in words)
        for place, byte in enumerate(hashlib.sha256(text.encode()).digest()[:8]):
            row[len(CONCEPTS) + place] = byte / 2550
        unit: Vectors = row / np.linalg.norm(row)
        return unit


class Corpus:
    """Documents by path, each a list of chunks; `commit` brings the indexes to the store's revision."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.backend = _backend(home)
        self.store = self.backend.make_store()
        self.lexical = self.backend.open_lexical(writable=True)
        self.model = ConceptModel()
        self.vectors: VectorRows | None = None

    def put(self, path: str, *texts: str, **fields: Any) -> None:
        record = DocumentRecord(
            doc_id=_id(path), path=path, asset_id=_id(path, *texts), media=fields.pop("media", "markdown"), **fields
        )
        chunks = [
            Chunk(_id(path, str(place), text), place, text, (), Location("line", place + 1, place + 1), len(text) // 3)
            for place, text in enumerate(texts)
        ]
        with self.store.write() as transaction:
            transaction.put_document(record, chunks)

    def delete(self, path: str) -> None:
        document = self.store.document_by_path(path)
        assert document is not None
        with self.store.write() as transaction:
            transaction.delete_document(document.doc_no)

    def commit(self) -> None:
        changes = self.store.changes_since(self.lexical.revision)
        for number in changes.deleted:
            self.lexical.delete(number)
        for row in changes.added:
            self.lexical.delete(row.chunk_no)
            self.lexical.add(row.chunk_no, row.doc_no, row.text, row.title_text)
        self.lexical.commit(changes.revision)

    def embed(self) -> None:
        model = self.model
        if self.vectors is None:
            self.vectors = self.backend.open_vectors(model.key, model.dim, 0, writable=True)
        if pending := self.store.pending_chunks(model.key, 1000):
            numbers = [one.chunk_no for one in pending]
            count = self.vectors.append(numbers, model.embed_passages([one.text for one in pending]))
            with self.store.write() as transaction:
                transaction.put_vectors(model.key, model.dim, numbers, count)
            self.vectors.refresh(count)

    def searcher(self, **settings: Any) -> Searcher:
        """With the model where `embed` was called."""
        model = self.model if self.vectors else None
        return Searcher(self.store, self.lexical, self.vectors, model, SearchSettings(**settings))


_SERVED: list[Backend] = []


def _backend(home: Path) -> Backend:
    """Below `home`, or in PostgreSQL while a test is about that (`either_store`)."""
    if not (environ := store_environ(home)):
        return FolderBackend(DataPaths(home))
    from dari.knowledge.postgres_backend import PostgresBackend

    url, schema = environ["KEBAB_STORE_URL"], environ["KEBAB_STORE_SCHEMA"]
    _SERVED.append(PostgresBackend(StoreSettings(url=url, schema=schema)))
    return _SERVED[-1]


def close_served() -> None:
    """End the connections of corpora in PostgreSQL."""
    while _SERVED:
        _SERVED.pop().close()


def corpus_of(home: Path, documents: Mapping[str, str | Sequence[str]]) -> Corpus:
    """Documents in the store and in the lexical index; vectors come with `embed`."""
    corpus = Corpus(home)
    for path, texts in documents.items():
        corpus.put(path, *([texts] if isinstance(texts, str) else texts))
    corpus.commit()
    return corpus


def _id(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
