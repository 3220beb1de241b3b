"""An ingest from end to end: the documents, then the vectors of the active model, and one terminal event after both.

Documents are findable by their words as soon as they are stored. Vectors follow in small commits; a run that ends
early loses none that were made, and the next run, or kebabd, makes the rest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from dari.knowledge.asked_for import asked_for_in
from dari.knowledge.config import Settings
from dari.knowledge.embed import EmbedProgress, EmbedReport, embed_pending
from dari.knowledge.ingest.report import Listener
from dari.knowledge.models.installed import use_for_languages
from dari.knowledge.models.model import load_model
from dari.knowledge.store.records import utc_text
from dari.knowledge.wire.reports import TERMINAL_KINDS, IngestProgressV1, IngestReportV1

Work = Callable[[Listener | None], IngestReportV1]


def index_folders(
    settings: Settings,
    root: Path | None = None,
    *,
    force: bool = False,
    take_over: bool = False,
    has_items: bool = True,
    embeds: bool = True,
    listener: Listener | None = None,
    cancelled: threading.Event | None = None,
    wait_s: float | None = None,
) -> IngestReportV1:
    """Bring the index up to what is in the configured folders, or in one of them."""
    from dari.knowledge.ingest.pipeline import ingest

    cancelled = cancelled or threading.Event()
    return _with_vectors(
        settings,
        lambda tell: ingest(
            settings,
            root,
            force=force,
            take_over=take_over,
            has_items=has_items,
            listener=tell,
            cancelled=cancelled,
            wait_s=wait_s,
        ),
        listener,
        cancelled,
        embeds=embeds,
    )


def index_file(
    settings: Settings,
    path: Path,
    *,
    is_checked: bool = False,
    listener: Listener | None = None,
    cancelled: threading.Event | None = None,
    wait_s: float | None = None,
) -> IngestReportV1:
    """Index one file. `is_checked`: the path has been decided about, so it must lead to no other file now."""
    from dari.knowledge.ingest.single import ingest_file

    cancelled = cancelled or threading.Event()
    return _with_vectors(
        settings,
        lambda tell: ingest_file(
            settings, path, is_checked=is_checked, listener=tell, cancelled=cancelled, wait_s=wait_s
        ),
        listener,
        cancelled,
        is_single=True,
    )


def index_text(
    settings: Settings,
    text: bytes,
    title: str,
    source_uri: str = "",
    *,
    listener: Listener | None = None,
    cancelled: threading.Event | None = None,
    wait_s: float | None = None,
) -> IngestReportV1:
    """Index a text that is in no file."""
    from dari.knowledge.ingest.single import ingest_bytes

    cancelled = cancelled or threading.Event()
    return _with_vectors(
        settings,
        lambda tell: ingest_bytes(settings, text, title, source_uri, listener=tell, cancelled=cancelled, wait_s=wait_s),
        listener,
        cancelled,
        is_single=True,
    )


def make_vectors(
    settings: Settings, on_progress: Callable[[EmbedProgress], None], cancelled: threading.Event, limit: int = 0
) -> EmbedReport | None:
    """Give every chunk, or the `limit` newest, a vector of the active model; None without a model, or where
    nothing is missing."""
    from dari.knowledge.backend import open_backend

    embedding, data = settings.config.embedding, settings.data
    with closing(open_backend(settings)) as backend:
        if not backend.exists():
            return None
        with closing(backend.open_store()) as store:
            stats = store.stats()
            use_for_languages(embedding, data.data, stats.lang_breakdown)
            model = load_model(embedding, data.data)
            # Counted: to look for one where none is missing reads every chunk, and kebabd looks every ten seconds.
            state = None if model is None else store.vector_state(model.key)
            if model is None or not (stats.chunk_count if state is None else state.pending_chunks):
                return None
            # What an earlier search found comes first, except where one new document waits for its own vectors.
            asked_for = None if limit else asked_for_in(data.data)
            return embed_pending(
                store, backend, model, on_progress=on_progress, cancel=cancelled, asked_for=asked_for, limit=limit
            )


def _with_vectors(
    settings: Settings,
    work: Work,
    listener: Listener | None,
    cancelled: threading.Event,
    *,
    embeds: bool = True,
    is_single: bool = False,
) -> IngestReportV1:
    """A single document waits for its own vectors only, not for those of a whole corpus under another model."""
    last: list[IngestProgressV1] = []
    has_begun = threading.Event()

    def tell(event: IngestProgressV1) -> None:
        has_begun.set()
        if event.kind in TERMINAL_KINDS:
            last.append(event)
        elif listener is not None:
            listener(event)

    def tell_vectors(progress: EmbedProgress) -> None:
        if listener is not None:
            done, total = progress.embedded, progress.embedded + progress.pending
            listener(IngestProgressV1(kind="embed_progress", ts=utc_text(), done=done, total=total))

    try:
        report = work(tell)
        if embeds and not report.aborted and not cancelled.is_set():
            if listener is not None:
                listener(IngestProgressV1(kind="embed_started", ts=utc_text()))
            made = make_vectors(settings, tell_vectors, cancelled, _chunk_count(report) if is_single else 0)
            if made is not None and made.cancelled:
                report = replace(report, aborted=True)
                last = [IngestProgressV1(kind="aborted", ts=utc_text(), report=report)]
    except Exception as error:
        if has_begun.is_set():
            _tell_last(listener, IngestProgressV1(kind="aborted", ts=utc_text(), error=str(error)))
        raise
    _tell_last(listener, last[0] if last else IngestProgressV1(kind="completed", ts=utc_text(), report=report))
    return report


def _chunk_count(report: IngestReportV1) -> int:
    items = report.items if report.items is not UNSET else ()
    return max(1, sum(item.chunk_count for item in items if isinstance(item.chunk_count, int)))


def _tell_last(listener: Listener | None, event: IngestProgressV1) -> None:
    if listener is not None:
        listener(event)
