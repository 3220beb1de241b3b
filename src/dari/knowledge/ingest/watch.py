"""Re-index on change: the folders are watched, and what changed is ingested when it has been quiet for a moment."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable

from dari.errors import DariError
from dari.files.ignore import GITIGNORE
from dari.knowledge.config import Settings, Source
from dari.knowledge.errors import InvalidArgument
from dari.knowledge.ingest.pipeline import IngestRun, IngestScope
from dari.knowledge.ingest.report import Listener
from dari.knowledge.ingest.sources import all_sources
from dari.knowledge.ingest.walk import KEBABIGNORE, is_builtin_folder
from dari.knowledge.ingest.writer import open_writer
from dari.knowledge.wire.reports import IngestReportV1
from dari.os_errors import from_os_error

LOCK_WAIT_S = 300.0
MAX_PATHS = 200
"""More paths than this at once: the whole source is compared, which is cheaper."""


def watch(
    settings: Settings,
    *,
    stopped: threading.Event,
    on_report: Callable[[IngestReportV1], None],
    on_error: Callable[[DariError], None],
    listener: Listener | None = None,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Ingest all once, then what changes, until `stopped`. One ingest that fails is reported; watching goes on, and the
    next change has everything compared again."""
    from watchfiles import watch as changes_of

    with open_writer(settings, LOCK_WAIT_S, stopped) as writer:
        sources = all_sources(settings, writer.store)
    if not sources:
        raise InvalidArgument("watching needs a folder, and none is configured", "kebab init FOLDER")
    roots = {os.path.realpath(source.root): source for source in sources}
    own = tuple(os.path.realpath(path) + "/" for path in (settings.data.data, settings.logs))

    everything = [IngestScope(source) for source in sources]

    def run(scopes: list[IngestScope]) -> bool:
        """False: it failed, and what had changed is not indexed."""
        try:
            with open_writer(settings, LOCK_WAIT_S, stopped) as writer:
                report = IngestRun(writer, scopes, listener=listener, cancelled=stopped).run()
            on_report(report)  # the lock is free again: the listener may make vectors
        except (DariError, OSError, sqlite3.Error) as error:
            # Also of opening the store: the disk is as full as it was when the last run failed.
            if (known := from_os_error(error)) is None:
                raise
            on_error(known)
            return False
        return True

    def is_ours(_: object, path: str) -> bool:
        return not path.startswith(own)

    watching = changes_of(
        *(root for root in roots if os.path.isdir(root)),
        watch_filter=is_ours,
        debounce=settings.config.ingest.watch_debounce_ms,
        stop_event=stopped,
        rust_timeout=500,
        yield_on_timeout=True,
        raise_interrupt=False,
    )
    is_first, is_behind = True, False
    for changes in watching:  # begins with a time-out without changes: the watch stands, so nothing is missed
        if is_first:
            is_first = False
            is_behind = not run(everything)
            on_ready()
        if changes and not stopped.is_set() and (scopes := scopes_of({path for _, path in changes}, roots)):
            is_behind = not run(everything if is_behind else scopes)


def scopes_of(paths: Iterable[str], roots: dict[str, Source]) -> list[IngestScope]:
    """What to look at again: the paths, or the whole source where an ignore file changed or too many did."""
    changed: dict[str, set[str]] = {}
    for path in paths:
        root = max((root for root in roots if path.startswith(root.rstrip("/") + "/")), key=len, default=None)
        if root is None:
            continue
        relative = os.path.relpath(path, root)
        if not any(map(is_builtin_folder, relative.split("/"))):
            changed.setdefault(root, set()).add(relative)
    scopes: list[IngestScope] = []
    for root, below in sorted(changed.items()):
        has_ignore_file = any(os.path.basename(path) in (GITIGNORE, KEBABIGNORE) for path in below)
        is_whole = has_ignore_file or len(below) > MAX_PATHS
        scopes.append(IngestScope(roots[root], () if is_whole else tuple(sorted(below))))
    return scopes
