"""An ingest: walk the sources, compare with the store, prepare what is new in threads, write it in small transactions.

A transaction holds a batch of files, so a kill loses at most a batch, and readers are never kept waiting. The lexical
index follows each transaction and shows it every few seconds; a kill between the two is mended by the next writer.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.errors import DariError
from dari.knowledge.chunk import ChunkPolicy
from dari.knowledge.config import Settings, Source
from dari.knowledge.errors import IngestFatal, InvalidArgument
from dari.knowledge.ingest.claims import claim_source
from dari.knowledge.ingest.prepare import (
    MAX_ATTEMPTS,
    Candidate,
    LeftOut,
    MissingDocuments,
    NewContent,
    NewPath,
    Outcome,
    Preparer,
    SameContent,
    Unreadable,
    describe_failure,
    is_tried_again,
    limits_of,
    tried_by,
)
from dari.knowledge.ingest.report import Listener, ReportWriter
from dari.knowledge.ingest.sources import all_sources, nested_roots, source_of_root
from dari.knowledge.ingest.walk import FoundFile, Walk
from dari.knowledge.ingest.writer import KnowledgeWriter, open_writer
from dari.knowledge.parse import ParserPool
from dari.knowledge.store.records import FileFailure, FileState
from dari.knowledge.store.store import PutResult, WriteTransaction
from dari.knowledge.wire.reports import IngestReportV1
from dari.os_errors import from_os_error

INDEX_EVERY_S = 3.0
INDEX_EVERY_CHUNKS = 20_000
BATCH_S = 1.0
"""A batch of slow files is written after this long, however small it is."""
MAX_IN_FLIGHT_BYTES = 32 * 1024 * 1024
MAX_PROCESSES = 4
CANCEL_POLL_S = 0.1


class IngestScope(Struct, frozen=True):
    """What of a source is looked at: all, or these paths below its root."""

    source: Source
    below: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.source.id + "".join(f":{path}" for path in self.below[:3])


def ingest(
    settings: Settings,
    root: Path | None = None,
    *,
    force: bool = False,
    take_over: bool = False,
    has_items: bool = True,
    listener: Listener | None = None,
    cancelled: threading.Event | None = None,
    wait_s: float | None = None,
) -> IngestReportV1:
    """Bring the store up to what is in the folders: all of them, or `root`. `force` parses everything again.

    `take_over`: sources of a shared store that belong to another machine are this one's from now on. `cancelled` ends
    it after the file at hand, with a report that says so. IngestFatal: it could not go on; what was written so far is
    kept.
    """
    if root is None and not settings.sources and not settings.config.store.url and not settings.data.sqlite.exists():
        raise _no_folder()
    with open_writer(settings, wait_s, cancelled) as writer:
        if root is not None:
            source, below = source_of_root(settings, writer.store, root)
            scopes = [IngestScope(source, (below,) if below else ())]
        else:
            scopes = [IngestScope(source) for source in all_sources(settings, writer.store)]
        if not scopes:
            raise _no_folder()
        run = IngestRun(
            writer,
            scopes,
            force=force,
            take_over=take_over,
            has_items=has_items,
            listener=listener,
            cancelled=cancelled,
        )
        return run.run()


class IngestRun:
    """One run over some scopes, with a writer that is open."""

    def __init__(
        self,
        writer: KnowledgeWriter,
        scopes: Sequence[IngestScope],
        *,
        force: bool = False,
        take_over: bool = False,
        has_items: bool = True,
        listener: Listener | None = None,
        cancelled: threading.Event | None = None,
    ) -> None:
        self.writer = writer
        self.store = writer.store
        self.settings = writer.settings
        self.scopes = scopes
        self.force = force
        self.take_over = take_over
        self.tell = ReportWriter(", ".join(scope.name for scope in scopes), listener, has_items)
        self.tell.recovered = "; ".join(writer.notes)
        self._cancelled = cancelled or threading.Event()
        self.missing = MissingDocuments()
        self.gone: dict[int, str] = {}
        """Documents whose file is gone and has not come up elsewhere, by number: their paths."""
        self.new_paths: dict[str, str] = {}
        """New files by path: the source that has them. Two sources must not have one path."""
        self._indexed_s = time.monotonic()
        chunking = self.settings.config.chunking
        self._policy = ChunkPolicy(chunking.target_tokens, chunking.overlap_tokens, chunking.max_tokens)
        wanted = self.settings.config.ingest.parse_processes
        self._workers = wanted or min(os.cpu_count() or 1, MAX_PROCESSES)

    def run(self) -> IngestReportV1:
        """To the end, or to what ends it: a report and one terminal event in every case."""
        run_no = self.store.journal.begin_run(self.tell.scope)
        self.tell.run_id = str(run_no)
        try:
            with ParserPool(limits_of(self.settings.config.ingest), self._workers) as pool:
                unreadable = self._run_scopes([_ScopeRun(self, scope, pool) for scope in self.scopes])
            self.writer.commit_index()
            if unreadable is not None:
                raise unreadable
        except BaseException as error:
            reason = _describe(error)
            self._end(run_no, "failed", aborted=True, error=reason)
            if isinstance(error, DariError) or not isinstance(error, OSError | sqlite3.Error):
                raise
            refused = from_os_error(error)
            raise IngestFatal(
                f"the ingest stopped: {reason}",
                f"{refused.hint if refused else 'see the log'}; what was written is kept, `kebab ingest` goes on there",
            ) from error
        is_cancelled = self._cancelled.is_set()
        return self._end(run_no, "aborted" if is_cancelled else "completed", aborted=is_cancelled)

    def _run_scopes(self, scopes: Sequence[_ScopeRun]) -> IngestFatal | None:
        """All are scanned before any is written: a file that went from one source to another is a rename. A folder that
        cannot be read keeps its documents and does not keep the others waiting; it is returned."""
        unreadable: IngestFatal | None = None
        scanned: list[_ScopeRun] = []
        for scope in scopes:
            if self.is_cancelled():
                break
            try:
                scope.scan()
            except IngestFatal as error:
                unreadable = unreadable or error
            else:
                scanned.append(scope)
        for scope in scanned:
            if not self.is_cancelled():
                scope.write()
        if not self.is_cancelled():
            self._delete_gone()
        return unreadable

    def _delete_gone(self) -> None:
        gone = list(self.gone.items())
        size = self.settings.config.ingest.batch_files * 4
        for start in range(0, len(gone), size):
            if self.is_cancelled():
                return
            part = gone[start : start + size]
            with self.store.write() as transaction:
                results = [transaction.delete_document(doc_no) for doc_no, _ in part]
                revision = transaction.revision
            self.index(results, revision)
            for _, path in part:
                self.tell.removed(path)

    def _end(self, run_no: int, status: str, *, aborted: bool, error: str = "") -> IngestReportV1:
        report = self.tell.report(aborted=aborted)
        summary = msgspec.structs.replace(report, items=msgspec.UNSET)
        try:
            self.store.journal.end_run(run_no, status, msgspec.json.encode(summary).decode())  # type: ignore[arg-type]
        except (sqlite3.Error, DariError):
            if not error:
                raise  # else the disk is as full as it was, or the server as far away
        return self.tell.end(aborted=aborted, error=error)

    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def index(self, results: Sequence[PutResult], revision: int) -> None:
        self.writer.index(results, revision)
        now = time.monotonic()
        if self.writer.waiting_chunks > INDEX_EVERY_CHUNKS or now - self._indexed_s > INDEX_EVERY_S:
            self.writer.commit_index()
            self._indexed_s = time.monotonic()


class _ScopeRun:
    """One source, or a part of it."""

    def __init__(self, run: IngestRun, scope: IngestScope, pool: ParserPool) -> None:
        self.run_of = run
        self.tell = run.tell
        self.store = run.store
        self.scope = scope
        self.source = scope.source
        self.settings = run.settings.config.ingest
        self.preparer = Preparer(
            scope.source, self.settings, run._policy, run.store, pool, run.missing, force=run.force
        )
        self._candidates: list[Candidate] = []
        self._workers = run._workers

    def write(self) -> None:
        """Prepare and write what the scan found."""
        batch: list[tuple[Candidate, Outcome]] = []
        size, begin_s = 0, time.monotonic()
        for candidate, outcome in self._prepared(self._candidates):
            if not batch:
                begin_s = time.monotonic()
            batch.append((candidate, outcome))
            size += candidate.found.size
            is_late = time.monotonic() - begin_s > BATCH_S
            if len(batch) >= self.settings.batch_files or size >= self.settings.batch_bytes or is_late:
                self._write(batch)
                batch, size = [], 0
        self._write(batch)

    # Scan

    def scan(self) -> None:
        """Find files that are new or may have changed; documents whose file is gone are noted for renames and
        deletion."""
        claim_source(self.run_of.settings, self.store, self.source.id, take_over=self.run_of.take_over)
        self.tell.scan_started()
        walk = Walk(
            self.source,
            self.settings,
            self.tell.skips,
            self.scope.below,
            self._forbidden(),
            self.run_of.is_cancelled,
        )
        seen: set[int] = set()
        failed: set[str] = set()
        candidates: list[Candidate] = []
        try:
            for found in walk.files():
                self.tell.scanned()
                path = self.source.document_path(found.relative)
                state = self.store.file_state(path)
                if state is None:
                    attempts = 0
                    if (failure := self.store.failure(path)) is not None:
                        failed.add(path)
                        attempts = self._attempts(failure, found)
                        if attempts and not (is_tried_again(failure.reason) and attempts < MAX_ATTEMPTS):
                            self.tell.failed(path, describe_failure(failure.reason, attempts), was_candidate=False)
                            continue
                    if (owner := self.run_of.new_paths.setdefault(path, self.source.id)) != self.source.id:
                        self.tell.failed(path, f"conflict: source {owner!r} has this path", was_candidate=False)
                        continue
                    candidates.append(Candidate(found, attempts=attempts))
                    continue
                if state.source_id != self.source.id:
                    self.tell.failed(path, f"conflict: source {state.source_id!r} has this path", was_candidate=False)
                    continue
                seen.add(state.doc_no)
                has_versions = self.preparer.has_current_versions(state, found.media)
                is_as_it_was = state.mtime_ns == found.mtime_ns and state.byte_len == found.size
                if is_as_it_was and has_versions and not self.run_of.force:
                    self.tell.unchanged(path)
                else:
                    candidates.append(Candidate(found, state.doc_no, state.asset_id, has_versions))
        except OSError as error:
            raise IngestFatal(
                f"the folder {self.source.root} of source {self.source.id!r} cannot be read: {_describe(error)}",
                "check that it exists and is mounted; its documents are kept",
            ) from error
        for relative, reason in walk.unreadable.items():
            self.tell.failed(self.source.document_path(relative), f"cannot be read: {reason}", was_candidate=False)
        if not self.run_of.is_cancelled():
            self._note_gone(walk, seen)
            self._forget_failures(failed)
        self.tell.scan_completed(self.tell.total + len(candidates))
        self._candidates = candidates

    def _attempts(self, failure: FileFailure, found: FoundFile) -> int:
        """How often this very file has failed under what is in force now; 0: it is to be tried as if it were new."""
        version, _, attempts = failure.parser_version.partition("#")
        now = (found.size, found.mtime_ns, tried_by(failure.reason, found.media, self.settings))
        is_same = (failure.byte_len, failure.mtime_ns, version) == now
        return int(attempts or 1) if is_same and not self.run_of.force else 0

    def _note_gone(self, walk: Walk, seen: set[int]) -> None:
        gone = [state for state in self._stored() if state.doc_no not in seen]
        unknown = {self.source.document_path(path) for path in walk.unreadable}
        if unknown:
            inside = tuple(f"{path}/" for path in unknown)
            gone = [one for one in gone if one.path not in unknown and not one.path.startswith(inside)]
        if gone and walk.entries == 0 and not self.scope.below:
            raise IngestFatal(
                f"the folder {self.source.root} of source {self.source.id!r} is empty, and {len(gone)} documents of it"
                " are indexed",
                "check that it is mounted; `kebab reset --orphans-only` removes documents whose file is gone",
            )
        for state in gone:
            self.run_of.missing.add(state)
            self.run_of.gone[state.doc_no] = state.path

    def _stored(self) -> Iterator[FileState]:
        for below in self.scope.below or ("",):
            # Of a whole named source, its prefix names everything; of the default source, nothing does.
            yield from self.store.file_states(self.source.id, self.source.document_path(below) if below else "")

    def _forget_failures(self, failed: set[str]) -> None:
        """Of files that are gone, or were read since."""
        if self.scope.below:
            return
        old = [one for one in self.store.failures() if one.source_id == self.source.id and one.path not in failed]
        if old:
            with self.store.write() as transaction:
                for failure in old:
                    transaction.delete_failure(failure.path)

    def _forbidden(self) -> tuple[str, ...]:
        settings = self.run_of.settings
        own = tuple(os.path.realpath(path) for path in (settings.data.data, settings.logs))
        return own + nested_roots(self.source, all_sources(settings, self.store))

    # Prepare

    def _prepared(self, candidates: list[Candidate]) -> Iterator[tuple[Candidate, Outcome]]:
        """In order, a few ahead of the writer: as many as keep the parsers busy, and no more bytes than fit."""
        running: deque[tuple[Candidate, Future[Outcome]]] = deque()
        size = 0
        threads = ThreadPoolExecutor(self._workers, "kebab-ingest")
        try:
            for candidate in candidates:
                while running and (len(running) > 4 * self._workers or size > MAX_IN_FLIGHT_BYTES):
                    first, future = running.popleft()
                    size -= first.found.size
                    if not self._has_ended(future):
                        return
                    yield first, future.result()
                self.tell.started(self.source.document_path(candidate.found.relative))
                running.append((candidate, threads.submit(self.preparer.prepare, candidate)))
                size += candidate.found.size
            while running:
                first, future = running.popleft()
                if not self._has_ended(future):
                    return
                yield first, future.result()
        finally:
            # Not waited for: a parser that hangs is ended with its pool, and what it made is of no use any more.
            threads.shutdown(wait=False, cancel_futures=True)

    def _has_ended(self, future: Future[Outcome]) -> bool:
        """Wait for it; false when the run is cancelled first."""
        while not self.run_of.is_cancelled():
            if wait([future], timeout=CANCEL_POLL_S).done:
                return True
        return False

    # Write

    def _write(self, batch: Sequence[tuple[Candidate, Outcome]]) -> None:
        if not batch:
            return
        results: list[PutResult] = []
        with self.store.write() as transaction:
            for candidate, outcome in batch:
                results += self._apply(transaction, candidate, outcome)
            revision = transaction.revision
        self.run_of.index(results, revision)
        for candidate, outcome in batch:
            self._tell(candidate, outcome)

    def _apply(self, transaction: WriteTransaction, candidate: Candidate, outcome: Outcome) -> Iterator[PutResult]:
        path = self.source.document_path(candidate.found.relative)
        if isinstance(outcome, NewContent):
            yield transaction.put_document(outcome.record, outcome.chunks, outcome.blocks)
            transaction.delete_failure(path)
        elif isinstance(outcome, NewPath):
            self.run_of.gone.pop(outcome.doc_no, None)
            yield transaction.rename_document(outcome.doc_no, outcome.record, outcome.chunk_ids)
        elif isinstance(outcome, SameContent):
            transaction.touch_document(candidate.doc_no, outcome.mtime_ns, outcome.modified_at)
        elif isinstance(outcome, Unreadable):
            if outcome.is_lasting:
                transaction.put_failure(
                    FileFailure(
                        path=path,
                        source_id=self.source.id,
                        byte_len=candidate.found.size,
                        mtime_ns=outcome.mtime_ns,
                        parser_version=f"{tried_by(outcome.reason, candidate.found.media, self.settings)}"
                        f"#{candidate.attempts + 1}",
                        reason=outcome.reason,
                        is_ocr=outcome.is_ocr,
                    )
                )
                if candidate.doc_no:
                    yield transaction.delete_document(candidate.doc_no)
        elif candidate.doc_no:  # left out or vanished: what was indexed is no longer there
            yield transaction.delete_document(candidate.doc_no)

    def _tell(self, candidate: Candidate, outcome: Outcome) -> None:
        path = self.source.document_path(candidate.found.relative)
        if isinstance(outcome, NewContent):
            if outcome.record.ocr_pages:
                self.tell.ocr_finished(path)
            self.tell.stored("updated" if candidate.doc_no else "new", outcome.record, outcome.warnings)
        elif isinstance(outcome, NewPath):
            self.tell.stored("renamed", outcome.record)
        elif isinstance(outcome, SameContent):
            self.tell.unchanged(path, was_candidate=True)
        elif isinstance(outcome, Unreadable):
            self.tell.failed(path, describe_failure(outcome.reason, candidate.attempts + 1))
        elif isinstance(outcome, LeftOut):
            if outcome.kind == "extension":
                self.tell.skips.add_extension(path)
            else:
                self.tell.skips.add(outcome.kind, path)
            self.tell.skipped(path, outcome.kind)
        elif candidate.doc_no:
            self.tell.removed(path)


def _no_folder() -> InvalidArgument:
    return InvalidArgument("an ingest needs a folder, and none is configured", "kebab init FOLDER, or --root FOLDER")


def _describe(error: BaseException) -> str:
    known = from_os_error(error)
    if known is not None:
        return known.message
    return str(error) or type(error).__name__
