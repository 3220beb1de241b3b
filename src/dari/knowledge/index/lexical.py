"""The lexical index: BM25 over analysed text, in tantivy.

A chunk is one document with two fields: `terms`, all that the analyser makes of its text, its headings and its path (as
BM25F does with fields of equal weight: one more occurrence for each term of the title), and `words`, one term a word
with positions, for quoted phrases. The revision of the store that a commit belongs to is a document of its own
(`chunk_no` 0), so it is committed with the rest or not at all.
"""

from __future__ import annotations

import math
import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dari.errors import Conflict, Unavailable
from dari.knowledge.index.analyzer import ANALYZER_VERSION, index_terms, phrase_terms, words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import tantivy

INDEX_VERSION = f"tantivy-0.27-{ANALYZER_VERSION}"
_VERSION_FILE = "index_version"
_REVISION_NO = 0  # chunk_no of the document that holds the revision
_UNUSED_NO = -1  # chunk_no of no document
_WRITER_HEAP_BYTES = 64_000_000
_MAX_TERM_SET = 4096  # a filter of at most so many chunks goes into the query; a wider one is applied to what it finds
_FIRST_OVERFETCH = 4


class LexicalIndex:
    """One index folder. Reads are thread-safe; writes belong to the one writer of the store."""

    def __init__(self, path: Path, index: tantivy.Index, writer: tantivy.IndexWriter | None, was_reset: bool) -> None:
        self.path = path
        self.was_reset = was_reset
        """An index that could not be read, or of another version, was replaced by an empty one of revision 0."""
        self._index = index
        self._schema = index.schema
        self._writer = writer
        self._lock = threading.Lock()
        self._reloading = threading.Lock()
        self.reload()

    @classmethod
    def open(cls, path: Path, writable: bool = False) -> LexicalIndex:
        """Open the index as its writer or as one of its readers. The writer replaces one that is unreadable."""
        import tantivy

        was_reset = False
        if writable:
            was_reset = _prepare(path)
        elif not _is_current(path):
            raise Unavailable(
                f"no lexical index of version {INDEX_VERSION} is at {path}", "run kebab ingest, which makes it"
            )
        try:
            index = tantivy.Index(_schema(), path=str(path)) if writable else tantivy.Index.open(str(path))
        except ValueError as error:
            if not writable:
                raise Unavailable(
                    f"the lexical index at {path} cannot be read: {error}", "run kebab ingest to rebuild it"
                ) from None
            _make_empty(path)
            was_reset, index = True, tantivy.Index(_schema(), path=str(path))
        index.config_reader("manual")
        return cls(path, index, _open_writer(index, path) if writable else None, was_reset)

    # --- reading

    @property
    def place(self) -> str:
        return str(self.path)

    @property
    def revision(self) -> int:
        """The store's revision that the searched commit holds; 0 for an empty index."""
        return self._revision

    @property
    def chunk_count(self) -> int:
        """Chunks that can be found."""
        return max(int(self._searcher.num_docs) - (self._revision > 0), 0)

    @property
    def has_changed(self) -> bool:
        """Has the writer committed since `reload`? One look at the file system."""
        return _stamp(self.path) != self._stamp

    def reload(self) -> None:
        """Search what was committed last."""
        import tantivy

        with self._reloading:  # else a slower thread puts the commit before back under the newer one's stamp
            self._stamp = _stamp(self.path)
            self._index.reload()
            searcher = self._index.searcher()
            found = searcher.search(tantivy.Query.term_query(self._schema, "chunk_no", _REVISION_NO), 1, count=False)
            values = searcher.fast_field_values("revision", [address for _, address in found.hits])
            self._revision = int(values[0] or 0) if values else 0
            self._searcher = searcher

    def search(
        self,
        terms: Mapping[str, float] | Sequence[str],
        k: int,
        allowed: Collection[int] | None = None,
        phrases: Sequence[Sequence[str]] = (),
    ) -> list[tuple[int, float]]:
        """The best `k` chunks as (chunk_no, BM25), best first: any of `terms` (with weights), all of `phrases`.

        `allowed` names the chunks that may be found; give a set.
        """
        if k <= 0 or (allowed is not None and not allowed):
            return []
        query = self._query(terms, phrases)
        if query is None:
            return []
        searcher = self._searcher
        if allowed is None:
            return self._hits(searcher, query, k)
        if len(allowed) <= _MAX_TERM_SET:
            return self._hits(searcher, self._within(query, allowed), k)
        limit, most = k * _FIRST_OVERFETCH, max(int(searcher.num_docs), 1)
        while True:
            found = self._hits(searcher, query, min(limit, most))
            kept = [hit for hit in found if hit[0] in allowed]
            if len(kept) >= k or len(found) < limit or limit >= most:
                return kept[:k]
            limit *= 8

    def chunks_with_phrases(self, phrases: Sequence[Sequence[str]], limit: int) -> list[int]:
        """Chunks that hold every phrase."""
        query = self._query((), phrases)
        return [] if query is None else [number for number, _ in self._hits(self._searcher, query, limit)]

    def idf(self, terms: Iterable[str]) -> dict[str, float]:
        """BM25's weight of each term; 0 for one that no chunk has."""
        searcher = self._searcher
        total = max(int(searcher.num_docs), 1)
        found: dict[str, float] = {}
        for term in terms:
            count = int(searcher.doc_freq("terms", term))
            found[term] = math.log(1 + (total - count + 0.5) / (count + 0.5)) if count else 0.0
        return found

    @property
    def highest_idf(self) -> float:
        """What a term of one single chunk weighs."""
        total = max(int(self._searcher.num_docs), 1)
        return math.log(1 + (total - 0.5) / 1.5)

    def terms_with_prefix(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Terms that begin so, with the number of their chunks, most frequent first."""
        return self._searcher.terms_with_prefix("terms", prefix, limit=limit)

    # --- writing

    def add(self, chunk_no: int, doc_no: int, text: str, title_text: str = "") -> None:
        """Add one chunk. One that may be there already (catching up after a crash) has to be deleted first."""
        import tantivy

        words, title_words = words_of(text), words_of(title_text)
        title_terms = dict.fromkeys(index_terms(title_words).split())
        document = tantivy.Document(
            terms=[f"{index_terms(words)} {' '.join(title_terms)}"],
            words=[phrase_terms(words), phrase_terms(title_words)] if title_words else [phrase_terms(words)],
        )
        document.add_integer("chunk_no", chunk_no)
        document.add_integer("doc_no", doc_no)
        self._writing().add_document(document)

    def delete(self, chunk_no: int) -> None:
        """Remove one chunk; one that is not there is fine."""
        self._writing().delete_documents_by_term("chunk_no", chunk_no)

    def commit(self, revision: int) -> None:
        """Make everything since the last commit findable, as the store's `revision`."""
        import tantivy

        writer = self._writing()
        with self._lock:
            writer.delete_documents_by_term("chunk_no", _REVISION_NO)
            mark = tantivy.Document()
            mark.add_integer("chunk_no", _REVISION_NO)
            mark.add_integer("revision", revision)
            writer.add_document(mark)
            writer.commit()
            self.reload()

    def rollback(self) -> None:
        """Forget everything since the last commit."""
        writer = self._writing()
        writer.rollback()
        _follow_a_killed_writer(writer)

    def clear(self) -> None:
        """Remove every chunk; `commit` makes it so."""
        self._writing().delete_all_documents()

    def close(self) -> None:
        """End merging and let go of the writer's lock; searching an open index stays possible."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.wait_merging_threads()

    # --- inside

    def _writing(self) -> tantivy.IndexWriter:
        if self._writer is None:
            raise Conflict(f"the lexical index at {self.path} was opened for reading", "open it with writable=True")
        return self._writer

    def _query(
        self, terms: Mapping[str, float] | Sequence[str], phrases: Sequence[Sequence[str]]
    ) -> tantivy.Query | None:
        import tantivy

        query, schema, occur = tantivy.Query, self._schema, tantivy.Occur
        weights = terms if isinstance(terms, dict) else dict.fromkeys(terms, 1.0)
        clauses = []
        for term, weight in weights.items():
            clause = query.term_query(schema, "terms", term, "freq")
            clauses.append((occur.Should, clause if weight == 1.0 else query.boost_query(clause, weight)))
        musts = [(occur.Must, self._phrase(words)) for words in phrases if words]
        if not musts:
            return query.boolean_query(clauses) if clauses else None
        return query.boolean_query([*musts, *clauses])

    def _phrase(self, words: Sequence[str]) -> tantivy.Query:
        import tantivy

        if len(words) == 1:
            return tantivy.Query.term_query(self._schema, "words", words[0], "freq")
        return tantivy.Query.phrase_query(self._schema, "words", list(words))

    def _within(self, query: tantivy.Query, allowed: Collection[int]) -> tantivy.Query:
        import tantivy

        chunks = tantivy.Query.term_set_query(self._schema, "chunk_no", list(allowed))
        filtered = tantivy.Query.const_score_query(chunks, 0.0)
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, filtered)])

    @staticmethod
    def _hits(searcher: tantivy.Searcher, query: tantivy.Query, k: int) -> list[tuple[int, float]]:
        hits = searcher.search(query, k, count=False).hits
        numbers = searcher.fast_field_values("chunk_no", [address for _, address in hits])
        return [(int(number), float(score)) for number, (score, _) in zip(numbers, hits, strict=True) if number]


def _schema() -> tantivy.Schema:
    import tantivy

    builder = tantivy.SchemaBuilder()
    # Signed integers: delete_documents_by_term silently finds nothing in an unsigned field (tantivy-py 0.27).
    builder.add_integer_field("chunk_no", indexed=True, fast=True)
    builder.add_integer_field("doc_no", fast=True)
    builder.add_integer_field("revision", fast=True)
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("words", tokenizer_name="whitespace", index_option="position")
    return builder.build()


def _open_writer(index: tantivy.Index, path: Path) -> tantivy.IndexWriter:
    try:
        writer = index.writer(_WRITER_HEAP_BYTES, 1)
    except ValueError as error:
        raise Conflict(
            f"the lexical index at {path} has a writer already: {error}", "end the other ingest first"
        ) from None
    _follow_a_killed_writer(writer)
    return writer


def _follow_a_killed_writer(writer: tantivy.IndexWriter) -> None:
    """Make a new writer safe from what one that was killed may have left.

    Stamps begin again at those of the last commit. A file of deletions that was written for a commit that never came
    may have the name that the next commit needs, so files without a commit are removed. The first operation has the
    stamp of the last commit itself. A merge that was left undone starts with the first new segment, takes a segment
    whose deletions have that stamp for up to date, and so loses a deletion with that stamp: a chunk that was to be
    replaced would be there twice. So the first operation is one that nobody misses.
    """
    with suppress(ValueError):  # a reader holds the lock for long; every commit tries again
        writer.garbage_collect_files()
    writer.delete_documents_by_term("chunk_no", _UNUSED_NO)


def _prepare(path: Path) -> bool:
    """Make the folder; true when something that was there had to go."""
    if _is_current(path):
        return False
    was_there = path.exists() and any(path.iterdir())
    _make_empty(path)
    return was_there


def _make_empty(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)
    path.mkdir(mode=0o700, parents=True)
    (path / _VERSION_FILE).write_text(INDEX_VERSION)


def _is_current(path: Path) -> bool:
    try:
        return (path / _VERSION_FILE).read_text() == INDEX_VERSION
    except (OSError, UnicodeDecodeError):
        return False


def _stamp(path: Path) -> tuple[int, int]:
    """Of the file that every commit replaces."""
    try:
        found = os.stat(f"{path}/meta.json")
    except FileNotFoundError:
        return (0, 0)
    return (found.st_ino, found.st_mtime_ns)
