"""The traffic from a caller's view. Secrets are hidden in everything returned, except by the `reveal_*` methods."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, Failed
from dari.os_errors import describe_os_error, suggest_next_step
from dari.proxy import headers, replay
from dari.proxy.formats.diff import FlowDiff
from dari.proxy.formats.entries import EntryFound, EntryOptions, EntryPage
from dari.proxy.formats.har_import import MAX_FILE_BYTES, Skipped
from dari.proxy.formats.log import Cleared, LogPage
from dari.proxy.query import views
from dari.proxy.query.fields import DEFAULT_FIELDS, FIELDS, row_of
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.search import SearchResult
from dari.proxy.query.summary import Summary
from dari.proxy.query.traffic import flow_id_of
from dari.proxy.query.views import BodyView
from dari.proxy.replay import Sender, SentRequest
from dari.text.redact import redact_secrets

if TYPE_CHECKING:
    from dari.proxy.runtime import ProxyRuntime

MAX_WAIT_S = 300.0
_PIECE_BYTES = 8 * 1024 * 1024
"""In base64 still below the longest line of a daemon."""
_REVEALED_BYTES = 128 * 1024 * 1024
_EVERYTHING = TrafficFilter()


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
    skipped: list[Skipped]


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
    def __init__(self, machine: ProxyRuntime) -> None:
        self._machine = machine
        self._traffic = machine.traffic
        self._sender = Sender(machine)

    @expose("logs.tail", "read")
    async def log(self, after_seq: int = 0, limit: int = 200) -> LogPage:
        """Records after `after_seq`, oldest first."""
        return await self._traffic.log(max(after_seq, 0), limit)

    @expose("logs.clear", "control")
    async def clear(self) -> Cleared:
        """Forget what was recorded, on disk too."""
        return await self._traffic.clear()

    @expose("traffic.tail", "read")
    async def tail(
        self,
        after_seq: int = 0,
        limit: int = 400,
        max_entries: int = 100,
        include_headers: bool = True,
        include_body_sample_b64: bool = False,
    ) -> EntryPage:
        """Whole requests, newest first."""
        look = EntryOptions(include_headers, include_body_sample_b64)
        return await self._traffic.entries(max(after_seq, 0), limit, max_entries, look)

    @expose("traffic.entry", "read")
    async def entry(
        self, request_id: str, include_headers: bool = True, include_body_sample_b64: bool = False
    ) -> EntryFound:
        return await self._traffic.entry(request_id, EntryOptions(include_headers, include_body_sample_b64))

    @expose("traffic.show", "read")
    async def show(self, request_id: str, fields: list[str] | None = None) -> FlowView:
        """The named fields of one request, all of them by default."""
        row = await self._traffic.get(flow_id_of(request_id), fields or list(FIELDS))
        return FlowView(request_id, row)

    @expose("traffic.reveal", "admin")
    async def reveal(self, request_id: str) -> FlowView:
        """The same with its secrets: for a person, never for an agent."""
        return FlowView(request_id, await self._traffic.get(flow_id_of(request_id), list(FIELDS), reveal=True))

    @expose("traffic.search", "read")
    async def search(
        self,
        wanted: TrafficFilter = _EVERYTHING,
        limit: int = 50,
        cursor: str | None = None,
        fields: list[str] | None = None,
        token_budget: int = 8000,
    ) -> SearchResult:
        """A page of flows, newest first."""
        return await self._traffic.search(wanted, limit=limit, cursor=cursor, fields=fields, token_budget=token_budget)

    @expose("traffic.summary", "read")
    async def summary(self, wanted: TrafficFilter = _EVERYTHING, groups: int = 50) -> Summary:
        return await self._traffic.summary(wanted, groups)

    @expose("traffic.wait", "read", ends_with_caller=True)
    async def wait(
        self, wanted: TrafficFilter = _EVERYTHING, timeout_s: float = 30.0, after_seq: int | None = None
    ) -> WaitResult:
        """The next finished request that fits, or nothing when the time is over."""
        self._machine.need_running()
        traffic = self._traffic
        flow = await traffic.wait(wanted, min(max(timeout_s, 0), MAX_WAIT_S), after_seq=after_seq)
        row = None
        if flow is not None:
            row = await traffic.apart(row_of, flow, DEFAULT_FIELDS, traffic.bodies, traffic.redactor)
        return WaitResult(flow is not None, row, traffic.ring.last_seq)

    @expose("traffic.body", "read")
    async def body(
        self,
        request_id: str,
        direction: Literal["request", "response"] = "response",
        start: int = 0,
        end: int | None = None,
        max_chars: int = 32_000,
    ) -> BodyView:
        """A decoded body, whole or a range of its bytes."""
        number = flow_id_of(request_id)
        return await self._traffic.body(number, direction, start=start, end=end, max_chars=max_chars)

    @expose("traffic.reveal_body", "admin")
    async def reveal_body(
        self, request_id: str, direction: Literal["request", "response"] = "response", start: int = 0
    ) -> BodyChunk:
        """A piece of the decoded body as it was, text or not, secrets and all: for a person."""
        flow = await self._traffic.flow(flow_id_of(request_id))
        from_client, bodies = direction == "request", self._traffic.bodies
        found = await self._traffic.apart(views.decoded, flow, from_client, bodies, _REVEALED_BYTES)
        piece = found.data[max(start, 0) : max(start, 0) + _PIECE_BYTES]
        is_whole = views.is_whole(flow, from_client, bodies) and not found.is_cut
        mime = headers.mime(views.message(flow, from_client)[1])
        return BodyChunk(piece, max(start, 0), len(found.data), mime, is_whole, found.problem)

    @expose("traffic.diff", "read")
    async def diff(self, first_id: str, second_id: str) -> FlowDiff:
        return await self._traffic.diff(flow_id_of(first_id), flow_id_of(second_id))

    @expose("traffic.code", "read")
    async def code(self, request_id: str, language: Literal["curl", "httpx", "urllib"] = "curl") -> RequestSnippet:
        """The request as a command or a program; secrets are left out."""
        number = flow_id_of(request_id)
        if language == "curl":
            return RequestSnippet(request_id, language, await self._traffic.curl(number))
        return RequestSnippet(request_id, language, await self._traffic.python(number, language))

    @expose("traffic.replay_with_secrets", "admin")
    async def replay_with_secrets(
        self,
        request_id: str,
        edits: replay.RequestEdits = replay.RequestEdits(),  # noqa: B008
        timeout_s: float = 30.0,
    ) -> SentRequest:
        """The same, secrets and all to wherever the URL leads: for a person."""
        self._machine.need_running()
        request = await self._traffic.replay(flow_id_of(request_id), edits, keeps_secrets=True)
        return redact_secrets(await self._sender.send(request, timeout_s))  # type: ignore[no-any-return]

    @expose("traffic.replay", "control")
    async def replay(
        self,
        request_id: str,
        edits: replay.RequestEdits = replay.RequestEdits(),  # noqa: B008
        timeout_s: float = 30.0,
    ) -> SentRequest:
        """Send it again with these changes; its secrets go along to the origin that they were recorded for, alone."""
        self._machine.need_running()
        request = await self._traffic.replay(flow_id_of(request_id), edits)
        return await self._sender.send(request, timeout_s)

    @expose("traffic.compose", "control")
    async def compose(
        self,
        url: str,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: str = "",
        timeout_s: float = 30.0,
    ) -> SentRequest:
        """Send a request made from nothing."""
        return await self._sender.send(replay.compose(method, url, headers, body), timeout_s)

    @expose("traffic.export_har", "control", is_slow=True)
    async def export_har(
        self,
        path: str | None = None,
        wanted: TrafficFilter = _EVERYTHING,
        limit: int = 10_000,
        include_bodies: bool = True,
        overwrite: bool = False,
    ) -> HarExport:
        """Write the newest flows that fit to a HAR 1.2 file, secrets hidden."""
        return await self._export(path, wanted, limit, include_bodies, overwrite, reveal=False)

    @expose("traffic.reveal_har", "admin", is_slow=True)
    async def reveal_har(
        self, path: str | None = None, wanted: TrafficFilter = _EVERYTHING, limit: int = 10_000, overwrite: bool = False
    ) -> HarExport:
        """The same with the secrets, for a person."""
        return await self._export(path, wanted, limit, True, overwrite, reveal=True)

    @expose("traffic.import_har", "control", is_slow=True)
    async def import_har(self, path: str) -> HarImport:
        """Add the requests of a HAR file to the traffic."""
        data = await asyncio.to_thread(self._machine.local_files.read, path, "HAR file", MAX_FILE_BYTES)
        done = await self._traffic.import_har(data)
        ids = [str(flow.id) for flow in done.flows]
        return HarImport(len(ids), ids[0] if ids else None, ids[-1] if ids else None, done.skipped_count, done.skipped)

    async def _export(
        self,
        path: str | None,
        wanted: TrafficFilter,
        limit: int,
        include_bodies: bool,
        overwrite: bool,
        *,
        reveal: bool,
    ) -> HarExport:
        machine = self._machine
        if path is None:
            target = machine.files.exports / time.strftime("crab-%Y%m%d-%H%M%S.har")
        else:
            target = Path(machine.local_files.check(path, "HAR file", is_new=True))
            if not target.parent.is_dir():
                raise Failed(f"no folder {target.parent}", "make it first, or name another one")
        if target.exists() and not overwrite:
            raise Conflict(f"{target} exists already", "name another file, or give overwrite=true")
        pieces = self._traffic.export_har(wanted, limit, reveal=reveal, include_bodies=include_bodies)
        try:
            size = await asyncio.to_thread(_write, target, pieces)
        except OSError as error:
            raise Failed(
                f"cannot write {target}: {describe_os_error(error)}", suggest_next_step(error, "name another file")
            ) from error
        return HarExport(path or str(target), size)


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
