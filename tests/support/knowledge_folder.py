"""A knowledge base of its own for a test: settings, files with words that occur once, a check that all is in step."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from blake3 import blake3

from dari.knowledge.backend import open_backend
from dari.knowledge.config import Settings, load_settings
from dari.knowledge.ingest.pipeline import ingest
from dari.knowledge.ingest.report import Listener
from dari.knowledge.search.query import parse_query
from dari.knowledge.store.records import EVERY_DOCUMENT
from dari.knowledge.store.store import Store
from dari.knowledge.wire.reports import IngestProgressV1, IngestReportV1

OLD_S = 1_700_000_000
SERVER: list[str] = []
"""Has the URL of PostgreSQL while a test is about a store there (`either_store`)."""


def make_settings(folder: Path, environ: Mapping[str, str] | None = None, **places: object) -> Settings:
    """Notes in `folder/notes`, everything else in `folder/home`; one parser process, for tests run side by side."""
    (folder / "notes").mkdir(exist_ok=True)
    variables = {
        "DARI_HOME": str(folder / "home"),
        "KEBAB_WORKSPACE_ROOT": str(folder / "notes"),
        "KEBAB_INGEST_PARSE_PROCESSES": "1",
    }
    variables |= dict(environ or {})
    return load_settings(None, variables | store_environ(Path(variables["DARI_HOME"])), **places)  # type: ignore[arg-type]


def store_environ(home: Path) -> dict[str, str]:
    """The store that belongs to a home: in its data folder, or a schema of its own in PostgreSQL."""
    if not SERVER:
        return {}
    name = hashlib.sha256(str(home).encode()).hexdigest()[:20]
    return {"KEBAB_STORE_URL": SERVER[0], "KEBAB_STORE_SCHEMA": f"t{name}"}


def write_old(path: Path, text: str | bytes, age: int = 0) -> Path:
    """A file that was last written long ago, so that its time can be trusted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (OLD_S - age, OLD_S - age))
    return path


def unique_word(name: str, section: int = 0) -> str:
    """A word for a section of a note, of consonants only: analysers leave it whole."""
    return "qq" + "".join(
        "bcdfghjklmnp"[int(digit, 16) % 12] for digit in blake3(f"{name}/{section}".encode()).hexdigest()[:16]
    )


def note(name: str, sections: int = 2) -> str:
    """Markdown with a word in each section that no other note has."""
    parts = (f"# Part {number}\n\nThis is about {unique_word(name, number)} and more." for number in range(sections))
    return "\n\n".join(parts) + "\n"


def run(settings: Settings, root: Path | None = None, **options: object) -> IngestReportV1:
    return ingest(settings, root, **options)  # type: ignore[arg-type]


def events_of(settings: Settings, **options: object) -> tuple[list[IngestProgressV1], IngestReportV1]:
    events: list[IngestProgressV1] = []
    listener: Listener = events.append
    return events, ingest(settings, listener=listener, **options)  # type: ignore[arg-type]


def opened(settings: Settings) -> Store:
    """The store, which closes all that was opened for it."""
    backend = open_backend(settings)
    try:
        store = backend.open_store()
    except BaseException:
        backend.close()
        raise
    if settings.config.store.url:
        store.close = backend.close  # type: ignore[method-assign]
    return store


def found_paths(settings: Settings, query: str) -> list[str]:
    """Paths of the documents that a lexical search finds, in order."""
    with closing(opened(settings)) as store, closing(open_backend(settings)) as backend:
        hits = backend.open_lexical().search(parse_query(query).terms, 10)
        chunks = store.chunks(number for number, _ in hits)
        documents = store.documents(chunk.doc_no for chunk in chunks.values())
        found = [documents.get(chunks[number].doc_no) for number, _ in hits if number in chunks]
        return [one.path for one in found if one is not None]  # a watcher may remove one between the two reads


def check_consistent(settings: Settings) -> int:
    """The store is whole, and the index holds exactly its chunks. Returns the number of documents."""
    if not settings.config.store.url:
        with closing(sqlite3.connect(settings.data.sqlite)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    with closing(opened(settings)) as store, closing(open_backend(settings)) as backend:
        documents = store.list_documents(limit=100_000)
        chunks = {one.path: store.chunks_of(one.doc_no) for one in documents}
        assert [one.path for one in documents if one.chunk_count != len(chunks[one.path])] == []
        texts = {chunk.chunk_no: chunk.text for found in chunks.values() for chunk in found}
        assert set(store.chunk_nos_of(EVERY_DOCUMENT)) == set(texts)
        lexical = backend.open_lexical()
        indexed, stored = (lexical.revision, lexical.chunk_count), (store.revision(), len(texts))
        assert indexed == stored, f"revision and chunks: index {indexed}, store {stored}"
        for number, text in texts.items():
            for word in (one for one in text.split() if one.startswith("qq")):
                assert [found for found, _ in lexical.search(parse_query(word).terms, 5)] == [number], word
    return len(documents)
