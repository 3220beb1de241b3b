"""Vectors of one model: float32 rows in a file that is mapped into memory, scored exactly.

`rows.f32` has the vectors one after another, `rows.no` the chunk of each row (int64, 0: deleted), `ann.usearch` an
approximate index over the first rows of a large file. How many rows count is known to the store (`committed_rows`):
what a crash left behind them is cut off. Deleting overwrites the row's number in place; a deleted or replaced row costs
its bytes until `compact` writes the next generation: a folder that the file `current` names.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from dari.errors import Conflict, InvalidInput
from dari.knowledge.config import DEFAULT_ANN_ABOVE_CHUNKS
from dari.knowledge.index.ann import ApproximateIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Numbers = NDArray[np.int64]

_ROWS = "rows.f32"
_NUMBERS = "rows.no"
_CURRENT = "current"
_FIRST_GENERATION = "g1"
_BLOCK_BYTES = 3 * 512 * 1024  # rows scored at a time: they stay in a core's cache, and two threads share them well
_GATHER_SHARE = 8  # a filter that leaves at most one row in eight is scored row by row


class VectorIndex:
    """The rows of one model. Reads are thread-safe; writes belong to the one writer of the store."""

    def __init__(self, directory: Path, dim: int, model_key: str, writable: bool, ann_above_rows: int) -> None:
        self.directory = directory
        self.dim = dim
        self.model_key = model_key
        self._writable = writable
        self._ann_above_rows = ann_above_rows
        self._lock = threading.Lock()
        self._state = _Rows.empty(dim)
        self._ann: ApproximateIndex | None = None
        self._seen = (0, 0)
        self._committed_rows = 0

    @classmethod
    def open(
        cls,
        directory: Path,
        dim: int,
        model_key: str,
        committed_rows: int,
        writable: bool = False,
        ann_above_rows: int = DEFAULT_ANN_ABOVE_CHUNKS,
    ) -> VectorIndex:
        """Open the rows of `directory/<model_key>`. The writer cuts off what is behind `committed_rows`."""
        index = cls(directory / model_key, dim, model_key, writable, ann_above_rows)
        if writable:
            _prepare(index.directory)
            _cut(_generation(index.directory), dim, committed_rows)
        index.refresh(committed_rows)
        return index

    # --- reading

    @property
    def row_count(self) -> int:
        """Rows that count, deleted ones included: what the store notes as committed."""
        return self._state.count

    @property
    def chunk_count(self) -> int:
        """Chunks that have a vector."""
        return self._state.live

    def refresh(self, committed_rows: int) -> None:
        """See what the writer has committed since."""
        with self._lock:
            folder = _generation(self.directory)
            seen = _size_of(folder / _NUMBERS)
            if self._awaits_commit and (seen, committed_rows) == (self._seen, self._committed_rows):
                return
            self._seen, self._committed_rows = seen, committed_rows
            self._state = state = _Rows.map(folder, self.dim, committed_rows, self._writable)
            is_large = state.count > self._ann_above_rows
            self._ann = ApproximateIndex.load(folder, self.dim, state.count, self._ann) if is_large else None

    @property
    def has_changed(self) -> bool:
        """Has the writer appended or compacted since `refresh`, or had it rows then that it may have committed by now?
        One look at the file system."""
        return self._awaits_commit or _size_of(_generation(self.directory) / _NUMBERS) != self._seen

    @property
    def _awaits_commit(self) -> bool:
        """The file had more rows than the store knew of. They count as soon as the store says so, and the file does
        not change once more for that."""
        return self._seen[1] // 8 > self._committed_rows

    def search(self, vector: Vectors, k: int, allowed: Collection[int] | None = None) -> list[tuple[int, float]]:
        """The best `k` chunks as (chunk_no, cosine), best first. `allowed` names the chunks that may be found."""
        state = self._state
        if k <= 0 or not state.live or (allowed is not None and not allowed):
            return []
        query = self._checked(vector)
        if allowed is None:
            return state.best_of(self._proposed(state, query, k), query, k)
        rows = state.rows_of(np.fromiter(allowed, np.int64, len(allowed)))
        rows = rows[rows >= 0]
        if len(rows) * _GATHER_SHARE <= state.count:
            return state.best_of(_Proposed(rows, state.count), query, k)
        mask = np.zeros(state.count, np.bool_)
        mask[rows] = True
        found = self._proposed(state, query, 4 * k)
        if found is not None:
            kept = state.best_of(found, query, k, mask)
            if len(kept) == k:
                return kept
        return state.best_of(None, query, k, mask)

    def scores(self, vector: Vectors, chunk_nos: Sequence[int]) -> dict[int, float]:
        """The cosine of each of these chunks; one without a vector is left out."""
        state = self._state
        if not chunk_nos or not state.live:
            return {}
        numbers = np.array(chunk_nos, np.int64)
        rows = state.rows_of(numbers)
        has_row = rows >= 0
        values = state.vectors[rows[has_row]] @ self._checked(vector)
        return dict(zip(numbers[has_row].tolist(), values.tolist(), strict=True))

    def chunk_nos(self) -> list[int]:
        """Every chunk that has a vector, ascending."""
        return sorted(self._state.live_numbers().tolist())

    def vectors_of(self, chunk_nos: Sequence[int]) -> dict[int, Vectors]:
        """Copies of the vectors of these chunks; one without a vector is left out."""
        state = self._state
        rows = state.rows_of(np.array(chunk_nos, np.int64)).tolist()
        return {number: state.vectors[row].copy() for number, row in zip(chunk_nos, rows, strict=True) if row >= 0}

    def _proposed(self, state: _Rows, query: Vectors, k: int) -> _Proposed | None:
        """Rows that the approximate index proposes, and those it does not know yet; None: score all."""
        ann = self._ann
        if ann is None or ann.row_count > state.count:
            return None
        return _Proposed(ann.search(query, k), ann.row_count)

    def _checked(self, vector: Vectors) -> Vectors:
        query = np.ascontiguousarray(vector, np.float32).reshape(-1)
        if len(query) != self.dim:
            raise InvalidInput(f"vectors of {self.model_key} have {self.dim} dimensions, got {len(query)}")
        return query

    # --- writing

    def append(self, chunk_nos: Sequence[int], vectors: Vectors) -> int:
        """Write rows behind the committed ones, flushed to the disk. Returns the count that the store has to commit;
        `refresh` with it makes them findable."""
        self._require_writable()
        rows = np.ascontiguousarray(vectors, np.float32)
        if rows.shape != (len(chunk_nos), self.dim):
            raise InvalidInput(
                f"{len(chunk_nos)} chunks need vectors of shape {(len(chunk_nos), self.dim)}, got {rows.shape}"
            )
        folder = _generation(self.directory)
        count = _rows_in(folder, self.dim)
        _write_at(folder / _ROWS, count * self.dim * 4, rows.tobytes())
        _write_at(folder / _NUMBERS, count * 8, np.array(chunk_nos, np.int64).tobytes())
        return count + len(chunk_nos)

    def delete(self, chunk_nos: Iterable[int]) -> None:
        """Forget the vectors of these chunks; one that has none is fine."""
        self._require_writable()
        self._state.forget(np.fromiter(chunk_nos, np.int64))

    def retain(self, chunk_nos: Collection[int]) -> int:
        """Forget every other chunk; returns how many were forgotten."""
        self._require_writable()
        numbers = self._state.live_numbers()
        gone = numbers[~np.isin(numbers, np.fromiter(chunk_nos, np.int64, len(chunk_nos)))]
        self._state.forget(gone)
        return len(gone)

    def build_ann(self, is_cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Make or extend the approximate index where the rows are many; true when it was written."""
        self._require_writable()
        state = self._state
        if state.count <= self._ann_above_rows or (self._ann is not None and self._ann.suffices(state.count)):
            return False
        if not ApproximateIndex.build(_generation(self.directory), self.dim, state.vectors, is_cancelled):
            return False
        self.refresh(state.count)
        return True

    def compact(self) -> int:
        """Drop deleted rows. Returns the new count, which the store has to commit before anything is appended: until
        then its higher count does no harm, since the file ends with these rows."""
        self._require_writable()
        state, before = self._state, _generation(self.directory)
        alive = state.live_rows()
        fresh = self.directory / f"g{int(before.name[1:]) + 1}"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        with (fresh / _ROWS).open("wb") as file:
            for first in range(0, len(alive), 4096):
                file.write(state.vectors[alive[first : first + 4096]].tobytes())
            _flush(file)
        with (fresh / _NUMBERS).open("wb") as file:
            file.write(state.numbers[alive].tobytes())
            _flush(file)
        _name_generation(self.directory, fresh.name)
        self.refresh(len(alive))
        shutil.rmtree(before, ignore_errors=True)
        return len(alive)

    def _require_writable(self) -> None:
        if not self._writable:
            raise Conflict(f"the vectors of {self.model_key} were opened for reading", "open them with writable=True")


class _Proposed(NamedTuple):
    """Rows to score: some, and all from `tail_from` on, which lie together and need no gathering."""

    rows: NDArray[np.int64]
    tail_from: int


class _Rows:
    """One mapped state of the files; replaced whole, so a search under way keeps its own."""

    def __init__(self, vectors: Vectors, numbers: Numbers, count: int) -> None:
        self.vectors = vectors
        self.numbers = numbers
        self.count = count
        highest = int(numbers.max()) if count else 0
        self._row_of = np.full(highest + 1, -1, np.int64)
        self._row_of[numbers] = np.arange(count)  # the last row of a chunk wins
        self._row_of[0] = -1
        self._is_dead = self._row_of[numbers] != np.arange(count)
        self.live = count - int(np.count_nonzero(self._is_dead))

    @classmethod
    def empty(cls, dim: int) -> _Rows:
        return cls(np.zeros((0, dim), np.float32), np.zeros(0, np.int64), 0)

    @classmethod
    def map(cls, folder: Path, dim: int, committed_rows: int, writable: bool) -> _Rows:
        count = min(_rows_in(folder, dim), committed_rows)
        if not count:
            return cls.empty(dim)
        vectors = np.memmap(folder / _ROWS, np.float32, "r", shape=(count, dim))
        numbers = np.memmap(folder / _NUMBERS, np.int64, "r+" if writable else "r", shape=(count,))
        return cls(vectors.view(np.ndarray), numbers.view(np.ndarray), count)

    def rows_of(self, chunk_nos: Numbers) -> NDArray[np.int64]:
        """The row of each chunk, -1 where it has none."""
        known = (chunk_nos > 0) & (chunk_nos < len(self._row_of))
        found: NDArray[np.int64] = np.where(known, self._row_of[np.where(known, chunk_nos, 0)], -1)
        return found

    def live_rows(self) -> NDArray[np.int64]:
        return np.flatnonzero(~self._is_dead)

    def live_numbers(self) -> Numbers:
        return self.numbers[self.live_rows()]

    def forget(self, chunk_nos: Numbers) -> None:
        rows = self.rows_of(chunk_nos)
        rows = rows[rows >= 0]
        self.numbers[rows] = 0
        self._is_dead[rows] = True
        self._row_of[chunk_nos[(chunk_nos > 0) & (chunk_nos < len(self._row_of))]] = -1
        self.live = self.count - int(np.count_nonzero(self._is_dead))

    def best_of(
        self, proposed: _Proposed | None, query: Vectors, k: int, mask: NDArray[np.bool_] | None = None
    ) -> list[tuple[int, float]]:
        """The best of the proposed rows, or of all, by exact cosine; only those of `mask`."""
        if proposed is None:
            rows, scores = None, self._scores_from(0, query)
            scores[self._is_dead if mask is None else self._is_dead | ~mask] = -np.inf
        else:
            rows = np.concatenate((proposed.rows, np.arange(proposed.tail_from, self.count)))
            scores = np.concatenate(
                (self.vectors[proposed.rows] @ query, self._scores_from(proposed.tail_from, query)), dtype=np.float32
            )
            scores[self._is_dead[rows] if mask is None else self._is_dead[rows] | ~mask[rows]] = -np.inf
        k = min(k, len(scores))
        best = np.argpartition(scores, len(scores) - k)[len(scores) - k :] if k < len(scores) else np.arange(k)
        best = best[np.argsort(-scores[best], kind="stable")]
        values = scores[best]
        numbers = self.numbers[best if rows is None else rows[best]]
        finite = np.isfinite(values) & (numbers > 0)
        return list(zip(numbers[finite].tolist(), values[finite].tolist(), strict=True))

    def _scores_from(self, begin: int, query: Vectors) -> Vectors:
        vectors = self.vectors[begin:]
        scores = np.empty(len(vectors), np.float32)
        step = max(_BLOCK_BYTES // (4 * len(query)), 1)
        for first in range(0, len(vectors), step):
            np.dot(vectors[first : first + step], query, out=scores[first : first + step])
        return scores


def _prepare(directory: Path) -> None:
    """Make the folder, and drop a generation that a crash left unnamed."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (directory / _CURRENT).exists():
        _name_generation(directory, _FIRST_GENERATION)
    current = _generation(directory)
    current.mkdir(mode=0o700, exist_ok=True)
    for other in directory.glob("g*"):
        if other != current and other.is_dir():
            shutil.rmtree(other, ignore_errors=True)


def _generation(directory: Path) -> Path:
    try:
        name = (directory / _CURRENT).read_text().strip()
    except FileNotFoundError:
        name = _FIRST_GENERATION
    return directory / (name if re.fullmatch(r"g[1-9][0-9]{0,8}", name) else _FIRST_GENERATION)


def _name_generation(directory: Path, name: str) -> None:
    fresh = directory / f"{_CURRENT}.new"
    with fresh.open("wb") as file:
        file.write(name.encode())
        _flush(file)
    os.replace(fresh, directory / _CURRENT)


def _size_of(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return (0, 0)
    return (found.st_ino, found.st_size)


def _rows_in(folder: Path, dim: int) -> int:
    """Whole rows that both files have."""
    return min(_size_of(folder / _ROWS)[1] // (4 * dim), _size_of(folder / _NUMBERS)[1] // 8)


def _cut(folder: Path, dim: int, committed_rows: int) -> None:
    count = min(_rows_in(folder, dim), committed_rows)
    for name, size in ((_ROWS, 4 * dim), (_NUMBERS, 8)):
        with (folder / name).open("ab") as file:
            os.chmod(file.fileno(), 0o600)
            file.truncate(count * size)


def _write_at(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
        _flush(file)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fdatasync(file.fileno())
