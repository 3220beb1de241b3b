"""What an ingest says: events while it runs, exactly one at its end, and the report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from msgspec import UNSET, UnsetType

from dari.knowledge.ingest.walk import Skips
from dari.knowledge.store.records import DocumentRecord, utc_text
from dari.knowledge.wire.reports import IngestItem, IngestProgressV1, IngestReportV1, ItemKind, ProgressKind

Listener = Callable[[IngestProgressV1], None]
MAX_ITEMS = 10_000
"""A report of 100,000 files would be of no use to anybody; the counts are exact."""


class ReportWriter:
    """Counts what happens and sends events. Only the thread of the ingest calls it."""

    def __init__(self, scope: str, listener: Listener | None, has_items: bool = True) -> None:
        self.scope = scope
        self.skips = Skips()
        self.counts: Counter[ItemKind] = Counter()
        self.run_id = ""
        self.recovered = ""
        self.total = 0
        self._done = 0
        self._listener = listener
        self._items: list[IngestItem] | None = [] if has_items else None
        self._scanned = 0
        self._begin_s = time.monotonic()
        self._has_ended = False

    def scan_started(self) -> None:
        self._emit("scan_started")

    def scanned(self, count: int = 1) -> None:
        self._scanned += count
        if self._scanned % 500 == 0:
            self._emit("scan_progress", done=self._scanned)

    def scan_completed(self, total: int) -> None:
        self.total = total
        self._emit("scan_completed", done=self._scanned, total=total)

    def started(self, path: str) -> None:
        self._emit("asset_started", doc_path=path, done=self._done, total=self.total)

    def ocr_finished(self, path: str) -> None:
        self._emit("ocr_finished", doc_path=path)

    def ocr_started(self, path: str) -> None:
        self._emit("ocr_started", doc_path=path)

    def stored(self, kind: ItemKind, record: DocumentRecord, warnings: tuple[str, ...] = ()) -> None:
        """A document was added, updated or renamed, and is committed."""
        self._finish(
            IngestItem(
                kind=kind,
                doc_path=record.path,
                doc_id=record.doc_id,
                asset_id=record.asset_id,
                byte_len=record.byte_len,
                block_count=record.block_count,
                chunk_count=record.chunk_count,
                parser_version=record.parser_version,
                chunker_version=record.chunker_version,
                warnings=warnings or UNSET,
                pdf_ocr_pages=record.ocr_pages or UNSET,
                pdf_ocr_ms_total=record.ocr_ms or UNSET,
            ),
            record.chunk_count,
        )

    def unchanged(self, path: str, *, was_candidate: bool = False) -> None:
        """Files that were not even opened are counted without an event."""
        self.counts["unchanged"] += 1
        if was_candidate:
            self._done += 1
            self._emit("asset_finished", doc_path=path, done=self._done, total=self.total, outcome="unchanged")

    def removed(self, path: str) -> None:
        self.counts["removed"] += 1
        self._add_item(IngestItem(kind="removed", doc_path=path))
        self._emit("asset_finished", doc_path=path, done=self._done, total=self.total, outcome="removed")

    def skipped(self, path: str, kind: str) -> None:
        """`skips` has counted it; files that the walk left out have no event."""
        self._done += 1
        self._add_item(IngestItem(kind="skipped", doc_path=path, error=kind))
        self._emit("asset_skipped", doc_path=path, done=self._done, total=self.total, outcome=kind)

    def failed(self, path: str, error: str, *, was_candidate: bool = True) -> None:
        self.counts["error"] += 1
        self._done += was_candidate
        self._add_item(IngestItem(kind="error", doc_path=path, error=error))
        self._emit("asset_failed", doc_path=path, done=self._done, total=self.total, error=error)

    def report(self, *, aborted: bool = False) -> IngestReportV1:
        counts, skips = self.counts, self.skips.counts
        return IngestReportV1(
            scope=self.scope,
            scanned=self._scanned,
            new=counts["new"],
            updated=counts["updated"],
            renamed=counts["renamed"],
            removed=counts["removed"],
            unchanged=counts["unchanged"],
            errors=counts["error"],
            skipped=self.skips.total,
            duration_ms=round((time.monotonic() - self._begin_s) * 1000),
            skipped_by_extension=dict(self.skips.extensions.most_common()),
            skipped_gitignore=skips["gitignore"],
            skipped_kebabignore=skips["kebabignore"],
            skipped_builtin_blacklist=skips["builtin_blacklist"],
            skipped_generated=skips["generated"],
            skipped_size_exceeded=skips["size_exceeded"],
            skipped_secret=skips["secret"],
            skipped_excluded=skips["excluded"],
            skip_examples={kind: tuple(paths) for kind, paths in self.skips.examples.items()} or UNSET,
            items=tuple(self._items) if self._items is not None else UNSET,
            aborted=aborted,
            recovered=self.recovered or UNSET,
        )

    def end(self, *, aborted: bool, error: str = "") -> IngestReportV1:
        """The one terminal event."""
        assert not self._has_ended
        self._has_ended = True
        report = self.report(aborted=aborted)
        self._emit("aborted" if aborted else "completed", error=error or UNSET, report=report)
        return report

    def _finish(self, item: IngestItem, chunks: int) -> None:
        self.counts[item.kind] += 1
        self._done += 1
        self._add_item(item)
        self._emit(
            "asset_finished",
            doc_path=item.doc_path,
            done=self._done,
            total=self.total,
            chunks=chunks,
            outcome=item.kind,
        )

    def _add_item(self, item: IngestItem) -> None:
        if self._items is not None and len(self._items) < MAX_ITEMS:
            self._items.append(item)

    def _emit(
        self,
        kind: ProgressKind,
        *,
        doc_path: str | UnsetType = UNSET,
        done: int | UnsetType = UNSET,
        total: int | UnsetType = UNSET,
        chunks: int | UnsetType = UNSET,
        outcome: str | UnsetType = UNSET,
        error: str | UnsetType = UNSET,
        report: IngestReportV1 | UnsetType = UNSET,
    ) -> None:
        if self._listener is not None:
            self._listener(
                IngestProgressV1(
                    kind=kind,
                    ts=utc_text(),
                    run_id=self.run_id or UNSET,
                    doc_path=doc_path,
                    done=done,
                    total=total,
                    chunks=chunks,
                    outcome=outcome,
                    error=error,
                    report=report,
                )
            )
