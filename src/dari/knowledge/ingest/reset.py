"""Forgetting: everything, the data, the vectors, the settings, or what no folder holds any more.

A reset that removes files first writes down what it is about to do. Then it moves the files aside, and only then
removes them. After a kill the next writer finds the note and finishes the reset.
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from dari.knowledge.config import Settings
from dari.knowledge.errors import ReadonlyMode
from dari.knowledge.paths import EXTERNAL
from dari.knowledge.store.lock import writer_lock
from dari.knowledge.wire.reports import ResetReportV1
from dari.paths import write_private
from dari.struct_types import ready

ResetScope = Literal["all", "data-only", "vector-only", "config-only", "orphans-only"]
_TRASH = ".reset-"


class _Marker(Struct, frozen=True):
    scope: ResetScope
    config_file: str = ""


def reset(settings: Settings, scope: ResetScope, wait_s: float | None = None) -> ResetReportV1:
    """Forget what `scope` names and say what is gone. StoreLocked while another process writes."""
    if settings.is_readonly:
        raise ReadonlyMode("a reset removes data", "run it again without --readonly and KEBAB_READONLY")
    if scope == "orphans-only":
        return _reset_orphans(settings, wait_s)
    if scope == "config-only":
        return _removed(scope, _measure([settings.config_file]), [settings.config_file])
    wait_s = settings.config.store.lock_wait_s if wait_s is None else wait_s
    if settings.config.store.url:
        return _reset_database(settings, scope, wait_s)
    if not settings.data.data.is_dir():
        return _removed(scope, [], [settings.config_file] if scope == "all" else [])
    with writer_lock(settings.data.writer_lock, wait_s):
        finish_reset(settings)
        documents = _count_documents(settings) if scope != "vector-only" else 0
        gone = _measure(_targets(settings, scope))
        marker = _Marker(scope, str(settings.config_file))
        write_private(settings.data.reset_marker, msgspec.json.encode(marker))
        _carry_out(settings, marker)
    return _removed(scope, gone, [], documents)


def finish_reset(settings: Settings) -> list[str]:
    """For the holder of the writer lock: end a reset that was cut short, and say so."""
    data = settings.data
    notes: list[str] = []
    try:
        marker = msgspec.json.decode(data.reset_marker.read_bytes(), type=ready(_Marker))
    except FileNotFoundError:
        pass
    except msgspec.DecodeError:
        data.reset_marker.unlink(missing_ok=True)
    else:
        _carry_out(settings, marker)
        notes.append(f"a reset ({marker.scope}) was cut short: it is done now")
    for left in data.data.glob(f"{_TRASH}*"):
        shutil.rmtree(left, ignore_errors=True)
    for draft in data.data.glob(f".{data.reset_marker.name}.*"):  # of a marker that was not written to its end
        draft.unlink(missing_ok=True)
    return notes


def _carry_out(settings: Settings, marker: _Marker) -> None:
    """Each step may have been done already."""
    data = settings.data
    if marker.scope == "vector-only":
        _forget_vectors(settings)
    trash = data.data / f"{_TRASH}{os.urandom(4).hex()}"
    trash.mkdir(mode=0o700)
    for path in _targets(settings, marker.scope):
        if path.parent == data.data and os.path.lexists(path):
            os.rename(path, trash / path.name)
    if marker.scope == "all" and marker.config_file:
        Path(marker.config_file).unlink(missing_ok=True)
    data.reset_marker.unlink(missing_ok=True)
    shutil.rmtree(trash, ignore_errors=True)


def _targets(settings: Settings, scope: ResetScope) -> list[Path]:
    data = settings.data
    if scope == "vector-only":
        return [data.vectors]
    # The file before its log: without it nothing is stored, and a log without its file is harmless until one comes,
    # and none comes before the marker is gone.
    files = [data.sqlite, *(data.data / f"{data.sqlite.name}{end}" for end in ("-wal", "-shm"))]
    found = [*files, data.lexical, data.vectors, data.assets, data.runs]
    return [*found, data.models, data.active_model, settings.config_file] if scope == "all" else found


def _forget_vectors(settings: Settings) -> None:
    from dari.knowledge.store.sqlite import make_store

    if not settings.data.sqlite.exists():
        return
    store, _ = make_store(settings.data.sqlite)
    try:
        with store.write() as transaction:
            transaction.delete_vectors()
    finally:
        store.close()


def _count_documents(settings: Settings) -> int:
    """A store that cannot be read, or is of a newer version, is what a reset is for."""
    import sqlite3

    from dari.errors import DariError
    from dari.knowledge.store.sqlite import open_store

    try:
        store = open_store(settings.data.sqlite, is_readonly=True)
    except (DariError, sqlite3.Error):
        return 0
    try:
        return store.stats().doc_count
    except sqlite3.Error:
        return 0
    finally:
        store.close()


def _reset_database(settings: Settings, scope: ResetScope, wait_s: float) -> ResetReportV1:
    """One transaction of the server, so a kill leaves all of it or nothing; what is in the data folder follows."""
    from dari.knowledge.ingest.claims import set_local_roots
    from dari.knowledge.postgres_backend import PostgresBackend

    data, documents, size, removed = settings.data, 0, 0, []
    with closing(PostgresBackend(settings.config.store)) as backend:
        if backend.exists():
            removed.append(backend.place if scope != "vector-only" else f"{backend.place}: vectors")
            with backend.lock(wait_s):
                if scope == "vector-only":
                    size = backend.index_bytes()[1]
                    with backend.make_store().write() as transaction:
                        transaction.delete_vectors()
                else:
                    documents = backend.count_documents()
                    size = backend.remove_store()
        if scope != "vector-only":
            set_local_roots(settings, {})
    everything = [data.runs, data.models, data.active_model, settings.config_file]
    local = {"all": everything, "data-only": [data.runs]}.get(scope, [])
    gone = _measure(local)
    for path, _ in gone:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return ResetReportV1(
        scope=scope,
        removed=(*removed, *(str(path) for path, _ in gone)),
        removed_bytes=size + sum(number for _, number in gone),
        documents_removed=documents,
    )


def _reset_orphans(settings: Settings, wait_s: float | None) -> ResetReportV1:
    """Documents whose file or source is gone, stored files without a document, vectors of models that are not known."""
    from dari.knowledge.ingest.claims import is_own
    from dari.knowledge.ingest.recovery import remove_orphan_assets
    from dari.knowledge.ingest.sources import all_sources
    from dari.knowledge.ingest.writer import open_writer

    removed: list[str] = []
    size = 0
    with open_writer(settings, wait_s) as writer:
        store = writer.store
        sources = {source.id: source for source in all_sources(settings, store)}
        assets = writer.backend.asset_ids()
        orphans: list[tuple[int, str]] = []
        for name in sorted(store.source_ids()):
            if name != EXTERNAL and not is_own(settings, store, name):
                continue  # whether its files are there, another machine knows
            source = sources.get(name)
            for state in store.file_states(name):
                if name == EXTERNAL:
                    is_there = state.asset_id in assets
                elif source is None:
                    is_there = False
                else:
                    path = source.root / state.path.removeprefix(source.document_path("")).lstrip("/")
                    is_there = path.exists()
                if not is_there:
                    orphans.append((state.doc_no, state.path))
                    size += state.byte_len
        for start in range(0, len(orphans), 256):
            with store.write() as transaction:
                results = [transaction.delete_document(number) for number, _ in orphans[start : start + 256]]
                revision = transaction.revision
            writer.index(results, revision)
        writer.commit_index()
        removed += [path for _, path in orphans]
        if count := remove_orphan_assets(writer):
            removed.append(f"{count} stored files")
        known = set(store.vector_models())
        folders = settings.data.vectors.iterdir() if settings.data.vectors.is_dir() else ()
        for folder in sorted(folders):
            if folder.is_dir() and folder.name not in known:
                size += sum(number for _, number in _measure([folder]))
                shutil.rmtree(folder)
                removed.append(str(folder))
    return ResetReportV1(
        scope="orphans-only", removed=tuple(removed), removed_bytes=size, documents_removed=len(orphans)
    )


def _removed(
    scope: ResetScope, measured: list[tuple[Path, int]], to_remove: list[Path], documents: int = 0
) -> ResetReportV1:
    for path in to_remove:
        path.unlink(missing_ok=True)
    return ResetReportV1(
        scope=scope,
        removed=tuple(str(path) for path, _ in measured),
        removed_bytes=sum(size for _, size in measured),
        documents_removed=documents,
    )


def _measure(paths: list[Path]) -> list[tuple[Path, int]]:
    return [(path, _size(path)) for path in paths if os.path.lexists(path)]


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.lstat().st_size
    return sum(os.lstat(os.path.join(parent, name)).st_size for parent, _, names in os.walk(path) for name in names)
