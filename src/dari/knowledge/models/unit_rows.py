"""Rows of length 1, and the last queries with their vectors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vectors = NDArray[float32]

MAX_QUERIES = 512


def unit_rows(rows: Vectors) -> Vectors:
    """Rows divided by their length; a row of zeros, or one that is not finite, is a row of zeros."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    ok = np.isfinite(lengths) & (lengths > 0)
    return np.where(ok, rows / np.where(ok, lengths, 1), 0).astype(np.float32)


class QueryCache:
    """The vectors of the last queries: paging, `ask` after `search` and a repeated question run no model."""

    def __init__(self, embed: Callable[[str], Vectors]) -> None:
        self._embed = embed
        self._lock = Lock()
        self._found: OrderedDict[str, Vectors] = OrderedDict()

    def get(self, text: str) -> Vectors:
        with self._lock:
            if (found := self._found.get(text)) is not None:
                self._found.move_to_end(text)
                return found
        vector = self._embed(text)
        vector.setflags(write=False)
        with self._lock:
            self._found[text] = vector
            while len(self._found) > MAX_QUERIES:
                self._found.popitem(last=False)
        return vector
