"""The one writer: the lock, the store and the lexical index, opened together and mended where a run was cut short."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from dari.knowledge.backend import Backend, open_backend
from dari.knowledge.config import Settings
from dari.knowledge.errors import IngestFatal, ReadonlyMode
from dari.knowledge.index.index import Lexical
from dari.knowledge.store.store import PutResult, Store
from dari.paths import private_dir

MIN_FREE_BYTES = 4 * 1024 * 1024
KEPT_TOMBSTONE_REVISIONS = 100
_PURGED = "tombstones_purged_revision"


@dataclass(slots=True)
class KnowledgeWriter:
    """What writes to documents. `notes` says what had to be mended when it was opened."""

    settings: Settings
    backend: Backend
    store: Store
    lexical: Lexical
    notes: list[str] = field(default_factory=list)
    _indexed_revision: int = 0
    _waiting_chunks: int = 0

    def index(self, results: Iterable[PutResult], revision: int) -> None:
        """Follow a transaction of the store that was committed as `revision`; `commit_index` makes it findable."""
        try:
            for result in results:
                for number in (*result.deleted, *result.moved):
                    self.lexical.delete(number)
                for row in result.added:
                    self.lexical.add(row.chunk_no, row.doc_no, row.text, row.title_text)
                self._waiting_chunks += len(result.added) + len(result.deleted)
        except (ValueError, OSError) as error:
            raise _index_failed(self.lexical, error) from error
        self._indexed_revision = revision

    @property
    def waiting_chunks(self) -> int:
        """Changes that the index does not show yet."""
        return self._waiting_chunks

    def commit_index(self) -> None:
        if self._waiting_chunks or self._indexed_revision > self.lexical.revision:
            try:
                self.lexical.commit(self._indexed_revision)
            except (ValueError, OSError) as error:
                raise _index_failed(self.lexical, error) from error
            self._waiting_chunks = 0

    def catch_up(self) -> None:
        """Bring the index to the store's revision; what it does is noted."""
        behind = self._indexed_revision = self.lexical.revision
        revision = self.store.revision()
        if behind == revision and not self.lexical.was_reset:
            return
        if behind > revision:
            self.notes.append(f"the lexical index was ahead of the store ({behind} > {revision}): built anew")
            self.lexical.clear()
            behind = 0
        elif 0 < behind < self._purged_revision():
            self.notes.append(f"the lexical index was {revision - behind} revisions behind the store: built anew")
            self.lexical.clear()
            behind = 0
        elif self.lexical.was_reset:
            self.notes.append("the lexical index could not be used: built anew")
        changes = self.store.changes_since(behind)
        count = 0
        try:
            for number in changes.deleted if behind else ():
                self.lexical.delete(number)
            for row in changes.added:
                if behind:
                    self.lexical.delete(row.chunk_no)
                self.lexical.add(row.chunk_no, row.doc_no, row.text, row.title_text)
                count += 1
            self.lexical.commit(changes.revision)
        except (ValueError, OSError) as error:
            raise _index_failed(self.lexical, error) from error
        self._indexed_revision = changes.revision
        self.notes.append(f"the lexical index was behind the store: {count} chunks added")

    def purge_tombstones(self) -> None:
        """Forget chunks that went long ago; the index must be in step. The last ones stay, for an index from a backup
        that is not much older than the store."""
        through = self._indexed_revision - KEPT_TOMBSTONE_REVISIONS
        if through < self._purged_revision() + KEPT_TOMBSTONE_REVISIONS:
            return
        with self.store.write() as transaction:
            transaction.purge_tombstones(through)
            transaction.set_kv(_PURGED, str(through))

    def _purged_revision(self) -> int:
        return int(self.store.kv(_PURGED, "0"))


@contextmanager
def open_writer(
    settings: Settings, wait_s: float | None = None, cancelled: threading.Event | None = None
) -> Iterator[KnowledgeWriter]:
    """Take the writer lock (StoreLocked where another has it), end what a kill has left half-done, and open all.
    `cancelled` ends the wait for the lock."""
    from dari.knowledge.ingest.recovery import recover
    from dari.knowledge.ingest.reset import finish_reset

    if settings.is_readonly:
        raise ReadonlyMode("this writes to the store", "run it again without --readonly and KEBAB_READONLY")
    wait_s = settings.config.store.lock_wait_s if wait_s is None else wait_s
    give_up = (cancelled or threading.Event()).is_set
    with closing(open_backend(settings)) as backend, backend.lock(wait_s, give_up):
        private_dir(settings.data.data)
        notes = finish_reset(settings) if not settings.config.store.url else []
        store = backend.make_store()
        try:
            lexical = backend.open_lexical(writable=True)
            try:
                writer = KnowledgeWriter(settings, backend, store, lexical, notes)
                recover(writer)
                yield writer
            except BaseException:
                with suppress(ValueError):  # the first failure is the one to report
                    lexical.close()
                raise
            try:
                lexical.close()
            except ValueError as error:
                raise _index_failed(lexical, error) from error
        finally:
            store.close()


def _index_failed(index: Lexical, error: Exception) -> IngestFatal:
    """Nothing is lost: the store has it, and the next start brings the index on."""
    # tantivy says "a worker thread failed" for a full disk, so the disk is asked.
    is_full = "No space left" in str(error) or _free_bytes(Path(index.place)) < MIN_FREE_BYTES
    return IngestFatal(
        f"the lexical index in {index.place} cannot be written: {'the disk is full' if is_full else str(error)[:300]}",
        f"{'free some space' if is_full else 'check the disk'}, then run `kebab ingest`: it goes on where it stopped",
    )


def _free_bytes(path: Path) -> int:
    try:
        found = os.statvfs(path)
    except OSError:
        return MIN_FREE_BYTES
    return found.f_bavail * found.f_frsize
