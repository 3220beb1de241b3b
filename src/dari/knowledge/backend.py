"""Where a knowledge base lives: in the data folder (SQLite, tantivy, mapped vectors) or in PostgreSQL.

A backend opens the store and its indexes, holds the writer lock, and keeps the files that were ingested one by one.
Models, logs and the indexes of evaluation sets are in the data folder either way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dari.knowledge.config import DEFAULT_ANN_ABOVE_CHUNKS, Settings
from dari.knowledge.paths import DataPaths
from dari.paths import make_dirs, read_regular, write_private

if TYPE_CHECKING:
    from dari.knowledge.index.index import Lexical, VectorRows
    from dari.knowledge.store.store import Store

Signature = tuple[object, ...]


class Backend(Protocol):
    @property
    def place(self) -> str:
        """For messages: no password is in it."""
        ...

    @property
    def index_version(self) -> str: ...

    def close(self) -> None: ...

    def exists(self) -> bool:
        """Has something been ingested?"""
        ...

    def signature(self) -> Signature:
        """Changes when the store was replaced, or the first vectors of a model were made, or all of them."""
        ...

    def lock(self, wait_s: float = 0.0, give_up: Callable[[], bool] = ...) -> AbstractContextManager[None]:
        """Be the one writer. StoreLocked, with who is, when that takes longer than `wait_s`, or as soon as `give_up`
        says that waiting is in vain."""
        ...

    def open_store(self) -> Store:
        """The store that is there; NotIndexed."""
        ...

    def make_store(self) -> Store:
        """For the holder of the lock: the store, made or migrated where needed."""
        ...

    def open_lexical(self, writable: bool = False) -> Lexical: ...

    def open_vectors(self, model_key: str, dim: int, committed_rows: int, writable: bool = False) -> VectorRows: ...

    def tell_readers(self) -> None:
        """All vectors of a model are made: readers choose their model again."""
        ...

    def index_bytes(self) -> tuple[int, int]:
        """What the lexical index and the vectors take."""
        ...

    # The bytes of files that were ingested one by one

    def put_asset(self, asset_id: str, data: bytes) -> None: ...

    def read_asset(self, asset_id: str, max_bytes: int) -> bytes | None: ...

    def asset_ids(self) -> set[str]: ...

    def remove_assets(self, asset_ids: Iterable[str]) -> None: ...


def open_backend(settings: Settings) -> Backend:
    """The backend that the settings name. Nothing is opened yet."""
    above = settings.config.search.ann_above_chunks
    if not settings.config.store.url:
        return FolderBackend(settings.data, is_readonly=settings.is_readonly, ann_above_rows=above)
    from dari.knowledge.postgres_backend import PostgresBackend

    return PostgresBackend(settings.config.store, is_readonly=settings.is_readonly)


class FolderBackend:
    """A data folder: copying it moves the knowledge base."""

    def __init__(
        self, data: DataPaths, *, is_readonly: bool = False, ann_above_rows: int = DEFAULT_ANN_ABOVE_CHUNKS
    ) -> None:
        self._data = data
        self._is_readonly = is_readonly
        self._ann_above_rows = ann_above_rows

    @property
    def place(self) -> str:
        return str(self._data.sqlite)

    @property
    def index_version(self) -> str:
        from dari.knowledge.index.lexical import INDEX_VERSION

        return INDEX_VERSION

    def close(self) -> None:
        pass

    def exists(self) -> bool:
        return self._data.sqlite.exists()

    def signature(self) -> Signature:
        data = self._data
        return (inode(data.sqlite), inode(data.lexical), inode(data.vectors, written=True))

    def lock(self, wait_s: float = 0.0, give_up: Callable[[], bool] = lambda: False) -> AbstractContextManager[None]:
        from dari.knowledge.store.lock import writer_lock

        return writer_lock(self._data.writer_lock, wait_s, give_up)

    def open_store(self) -> Store:
        from dari.knowledge.store.sqlite import open_store

        return open_store(self._data.sqlite, is_readonly=self._is_readonly, lock=self._data.writer_lock)

    def make_store(self) -> Store:
        from dari.knowledge.store.sqlite import make_store

        return make_store(self._data.sqlite)[0]

    def open_lexical(self, writable: bool = False) -> Lexical:
        from dari.knowledge.index.lexical import LexicalIndex

        return LexicalIndex.open(self._data.lexical, writable)

    def open_vectors(self, model_key: str, dim: int, committed_rows: int, writable: bool = False) -> VectorRows:
        from dari.knowledge.index.vectors import VectorIndex

        return VectorIndex.open(self._data.vectors, dim, model_key, committed_rows, writable, self._ann_above_rows)

    def tell_readers(self) -> None:
        os.utime(self._data.vectors)  # they look at this folder's time

    def index_bytes(self) -> tuple[int, int]:
        return _size(self._data.lexical), _size(self._data.vectors)

    def put_asset(self, asset_id: str, data: bytes) -> None:
        path = self._data.asset(asset_id)
        make_dirs(path.parent)
        write_private(path, data)

    def read_asset(self, asset_id: str, max_bytes: int) -> bytes | None:
        try:
            return read_regular(self._data.asset(asset_id), max_bytes)
        except OSError:
            return None

    def asset_ids(self) -> set[str]:
        return {name for _, _, names in os.walk(self._data.assets) for name in names}

    def remove_assets(self, asset_ids: Iterable[str]) -> None:
        for asset_id in asset_ids:
            self._data.asset(asset_id).unlink(missing_ok=True)


def inode(path: os.PathLike[str], *, written: bool = False) -> tuple[int, ...]:
    """What changes when the file or folder is replaced; with `written` also when it is written to."""
    try:
        info = os.stat(path)
    except OSError:
        return ()
    is_file = info.st_mode & 0o170000 == 0o100000
    changes = is_file and path.__fspath__().endswith((".toml", ".json"))
    return (info.st_dev, info.st_ino, info.st_mtime_ns if changes or written else 0)


def _size(folder: Path) -> int:
    try:
        return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    except OSError:
        return 0
