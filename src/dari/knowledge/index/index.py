"""The two indexes as protocols: words (`Lexical`) and vectors (`VectorRows`). In the data folder they are tantivy and a
mapped file, in PostgreSQL tables; the searcher and the writers know neither.

Reads are thread-safe. Writes belong to the one writer of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dari.knowledge.index.vectors import Vectors


class Lexical(Protocol):
    """BM25 over analysed text, at a revision of the store."""

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        ...

    @property
    def was_reset(self) -> bool:
        """An index that could not be read, or of another version, was replaced by an empty one of revision 0."""
        ...

    @property
    def revision(self) -> int: ...

    @property
    def chunk_count(self) -> int: ...

    @property
    def has_changed(self) -> bool:
        """Has the writer committed since `reload`?"""
        ...

    @property
    def highest_idf(self) -> float: ...

    def reload(self) -> None: ...

    def search(
        self,
        terms: Mapping[str, float] | Sequence[str],
        k: int,
        allowed: Collection[int] | None = None,
        phrases: Sequence[Sequence[str]] = (),
    ) -> list[tuple[int, float]]:
        """The best `k` chunks as (chunk_no, BM25), best first: any of `terms` (with weights), all of `phrases`."""
        ...

    def chunks_with_phrases(self, phrases: Sequence[Sequence[str]], limit: int) -> list[int]: ...

    def idf(self, terms: Iterable[str]) -> dict[str, float]: ...

    def terms_with_prefix(self, prefix: str, limit: int) -> list[tuple[str, int]]: ...

    def add(self, chunk_no: int, doc_no: int, text: str, title_text: str = "") -> None: ...

    def delete(self, chunk_no: int) -> None: ...

    def commit(self, revision: int) -> None: ...

    def clear(self) -> None: ...

    def close(self) -> None: ...


class VectorRows(Protocol):
    """The vectors of one model, scored exactly or found by an approximate index and then scored exactly."""

    @property
    def model_key(self) -> str: ...

    @property
    def row_count(self) -> int: ...

    @property
    def chunk_count(self) -> int: ...

    @property
    def has_changed(self) -> bool: ...

    def refresh(self, committed_rows: int) -> None: ...

    def search(self, vector: Vectors, k: int, allowed: Collection[int] | None = None) -> list[tuple[int, float]]:
        """The best `k` chunks as (chunk_no, cosine), best first."""
        ...

    def scores(self, vector: Vectors, chunk_nos: Sequence[int]) -> dict[int, float]: ...

    def vectors_of(self, chunk_nos: Sequence[int]) -> dict[int, Vectors]: ...

    def append(self, chunk_nos: Sequence[int], vectors: Vectors) -> int:
        """Returns the count that the store has to commit."""
        ...

    def retain(self, chunk_nos: Collection[int]) -> int: ...

    def build_ann(self, is_cancelled: Callable[[], bool] = ...) -> bool: ...

    def compact(self) -> int: ...
