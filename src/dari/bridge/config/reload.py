"""Hot reload: poll the configuration files and report profiles that were added, changed or removed."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator
from os import stat
from pathlib import Path

from msgspec import Struct

from dari.bridge.config.catalog import Catalog, CatalogEntry
from dari.bridge.config.loader import read_file
from dari.bridge.config.service import ConfigService

POLL_INTERVAL_S = 1.0
_FRESH_NS = 2_000_000_000
"""Two writes within a tick of the file system's clock have equal times; recent files are compared by content."""
Signature = tuple[tuple[str, tuple[int, ...], str], ...]


class CatalogChange(Struct, frozen=True, kw_only=True):
    """The differences from the catalogue before. A profile counts as changed when any field did."""

    catalog: Catalog
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Those that are new."""

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.changed or self.removed or self.problems)


class ConfigWatcher:
    """One reader's view: `poll` tells what happened since the last call."""

    def __init__(self, book: ConfigService, catalog: Catalog | None = None) -> None:
        self._book = book
        # Looked at before they are read: what changes in between is seen by the next `poll`.
        paths = book.watched()
        self._seen = file_signature(paths) if catalog is None else ()
        self.catalog = catalog if catalog is not None else book.load()
        self._paths = book.watched(self.catalog)
        if catalog is None and self._paths != paths:
            self._seen = file_signature(self._paths)
            self.catalog = book.load()

    def poll(self) -> CatalogChange | None:
        """The change, if there is one; an unchanged file is not read."""
        now = file_signature(self._paths)
        if now == self._seen:
            return None
        catalog = self._book.load(self.catalog)
        self._paths = self._book.watched(catalog)
        self._seen = now if len(now) == len(self._paths) else file_signature(self._paths)
        change = diff_catalogs(self.catalog, catalog)
        self.catalog = catalog
        return None if change.is_empty else change

    async def changes(self, interval_s: float = POLL_INTERVAL_S) -> AsyncGenerator[CatalogChange, None]:
        """Every change from now on, until the iteration is left."""
        while True:
            change = await asyncio.to_thread(self.poll)
            if change is not None:
                yield change
            else:
                await asyncio.sleep(interval_s)


def diff_catalogs(before: Catalog, after: Catalog) -> CatalogChange:
    """By name: what a user of the catalogue has to start, restart and stop."""
    old = {one.id: one for one in before.listed}
    new = {one.id: one for one in after.listed}
    return CatalogChange(
        catalog=after,
        added=tuple(id for id in new if id not in old),
        changed=tuple(id for id in new if id in old and _is_changed(old[id], new[id])),
        removed=tuple(id for id in old if id not in new),
        problems=tuple(problem for problem in after.problems if problem not in before.problems),
    )


def file_signature(paths: tuple[Path, ...]) -> Signature:
    """What tells one state of the files from another."""
    return tuple((str(path), *_look(path)) for path in paths)


def _look(path: Path) -> tuple[tuple[int, ...], str]:
    try:
        info = stat(path)
        times = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        if time.time_ns() - info.st_mtime_ns > _FRESH_NS:
            return times, ""
        return times[:3], hashlib.sha256(read_file(path)).hexdigest()
    except OSError:
        return (), ""


def _is_changed(old: CatalogEntry, new: CatalogEntry) -> bool:
    """A move within the file does not count: the line number is not part of what runs."""
    return (old.state, old.message, _essence(old)) != (new.state, new.message, _essence(new))


def _essence(one: CatalogEntry) -> object:
    if one.profile is None:
        return None
    return [getattr(one.profile, name) for name in one.profile.__struct_fields__ if name != "source"]
