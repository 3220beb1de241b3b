"""`dari_audit_*`: who called what and what came of it: search, one record, sessions, export, and is the log whole."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct

from dari.core.audit.activity import SessionActivity
from dari.core.audit.query import RecordFilter, RecordPage, record_at, search
from dari.core.audit.record import AuditRecord, Outcome, RecordKind, encode, hash_of, part_of
from dari.core.audit.verify import BrokenLink, verify
from dari.core.scopes import ADMIN
from dari.core.tool import tool
from dari.errors import InvalidInput, NeedsApproval, NotFound, Unavailable

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends
    from dari.core.audit.log import AuditLog

FLUSH_S = 1.0
MAX_LIMIT = 500
MAX_EXPORT = 2000
VERIFY_S = 600.0
Glob = Annotated[str, Meta(description="A glob such as mcp:* or *delete*; empty: any", max_length=300)]
Unix = Annotated[float, Meta(description="Unix time in seconds; 0: no limit", ge=0, le=10**11)]
Cursor = Annotated[str, Meta(description="`next` of the page before; empty: the newest records", max_length=60)]


class AuditFilter(Struct, frozen=True, kw_only=True):
    """What a record must agree with; what is empty does not count."""

    who: Glob = ""
    part: Annotated[str, Meta(description="crab, crux, kebab, crewx_tools, bridge or dari", max_length=40)] = ""
    server: Glob = ""
    tool: Glob = ""
    outcome: Annotated[Outcome | Literal[""], Meta(description="How the call ended")] = ""
    kind: Annotated[RecordKind | Literal[""], Meta(description="call, decision, or what befell the log")] = ""
    session: Annotated[str, Meta(description="One session of a client", max_length=200)] = ""
    text: Annotated[str, Meta(description="Anywhere in names, arguments, errors, details", max_length=300)] = ""
    agents_only: Annotated[bool, Meta(description="Without what people do in the console")] = False
    since_unix: Unix = 0.0
    until_unix: Unix = 0.0

    def to_records(self) -> RecordFilter:
        return RecordFilter(
            part=self.part or None,
            server=self.server or None,
            tool=self.tool or None,
            who=self.who or None,
            not_who="app:*" if self.agents_only else None,
            outcome=self.outcome or None,
            kind=self.kind or None,
            session=self.session or None,
            text=self.text or None,
            since=_moment(self.since_unix),
            until=_moment(self.until_unix),
        )


NO_FILTER = AuditFilter()


class AuditEntry(Struct, frozen=True, kw_only=True):
    """A record as the page shows it."""

    n: int
    at_unix: float
    kind: RecordKind
    part: str
    server: str
    tool: str
    outcome: str
    who: str
    session: str
    ms: float
    result_bytes: int
    error: str
    detail: dict[str, Any]
    arguments: Any
    approval: str
    """The id of the approval that it asks for, gives or denies; empty: none."""


class AuditPage(Struct, frozen=True, kw_only=True):
    """`next` goes on with older records, also when a page is empty: it may have read enough for one call."""

    records: list[AuditEntry]
    next: str
    read: int


class AuditDetail(Struct, frozen=True, kw_only=True):
    record: AuditEntry
    prev: str
    hash: str
    line: str
    """The JSON line as it stands in the file."""


class AuditSessions(Struct, frozen=True):
    sessions: list[SessionActivity]


class AuditExport(Struct, frozen=True, kw_only=True):
    lines: str
    """JSON lines as they stand in the file, newest first."""
    records: int
    next: str


class AuditVerdict(Struct, frozen=True, kw_only=True):
    is_whole: bool
    files: int
    records: int
    head: str
    """Number and hash of the last record, to be noted elsewhere."""
    broken: BrokenLink | None
    torn_bytes: int


class AuditTools:
    """Tools named `dari_audit_<name>`."""

    prefix = "dari_audit"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._backends = backends

    @tool(scope=ADMIN, read_only=True, output="as_is", name="search")
    async def search_records(
        self,
        filter: Annotated[AuditFilter, Meta(description="What records must agree with")] = NO_FILTER,
        cursor: Cursor = "",
        limit: Annotated[int, Meta(description="Records of a page", ge=1, le=MAX_LIMIT)] = 100,
    ) -> AuditPage:
        """Search the audit log, newest first; returns a page of records and the cursor of the next one."""
        found = await self._search(filter, cursor, limit)
        return AuditPage(records=[entry_of(one) for one in found.records], next=found.next, read=found.read)

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def show(self, n: Annotated[int, Meta(description="The number of the record", ge=1)]) -> AuditDetail:
        """Show one record with its arguments, its hash and the hash of the one before."""
        log = await self._flushed()
        record = await asyncio.to_thread(record_at, log.directory, n)
        if record is None:
            raise NotFound(
                f"no record has the number {n}", "it may have been pruned; dari_audit_search lists the newest"
            )
        line = encode(record)
        return AuditDetail(record=entry_of(record), prev=record.prev, hash=hash_of(line), line=line.decode())

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def sessions(
        self, limit: Annotated[int, Meta(description="Sessions at most", ge=1, le=MAX_LIMIT)] = 100
    ) -> AuditSessions:
        """List the sessions of agents in the last day, newest first, with the parts they used and their calls."""
        await self._flushed()
        index = self._backends.bridge.activity
        if index is None:
            return AuditSessions([])
        await asyncio.to_thread(index.open)
        return AuditSessions(index.sessions(limit, agents_only=True))

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def export(
        self,
        filter: Annotated[AuditFilter, Meta(description="What records must agree with")] = NO_FILTER,
        cursor: Cursor = "",
        limit: Annotated[int, Meta(description="Records of a part", ge=1, le=MAX_EXPORT)] = MAX_EXPORT,
    ) -> AuditExport:
        """Return a part of the log as JSON lines, newest first, and the cursor of the next part."""
        found = await self._search(filter, cursor, limit)
        lines = "".join(encode(one).decode() + "\n" for one in found.records)
        return AuditExport(lines=lines, records=len(found.records), next=found.next)

    @tool(scope=ADMIN, read_only=True, output="as_is", timeout_s=VERIFY_S)
    async def verify(self) -> AuditVerdict:
        """Check the chain of hashes from the first record to the last; returns the first place that does not fit."""
        log = await self._flushed()
        report = await asyncio.to_thread(verify, log.directory)
        head = report.head
        return AuditVerdict(
            is_whole=report.is_whole,
            files=report.files,
            records=report.records,
            head=f"{head.n}:{head.hash}" if head else "",
            broken=report.broken,
            torn_bytes=report.torn,
        )

    async def _search(self, wanted: AuditFilter, cursor: str, limit: int) -> RecordPage:
        log = await self._flushed()
        return await asyncio.to_thread(_search, log.directory, wanted, cursor, limit)

    async def _flushed(self) -> AuditLog:
        """The log with what has just ended in it."""
        log = audit_of(self._backends)
        await asyncio.to_thread(log.flush, FLUSH_S)
        return log


def audit_of(backends: ConsoleBackends) -> AuditLog:
    log = backends.bridge.audit
    if log is None:
        raise Unavailable("this hub records nothing", "start it with its audit log")
    return log


def entry_of(record: AuditRecord) -> AuditEntry:
    given = record.arguments
    return AuditEntry(
        n=record.n,
        at_unix=record.at.timestamp(),
        kind=record.kind,
        part=part_of(record),
        server=record.server,
        tool=record.tool,
        outcome=record.outcome,
        who=record.who,
        session=record.session,
        ms=record.ms,
        result_bytes=record.result_bytes,
        error=record.error,
        detail=record.detail,
        arguments=None if given is UNSET else given,
        approval=_approval_of(record),
    )


def _approval_of(record: AuditRecord) -> str:
    if record.kind == "decision" and isinstance(record.detail.get("id"), str):
        return str(record.detail["id"])
    return NeedsApproval(record.error).approval_id if record.outcome == "held" else ""


def _search(directory: Path, wanted: AuditFilter, cursor: str, limit: int) -> RecordPage:
    return search(directory, wanted.to_records(), cursor=cursor, limit=limit)


def _moment(unix: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(unix, UTC) if unix else None
    except (OverflowError, ValueError, OSError):
        raise InvalidInput(f"a time must be a Unix time in seconds, got {unix:g}", "such as 1763400000") from None
