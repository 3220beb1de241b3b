"""A knowledge base of its own for a test: settings, files with words that occur once, a check that all is in step."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from blake3 import blake3

from dari.knowledge.config import Settings, load_settings
from dari.knowledge.index.lexical import LexicalIndex
from dari.knowledge.ingest.pipeline import ingest
from dari.knowledge.ingest.report import Listener
from dari.knowledge.search.query import parse_query
from dari.knowledge.store.sqlite import SqliteStore, open_store
from dari.knowledge.wire.reports import IngestProgressV1, IngestReportV1

OLD_S = 1_700_000_000


def make_settings(folder: Path, environ: Mapping[str, str] | None = None, **places: object) -> Settings:
    """Notes in `folder/notes`, everything else in `folder/home`; one parser process, for tests run side by side."""
    (folder / "notes").mkdir(exist_ok=True)
    variables = {
        "DARI_HOME": str(folder / "home"),
        "KEBAB_WORKSPACE_ROOT": str(folder / "notes"),
        "KEBAB_INGEST_PARSE_PROCESSES": "1",
    }
    return load_settings(None, variables | dict(environ or {}), **places)  # type: ignore[arg-type]


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


def opened(settings: Settings) -> SqliteStore:
    return open_store(settings.data.sqlite)


def found_paths(settings: Settings, query: str) -> list[str]:
    """Paths of the documents that a lexical search finds, in order."""
    with closing(opened(settings)) as store:
        hits = LexicalIndex.open(settings.data.lexical).search(parse_query(query).terms, 10)
        chunks = store.chunks(number for number, _ in hits)
        documents = store.documents(chunk.doc_no for chunk in chunks.values())
        return [documents[chunks[number].doc_no].path for number, _ in hits if number in chunks]


def check_consistent(settings: Settings) -> int:
    """The store is whole, and the index holds exactly its chunks. Returns the number of documents."""
    with closing(sqlite3.connect(settings.data.sqlite)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        wrong = connection.execute(
            "SELECT path, chunk_count, (SELECT count(*) FROM chunks c WHERE c.doc_no = d.doc_no) AS there"
            " FROM documents d WHERE there <> chunk_count"
        ).fetchall()
        assert wrong == []
        numbers = {row[0] for row in connection.execute("SELECT chunk_no FROM chunks")}
        words = connection.execute("SELECT chunk_no, text FROM chunks").fetchall()
        documents: int = connection.execute("SELECT count(*) FROM documents").fetchone()[0]
    lexical = LexicalIndex.open(settings.data.lexical)
    with closing(opened(settings)) as store:
        indexed, stored = (lexical.revision, lexical.chunk_count), (store.revision(), len(numbers))
        assert indexed == stored, f"revision and chunks: index {indexed}, store {stored}"
    for number, text in words:
        for word in (one for one in text.split() if one.startswith("qq")):
            assert [found for found, _ in lexical.search(parse_query(word).terms, 5)] == [number], word
    return documents
