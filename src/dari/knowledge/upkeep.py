"""What kebabd does by itself: makes vectors that are missing, and follows the folders where that is wanted."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from dari.errors import DariError
from dari.knowledge.config import Settings

LOOK_S = 10.0
"""How often it looks for chunks without a vector."""
_log = logging.getLogger("dari.kebab")


class Upkeep:
    """`run` works until it is cancelled; what it has begun ends at the next file or batch."""

    def __init__(self, settings: Callable[[], Settings], look_s: float = LOOK_S) -> None:
        self._settings = settings
        self._look_s = look_s
        self._stopped = threading.Event()
        self.is_working = False
        """Vectors are being made: no time to end for lack of requests."""

    async def run(self, *, watches: bool) -> None:
        jobs = [self._embed()]
        if watches:
            jobs.append(self._watch())
        try:
            await asyncio.gather(*jobs)
        finally:
            self._stopped.set()

    async def _embed(self) -> None:
        while True:
            await asyncio.sleep(self._look_s)
            self.is_working = True
            try:
                await asyncio.to_thread(self._make_vectors)
            finally:
                self.is_working = False

    def _make_vectors(self) -> None:
        from dari.knowledge.indexing import make_vectors

        try:
            settings = self._settings()
            if settings.is_readonly:
                return
            report = make_vectors(settings, lambda _: None, self._stopped)
            if report is not None and report.embedded:
                _log.info("kebab event=embedded model=%s chunks=%d", report.model_key, report.embedded)
        except (DariError, OSError) as error:
            _log.warning("kebab event=not_embedded: %s", error)

    async def _watch(self) -> None:
        """A folder that cannot be watched now may be there later."""
        while True:
            await asyncio.to_thread(self._watch_once)
            await asyncio.sleep(self._look_s)

    def _watch_once(self) -> None:
        from dari.knowledge.ingest.watch import watch

        try:
            watch(
                self._settings(),
                stopped=self._stopped,
                on_report=lambda report: _log.info(
                    "kebab event=ingested new=%d updated=%d removed=%d", report.new, report.updated, report.removed
                ),
                on_error=lambda error: _log.warning("kebab event=not_ingested: %s", error.message),
            )
        except (DariError, OSError) as error:
            _log.warning("kebab event=not_watching: %s", error)
