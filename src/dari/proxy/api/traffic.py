"""Recorded traffic: log, search, bodies, diff, replay, HAR.

Secrets are hidden in every result, except in those of the `reveal_*` methods, which need the scope `admin`. What may be
long (decoding, searching, comparing) runs in a thread.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, Failed, InvalidInput, NotFound
from dari.os_errors import describe_os_error, suggest_next_step
from dari.proxy import headers
from dari.proxy import replay as replays
from dari.proxy.flow import Flow
from dari.proxy.formats import diff, entries, har, har_import, log, snippets
from dari.proxy.formats.diff import FlowDiff
from dari.proxy.formats.entries import EntryFound, EntryOptions, EntryPage
from dari.proxy.formats.log import Cleared, LogPage
from dari.proxy.query import views
from dari.proxy.query.fields import DEFAULT_FIELDS, FIELDS, row_of, rows_fields
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.search import (
    DEFAULT_LIMIT_FLOWS,
    DEFAULT_TOKEN_BUDGET,
    Scan,
    SearchResult,
    Sources,
    search,
)
from dari.proxy.query.summary import DEFAULT_GROUPS, Summary, summarize
from dari.proxy.query.views import BodyView
from dari.proxy.query.wait import MAX_TIMEOUT_S, wait_for
from dari.proxy.recording.ring import MAX_FLOWS, Slot
from dari.proxy.replay import RequestEdits, Sender, SentRequest
from dari.text.redact import REVEALED, Redactor, redact_secrets
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.proxy.runtime import ProxyRuntime

DEFAULT_LOG_RECORDS = 200
DEFAULT_TAIL_RECORDS = 400
DEFAULT_TAIL_ENTRIES = 100
DEFAULT_TIMEOUT_S: float = 30
DEFAULT_BODY_CHARS = 32_000
DEFAULT_HAR_FLOWS = MAX_FLOWS
_EXPORT_S = 60.0
_CHUNK_BYTES = 8 * 1024 * 1024
"""In base64 still below the longest line of a daemon."""
_PART_BYTES = 1024 * 1024
_PART_BODY_BYTES = 2 * 1024 * 1024
"""Two bodies in base64, and what came before them, are below the longest line, too."""
_REVEALED_BYTES = 128 * 1024 * 1024
_EVERYTHING = TrafficFilter()
_UNCHANGED = RequestEdits()


class WaitResult(Struct, frozen=True):
    """`flow` is what arrived; nothing when the time was over."""

    found: bool
    flow: dict[str, Any] | None
    next_seq: int


class RequestSnippet(Struct, frozen=True):
    request_id: str
    language: str
    code: str


class HarExport(Struct, frozen=True):
    path: str
    size_bytes: int


class HarImport(Struct, frozen=True):
    imported: int
    first_id: str | None
    last_id: str | None
    skipped_count: int
    skipped: list[har_import.Skipped]


class HarPart(Struct, frozen=True):
    """Entries of a HAR file, newest first; those before `next_before_id` follow, if it is not null."""

    entries: list[dict[str, Any]]
    next_before_id: int | None
    version: str = VERSION


class FlowView(Struct, frozen=True):
    request_id: str
    flow: dict[str, Any]


class BodyChunk(Struct, frozen=True):
    """Bytes of a decoded body from `start` on; `total_bytes` of it are there, all of it when `is_whole`."""

    data: bytes
    start: int
    total_bytes: int
    mime: str
    is_whole: bool
    note: str | None = None


class TrafficApi:
    def __init__(self, runtime: ProxyRuntime) -> None:
        self._runtime = runtime
        self._recording = runtime.recording
        self._sender = Sender(runtime)

    @expose("logs.tail", "read")
    async def log(self, after_seq: int = 0, limit: int = DEFAULT_LOG_RECORDS) -> LogPage:
        """Log records after `after_seq`, oldest first."""
        recording, after_seq = self._recording, max(after_seq, 0)
        found = log.select(recording.ring, after_seq, limit)
        return await recording.read(log.render, found, after_seq, recording.redactor)

    @expose("logs.clear", "control")
    async def clear(self) -> Cleared:
        """Forget what was recorded, on disk too."""
        marks, last_seq = await self._recording.clear()
        return Cleared(True, log.count(marks), last_seq)

    @expose("traffic.tail", "read")
    async def tail(
        self,
        after_seq: int = 0,
        limit: int = DEFAULT_TAIL_RECORDS,
        max_entries: int = DEFAULT_TAIL_ENTRIES,
        include_headers: bool = True,
        include_body_sample_b64: bool = False,
    ) -> EntryPage:
        """Whole requests, newest first."""
        recording = self._recording
        found = entries.select(recording.ring, max(after_seq, 0), limit, max_entries)
        options = EntryOptions(include_headers, include_body_sample_b64)
        return await recording.read(entries.render, found, options, recording.redactor)

    @expose("traffic.entry", "read")
    async def entry(
        self, request_id: str, include_headers: bool = True, include_body_sample_b64: bool = False
    ) -> EntryFound:
        """One request, also one that only the database still has."""
        recording = self._recording
        try:
            flow = await recording.flow(flow_id_of(request_id))
        except (InvalidInput, NotFound) as error:
            hint = "find one with crab_traffic_search or crab_traffic_tail"
            raise NotFound(f"request_id not found in current log window: {request_id}", hint) from error
        slot = recording.ring.get(flow.id) or Slot(flow)
        found = entries.entry(slot, EntryOptions(include_headers, include_body_sample_b64), recording.redactor)
        return EntryFound(recording.ring.last_seq, log.count_of(slot), str(flow.id), found)

    @expose("traffic.show", "read")
    async def show(self, request_id: str, fields: list[str] | None = None) -> FlowView:
        """The named fields of one request, all of them by default."""
        return await self._show(request_id, rows_fields(fields) if fields else FIELDS, self._recording.redactor)

    @expose("traffic.reveal", "admin", needs_person=True)
    async def reveal(self, request_id: str) -> FlowView:
        """The same with its secrets: for a person, never for an agent."""
        return await self._show(request_id, FIELDS, REVEALED)

    async def _show(self, request_id: str, fields: tuple[str, ...], redactor: Redactor) -> FlowView:
        recording = self._recording
        flow = await recording.flow(flow_id_of(request_id))
        return FlowView(request_id, await recording.read(row_of, flow, fields, recording.bodies, redactor))

    @expose("traffic.search", "read")
    async def search(
        self,
        wanted: TrafficFilter = _EVERYTHING,
        limit: int = DEFAULT_LIMIT_FLOWS,
        cursor: str | None = None,
        fields: list[str] | None = None,
        token_budget: int = DEFAULT_TOKEN_BUDGET,
    ) -> SearchResult:
        """A page of flows, newest first."""
        return await self._recording.read(
            search,
            self._sources(),
            wanted,
            limit=limit,
            cursor=cursor,
            fields=fields,
            token_budget=token_budget,
        )

    @expose("traffic.summary", "read")
    async def summary(self, wanted: TrafficFilter = _EVERYTHING, groups: int = DEFAULT_GROUPS) -> Summary:
        """Counts, errors and durations by host and path template."""
        return await self._recording.read(summarize, self._sources(), wanted, groups)

    @expose("traffic.wait", "read", ends_with_caller=True)
    async def wait(
        self, wanted: TrafficFilter = _EVERYTHING, timeout_s: float = DEFAULT_TIMEOUT_S, after_seq: int | None = None
    ) -> WaitResult:
        """The next finished request that fits, or nothing when the time is over."""
        self._runtime.need_running()
        recording = self._recording
        waited = await wait_for(
            recording.ring,
            wanted,
            min(max(timeout_s, 0), MAX_TIMEOUT_S),
            after_seq=after_seq,
            bodies=recording.bodies,
            redactor=recording.redactor,
            read=recording.read,
        )
        if waited.flow is None:
            return WaitResult(False, None, waited.last_seq)
        row = await recording.read(row_of, waited.flow, DEFAULT_FIELDS, recording.bodies, recording.redactor)
        return WaitResult(True, row, recording.ring.last_seq)

    @expose("traffic.body", "read")
    async def body(
        self,
        request_id: str,
        direction: Literal["request", "response"] = "response",
        start: int = 0,
        end: int | None = None,
        max_chars: int = DEFAULT_BODY_CHARS,
    ) -> BodyView:
        """A decoded body, whole or a range of its decoded bytes."""
        recording = self._recording
        flow = await recording.flow(flow_id_of(request_id))
        return await recording.read(
            views.view,
            flow,
            direction == "request",
            recording.bodies,
            start=start,
            end=end,
            max_chars=max_chars,
            redactor=recording.redactor,
        )

    @expose("traffic.reveal_body", "admin", needs_person=True)
    async def reveal_body(
        self, request_id: str, direction: Literal["request", "response"] = "response", start: int = 0
    ) -> BodyChunk:
        """A chunk of the decoded body as it was, text or not, with its secrets: for a person."""
        recording = self._recording
        flow = await recording.flow(flow_id_of(request_id))
        from_client, bodies = direction == "request", recording.bodies
        found = await recording.read(views.decoded, flow, from_client, bodies, _REVEALED_BYTES)
        chunk = found.data[max(start, 0) : max(start, 0) + _CHUNK_BYTES]
        is_whole = views.is_whole(flow, from_client, bodies) and not found.is_cut
        mime = headers.mime(views.message(flow, from_client)[1])
        return BodyChunk(chunk, max(start, 0), len(found.data), mime, is_whole, found.problem)

    @expose("traffic.diff", "read")
    async def diff(self, first_id: str, second_id: str) -> FlowDiff:
        """What is different in the second request and its response."""
        recording = self._recording
        first = await recording.flow(flow_id_of(first_id))
        second = await recording.flow(flow_id_of(second_id))
        return await recording.read(diff.diff, first, second, recording.bodies, recording.redactor)

    @expose("traffic.code", "read")
    async def code(self, request_id: str, language: Literal["curl", "httpx", "urllib"] = "curl") -> RequestSnippet:
        """The request as a command or a program; secrets are left out."""
        recording = self._recording
        flow = await recording.flow(flow_id_of(request_id))
        if language == "curl":
            code = await recording.read(snippets.curl, flow, recording.bodies, recording.redactor)
        else:
            code = await recording.read(snippets.python, flow, recording.bodies, recording.redactor, language)
        return RequestSnippet(request_id, language, code)

    @expose("traffic.replay", "control")
    async def replay(
        self, request_id: str, edits: RequestEdits = _UNCHANGED, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> SentRequest:
        """Send it again with these changes; its secrets go along to the origin that they were recorded for, alone."""
        return await self._replay(request_id, edits, timeout_s, keeps_secrets=False)

    @expose("traffic.replay_with_secrets", "admin", needs_person=True)
    async def replay_with_secrets(
        self, request_id: str, edits: RequestEdits = _UNCHANGED, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> SentRequest:
        """The same, secrets and all to wherever the URL leads: for a person."""
        sent = await self._replay(request_id, edits, timeout_s, keeps_secrets=True)
        return redact_secrets(sent)  # type: ignore[no-any-return]

    async def _replay(
        self, request_id: str, edits: RequestEdits, timeout_s: float, *, keeps_secrets: bool
    ) -> SentRequest:
        self._runtime.need_running()
        replays.refuse_mark("body", edits.body_b64 if edits.body_b64 is not None else edits.body or "")
        recording = self._recording
        flow = await recording.flow(flow_id_of(request_id))
        request = await recording.read(replays.build, flow, edits, recording.bodies, keeps_secrets=keeps_secrets)
        return await self._sender.send(request, timeout_s)

    @expose("traffic.compose", "control")
    async def compose(
        self,
        url: str,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: str = "",
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> SentRequest:
        """Send a request made from nothing."""
        return await self._sender.send(replays.compose(method, url, headers, body), timeout_s)

    @expose("traffic.export_har", "control", is_slow=True)
    async def export_har(
        self,
        path: str | None = None,
        wanted: TrafficFilter = _EVERYTHING,
        limit: int = DEFAULT_HAR_FLOWS,
        include_bodies: bool = True,
        overwrite: bool = False,
    ) -> HarExport:
        """Write the newest flows that fit to a HAR 1.2 file, secrets hidden."""
        pieces = self._har(wanted, limit, self._recording.redactor, include_bodies=include_bodies)
        return await self._write_har(path, pieces, overwrite=overwrite)

    @expose("traffic.reveal_har", "admin", needs_person=True, is_slow=True)
    async def reveal_har(
        self,
        path: str | None = None,
        wanted: TrafficFilter = _EVERYTHING,
        limit: int = DEFAULT_HAR_FLOWS,
        overwrite: bool = False,
    ) -> HarExport:
        """The same with the secrets, for a person."""
        return await self._write_har(path, self._har(wanted, limit, REVEALED), overwrite=overwrite)

    def _har(
        self, wanted: TrafficFilter, limit: int, redactor: Redactor, *, include_bodies: bool = True
    ) -> Iterator[bytes]:
        """The pieces of a HAR file, oldest flow first; iterated in a thread."""
        if limit < 1:
            raise InvalidInput(f"limit must be 1 or more, got {limit}")
        flows = _oldest_first(self._sources(redactor), wanted, limit)
        return har.export(flows, self._recording.bodies, redactor, include_bodies=include_bodies)

    async def _write_har(self, path: str | None, pieces: Iterator[bytes], *, overwrite: bool) -> HarExport:
        runtime = self._runtime
        if path is None:
            target = _free_name(runtime.files.exports / time.strftime("crab-%Y%m%d-%H%M%S.har"))
        else:
            target = Path(runtime.local_files.check(path, "HAR file", is_new=True))
            if not target.parent.is_dir():
                raise Failed(f"no folder {target.parent}", "make it first, or name another one")
        if target.exists() and not overwrite:
            raise Conflict(f"{target} exists already", "name another file, or give overwrite=true")
        try:
            size = await asyncio.to_thread(_write, target, pieces)
        except OSError as error:
            raise Failed(
                f"cannot write {target}: {describe_os_error(error)}", suggest_next_step(error, "name another file")
            ) from error
        return HarExport(path or str(target), size)

    @expose("traffic.har_part", "read", is_slow=True)
    async def har_part(
        self,
        wanted: TrafficFilter = _EVERYTHING,
        before_id: int | None = None,
        include_bodies: bool = True,
    ) -> HarPart:
        """A part of what `export_har` writes, for a reader that has no files here; newest first, secrets hidden."""
        sources = self._sources()
        return await self._recording.read(_har_part, sources, wanted, before_id, include_bodies)

    @expose("traffic.import_har", "control", is_slow=True)
    async def import_har(self, path: str) -> HarImport:
        """Add the requests of a HAR file to the traffic, as if they had just ended."""
        limit = har_import.MAX_FILE_BYTES
        data = await asyncio.to_thread(self._runtime.local_files.read, path, "HAR file", limit)
        return await self._import(data)

    @expose("traffic.import_har_text", "control", is_slow=True)
    async def import_har_text(self, text: str) -> HarImport:
        """The same from the text of a HAR file, or of a part of one."""
        return await self._import(text.encode())

    async def _import(self, data: bytes) -> HarImport:
        recording = self._recording
        done = await recording.read(har_import.load, data, recording.next_id, recording.bodies)
        await recording.add(done.flows)
        ids = [str(flow.id) for flow in done.flows]
        return HarImport(len(ids), ids[0] if ids else None, ids[-1] if ids else None, done.skipped_count, done.skipped)

    def _sources(self, redactor: Redactor | None = None) -> Sources:
        recording = self._recording
        return Sources(recording.ring.newest(), recording.store, recording.bodies, redactor or recording.redactor)


def flow_id_of(request_id: str) -> int:
    """The id as callers write it: a decimal string."""
    if not request_id.isascii() or not request_id.isdigit() or len(request_id) > 18:
        raise InvalidInput(
            f"request_id must be a number, got {request_id[:40]!r}", "give a number such as crab_traffic_tail shows"
        )
    return int(request_id)


def _har_part(sources: Sources, wanted: TrafficFilter, before_id: int | None, include_bodies: bool) -> HarPart:
    """Entries until they are long enough, one at least."""
    made: list[dict[str, Any]] = []
    size_bytes = 0
    walk = Scan(sources, wanted, before_id)
    for flow in walk:
        if size_bytes >= _PART_BYTES:
            return HarPart(made, walk.last_id)
        if flow.method == "CONNECT" or flow.is_encrypted:
            continue
        body_bytes = _PART_BODY_BYTES if include_bodies else 0
        made.append(redact_secrets(har.entry(flow, sources.bodies, sources.redactor, body_bytes)))
        size_bytes += len(msgspec.json.encode(made[-1]))
    return HarPart(made, walk.last_id if walk.is_cut else None)


def _oldest_first(sources: Sources, wanted: TrafficFilter, limit: int) -> Iterator[Flow]:
    """Ids are collected first and flows read one at a time, so that memory holds one of them."""
    ids = [flow.id for flow in islice(Scan(sources, wanted, limit_s=_EXPORT_S), limit)]
    memory = {flow.id: flow for flow in sources.memory}
    for flow_id in reversed(ids):
        flow = memory.get(flow_id) or (sources.store.get(flow_id) if sources.store is not None else None)
        if flow is not None:
            yield flow


def _free_name(path: Path) -> Path:
    """The path, or one with a number for the second export in the same second: a name that we choose is never taken."""
    names = chain((path,), (path.with_stem(f"{path.stem}-{number}") for number in count(2)))
    return next(name for name in names if not name.exists())


def _write(target: Path, pieces: Iterator[bytes]) -> int:
    """Under another name until it is whole."""
    draft = target.with_name(f".{target.name}.{os.urandom(6).hex()}.part")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as stream:
            size = sum(stream.write(piece) for piece in pieces)
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return size
