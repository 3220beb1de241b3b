"""Questions to the audit log, answered newest first, without reading more than they need."""

from __future__ import annotations

from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from dari.core.audit.record import AuditRecord, Outcome, RecordKind, part_of
from dari.core.audit.verify import records_backwards


def query(
    directory: Path,
    *,
    part: str | None = None,
    server: str | None = None,
    tool: str | None = None,
    who: str | None = None,
    outcome: Outcome | None = None,
    kind: RecordKind | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 100,
) -> list[AuditRecord]:
    """Records that match all that is given; `server`, `tool` and `who` are globs. Times need a time zone."""
    found: list[AuditRecord] = []
    # A record may stand in a file of the day before its own: the writer never goes back, and clocks do.
    since_day = (since - timedelta(days=1)).date().isoformat() if since is not None else ""
    for record in records_backwards(directory, since_day):
        if len(found) >= limit:
            break
        if (
            (since is None or record.at >= since)
            and (until is None or record.at < until)
            and (outcome is None or record.outcome == outcome)
            and (kind is None or record.kind == kind)
            and (part is None or part_of(record) == part)
            and (server is None or fnmatchcase(record.server, server))
            and (tool is None or fnmatchcase(record.tool, tool))
            and (who is None or fnmatchcase(record.who, who))
        ):
            found.append(record)
    return found
