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
MAX_WAIT_S = 600.0
"""How long it waits at most after turns that ended with an error nobody foresaw; the wait doubles with each."""
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
        surprises = 0
        while True:
            await asyncio.sleep(self._wait_s(surprises))
            self.is_working = True
            try:
                surprises = (
                    0 if await asyncio.to_thread(self._try, "not_embedded", self._make_vectors) else surprises + 1
                )
            finally:
                self.is_working = False

    async def _watch(self) -> None:
        """A folder that cannot be watched now may be there later."""
        surprises = 0
        while True:
            surprises = 0 if await asyncio.to_thread(self._try, "not_watching", self._watch_once) else surprises + 1
            await asyncio.sleep(self._wait_s(surprises))

    def _wait_s(self, surprises: int) -> float:
        return min(self._look_s * 2.0 ** min(surprises, 16), max(MAX_WAIT_S, self._look_s))

    def _try(self, event: str, turn: Callable[[], None]) -> bool:
        """One turn. Whatever it raises is logged, and ends this turn alone; false: with an error nobody foresaw."""
        try:
            turn()
        except (DariError, OSError) as error:
            _log.warning("kebab event=%s: %s", event, error)
        except Exception:
            _log.exception("kebab event=%s: an error of kebab; it tries again later", event)
            return False
        return True

    def _make_vectors(self) -> None:
        from dari.knowledge.indexing import make_vectors

        settings = self._settings()
        if settings.is_readonly:
            return
        report = make_vectors(settings, lambda _: None, self._stopped)
        if report is not None and report.embedded:
            _log.info("kebab event=embedded model=%s chunks=%d", report.model_key, report.embedded)

    def _watch_once(self) -> None:
        from dari.knowledge.ingest.watch import watch

        watch(
            self._settings(),
            stopped=self._stopped,
            on_report=lambda report: _log.info(
                "kebab event=ingested new=%d updated=%d removed=%d", report.new, report.updated, report.removed
            ),
            on_error=lambda error: _log.warning("kebab event=not_ingested: %s", error.message),
        )
