"""Questions to the audit log, answered newest first, without reading more than they need."""

from __future__ import annotations

from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from dari.bridge.trust.audit.checking import records_backwards
from dari.bridge.trust.audit.record import Kind, Outcome, Record


def query(
    directory: Path,
    *,
    server: str | None = None,
    tool: str | None = None,
    who: str | None = None,
    outcome: Outcome | None = None,
    kind: Kind | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 100,
) -> list[Record]:
    """Records that match all that is given; `server`, `tool` and `who` are globs. Times need a time zone."""
    found: list[Record] = []
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
            and (server is None or fnmatchcase(record.server, server))
            and (tool is None or fnmatchcase(record.tool, tool))
            and (who is None or fnmatchcase(record.who, who))
        ):
            found.append(record)
    return found
