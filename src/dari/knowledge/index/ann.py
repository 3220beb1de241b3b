"""An approximate index over many vectors: usearch's HNSW in half precision proposes rows, which are scored exactly."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray
    from usearch.index import Index

    Vectors = NDArray[np.float32]

_FILE = "ann.usearch"
_CONNECTIVITY = 16
_EXPANSION_ADD = 96
_EXPANSION_SEARCH = 320
_CANDIDATES = 100  # proposed at least: the exact scores choose among them
_MAX_TAIL_ROWS = 10_000  # rows beyond the index are all scored, until there are so many
_BATCH_ROWS = 5_000  # about two seconds: so soon a cancelled build ends


class ApproximateIndex:
    """The graph over rows 0 … `row_count` of one file of vectors; keys are row numbers."""

    def __init__(self, index: Index, identity: tuple[int, int]) -> None:
        self._index = index
        self._identity = identity
        self.row_count = len(index)

    @classmethod
    def load(
        cls, directory: Path, dim: int, row_count: int, before: ApproximateIndex | None
    ) -> ApproximateIndex | None:
        """The index of the folder, mapped; `before` where it is the same file. None where none fits the rows."""
        path = directory / _FILE
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        identity = (found.st_ino, found.st_mtime_ns)
        if before is not None and before._identity == identity:
            return before
        index = _new(dim)
        try:
            index.view(str(path))
        except Exception:  # usearch raises its own RuntimeErrors: what cannot be read is as good as missing
            return None
        return cls(index, identity) if 0 < len(index) <= row_count and index.ndim == dim else None

    @classmethod
    def build(
        cls, directory: Path, dim: int, vectors: Vectors, is_cancelled: Callable[[], bool] = lambda: False
    ) -> bool:
        """Write the index for all rows, taking over what is there; false when the old one still suffices, or when
        cancelled, which leaves the old one."""
        index, path, count = _new(dim), directory / _FILE, len(vectors)
        known = 0
        if path.exists():
            try:
                index.load(str(path))
                known = len(index)
            except Exception:  # as above
                index = _new(dim)
        if known > count:
            index, known = _new(dim), 0
        if known and count - known <= _MAX_TAIL_ROWS:
            return False
        for first in range(known, count, _BATCH_ROWS):
            if is_cancelled():
                return False
            last = min(first + _BATCH_ROWS, count)
            index.add(np.arange(first, last), vectors[first:last], copy=True)
        fresh = path.with_suffix(".new")
        index.save(str(fresh))
        os.chmod(fresh, 0o600)
        os.replace(fresh, path)
        return True

    def suffices(self, count: int) -> bool:
        """Whether so few of `count` rows are beyond the index that scoring them all is as good."""
        return count - self.row_count <= _MAX_TAIL_ROWS

    def search(self, query: Vectors, k: int) -> NDArray[np.int64]:
        """Rows near the query, best first, more than `k` of them."""
        found = self._index.search(query, max(_CANDIDATES, 2 * k))
        rows: NDArray[np.int64] = found.keys.astype(np.int64)
        return rows


def _new(dim: int) -> Index:
    # Loaded after usearch 2.26.6, onnxruntime 1.31.1 crashes the process; before it, both work.
    with suppress(ImportError):
        import onnxruntime  # noqa: F401
    from usearch.index import Index

    return Index(
        ndim=dim,
        metric="ip",
        dtype="f16",
        connectivity=_CONNECTIVITY,
        expansion_add=_EXPANSION_ADD,
        expansion_search=_EXPANSION_SEARCH,
    )
