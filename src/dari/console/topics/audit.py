"""Topic `audit`: records as they are written, those that a filter wants.

The first event has what was written since the record that the page saw last (`since`: its number), or nothing for one
that has seen none; `is_reset` says that there was more, so that the page searches anew. `extra` is the filter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from dari.console.live import Lost, TopicFeed, TopicOptions
from dari.console.tools.audit import AuditEntry, AuditFilter, audit_of, entry_of
from dari.core.audit.query import RecordFilter, search
from dari.core.audit.record import AuditRecord
from dari.errors import InvalidInput
from dari.struct_types import ready

if TYPE_CHECKING:
    from pathlib import Path

    from dari.console.backends import ConsoleBackends

MAX_MISSED = 200
MAX_QUEUED_BATCHES = 200
PAUSE_S = 0.1


class AuditNews(Struct, frozen=True, kw_only=True):
    records: list[AuditEntry]
    """Newest first."""
    is_reset: bool = False
    """More was written than is told here: search again."""


async def follow_audit(backends: ConsoleBackends, argument: str, options: TopicOptions) -> AsyncIterator[AuditNews]:
    try:
        wanted = msgspec.convert(options.extra, ready(AuditFilter)).to_records()
    except msgspec.ValidationError as error:
        raise InvalidInput(f"extra must be a filter: {error}", "use the fields of dari_audit_search") from None
    log, loop = audit_of(backends), asyncio.get_running_loop()
    feed: TopicFeed[Sequence[AuditRecord]] = TopicFeed(MAX_QUEUED_BATCHES)

    def hear(records: Sequence[AuditRecord]) -> None:
        loop.call_soon_threadsafe(feed.put, records)

    stop = log.subscribe(hear)
    try:
        since = int(options.since) if options.since.isascii() and options.since.isdigit() else 0
        yield await asyncio.to_thread(_missed, log.directory, wanted, since)
        while True:
            batches = await feed.take()
            if isinstance(batches, Lost):
                yield AuditNews(records=[], is_reset=True)
                continue
            found = [one for batch in batches for one in batch if one.n > since and wanted.match(one)]
            for start in range(0, len(found), MAX_MISSED):
                part = found[start : start + MAX_MISSED]
                yield AuditNews(records=[entry_of(one) for one in reversed(part)])
            await asyncio.sleep(PAUSE_S)
    finally:
        stop()


def _missed(directory: Path, wanted: RecordFilter, since: int) -> AuditNews:
    """What a page that was away has not seen."""
    if not since:
        return AuditNews(records=[])
    page = search(directory, wanted, limit=MAX_MISSED + 1)
    missed = [one for one in page.records if one.n > since]
    if len(missed) > MAX_MISSED:
        return AuditNews(records=[], is_reset=True)
    return AuditNews(records=[entry_of(one) for one in missed])
