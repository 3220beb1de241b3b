"""A line of the audit log: one JSON object that carries the SHA-256 of the line before it.

The hash of a record is the hash of its line as it stands in the file, without the newline, so `sha256sum` can check it.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from dari.struct_types import ready

Outcome = Literal["ok", "tool_error", "error", "denied", "held", "limited", "timed_out", "cancelled"]
RecordKind = Literal["call", "decision", "opened", "closed", "repaired", "pruned", "reopened", "dropped", "spooled"]
"""`decision`: what a person did (pins, approvals). The others tell of the log itself; `spooled` comes after the
records that the hub took over from the file of another process."""

FIRST_PREV_HASH = "0" * 64
"""`prev` of the very first record."""


class PendingRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A record before it has its number and its link: as callers queue it, and as a line of a spool."""

    at: float
    """Unix time."""
    kind: RecordKind = "call"
    part: str = ""
    server: str = ""
    tool: str = ""
    outcome: Outcome | Literal[""] = ""
    who: str = ""
    session: str = ""
    ms: float = 0.0
    result_bytes: int = 0
    arguments: Raw | UnsetType = UNSET
    """JSON; redacted by the thread that writes the record."""
    error: str = ""
    detail: dict[str, Any] = {}

    def numbered(self, n: int, prev: str) -> AuditRecord:
        return AuditRecord(
            n=n,
            at=datetime.fromtimestamp(self.at, UTC),
            kind=self.kind,
            part=self.part,
            server=self.server,
            tool=self.tool,
            outcome=self.outcome,
            who=self.who,
            session=self.session,
            ms=self.ms,
            result_bytes=self.result_bytes,
            arguments=self.arguments,
            error=self.error,
            detail=self.detail,
            prev=prev,
        )


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    n: int
    at: Annotated[datetime, Meta(tz=True)]
    kind: RecordKind = "call"
    part: str = ""
    """Which part ran the tool: `crab`, `crux`, `bridge`, `dari`; empty for unknown tools and other kinds of records."""
    server: str = ""
    tool: str = ""
    outcome: Outcome | Literal[""] = ""
    who: str = ""
    session: str = ""
    ms: float = 0.0
    result_bytes: int = 0
    arguments: Raw | UnsetType = UNSET
    """Redacted, and cut when long."""
    error: str = ""
    detail: dict[str, Any] = {}
    prev: str

    @property
    def shown_arguments(self) -> Any:
        """The arguments as a value; None when there were none."""
        return None if self.arguments is UNSET else msgspec.json.decode(self.arguments)


encode = msgspec.json.Encoder(decimal_format="number").encode
decode = msgspec.json.Decoder(ready(AuditRecord)).decode
decode_pending = msgspec.json.Decoder(ready(PendingRecord)).decode


def hash_of(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def part_of(record: AuditRecord) -> str:
    """Which part the record tells of; the bridge wrote those of the time before there was more than one."""
    return record.part or ("bridge" if record.kind == "call" and record.server else "")
