"""What went through the proxy: as log records, as requests, found, awaited, summed up, compared. Secrets are hidden."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.errors import NotFound
from dari.proxy.api.service import ProxyService
from dari.proxy.api.traffic import (
    DEFAULT_BODY_CHARS,
    DEFAULT_HAR_FLOWS,
    DEFAULT_LOG_RECORDS,
    DEFAULT_TAIL_ENTRIES,
    DEFAULT_TAIL_RECORDS,
    DEFAULT_TIMEOUT_S,
    FlowView,
    HarExport,
    HarImport,
    RequestSnippet,
    WaitResult,
)
from dari.proxy.formats.diff import FlowDiff
from dari.proxy.formats.entries import MAX_ENTRIES, MAX_RECORDS, EntryFound, EntryPage
from dari.proxy.formats.log import Cleared, LogPage
from dari.proxy.query.search import DEFAULT_LIMIT_FLOWS, DEFAULT_TOKEN_BUDGET, MAX_LIMIT_FLOWS, SearchResult
from dari.proxy.query.summary import DEFAULT_GROUPS, Summary
from dari.proxy.query.views import BodyView
from dari.proxy.replay import RequestEdits, SentRequest
from dari.proxy.tools.arguments import (
    HasError,
    Headers,
    Host,
    HttpMethod,
    Methods,
    Query,
    Records,
    RemovedHeaders,
    RequestId,
    Seconds,
    Seq,
    SinceMs,
    Statuses,
    UrlText,
    WithHeaders,
    WithSample,
    clamp,
    make_filter,
    report_progress_while,
)

Fields = Annotated[
    list[str],
    Meta(description="such as url, status, duration_ms, request_headers, response_body, process, frames, tls"),
]
UrlRegex = Annotated[str, Meta(description="regular expression found in the URL")]
BodyText = Annotated[str, Meta(description="text in either decoded body")]


class TrafficTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._traffic = proxy.traffic

    @tool()
    async def logs_tail(self, after_seq: Seq = 0, limit: Records = DEFAULT_LOG_RECORDS) -> LogPage:
        """Return raw log records after a sequence number, oldest first; crab_traffic_tail is easier to read."""
        return await self._traffic.log(after_seq, clamp("limit", limit, MAX_RECORDS))

    @tool()
    async def traffic_tail(
        self,
        after_seq: Seq = 0,
        limit: Records = DEFAULT_TAIL_RECORDS,
        max_entries: Annotated[
            int,
            Meta(description="requests to return at most", extra_json_schema={"minimum": 1, "maximum": MAX_ENTRIES}),
        ] = DEFAULT_TAIL_ENTRIES,
        include_headers: WithHeaders = True,
        include_body_sample_b64: WithSample = False,
    ) -> EntryPage:
        """Return the newest requests, newest first, each whole: URL, status, headers, start of the bodies."""
        return await self._traffic.tail(
            after_seq,
            clamp("limit", limit, MAX_RECORDS),
            clamp("max_entries", max_entries, MAX_ENTRIES),
            include_headers,
            include_body_sample_b64,
        )

    @tool()
    async def traffic_get(
        self,
        request_id: RequestId,
        after_seq: Seq = 0,
        limit: Annotated[
            int, Meta(description="log records to look at", extra_json_schema={"minimum": 1, "maximum": 2000})
        ] = 1000,
        include_headers: WithHeaders = True,
        include_body_sample_b64: WithSample = False,
    ) -> EntryFound:
        """Return one request with headers and the start of its bodies, however long ago it was."""
        clamp("limit", limit, 2000)
        found = await self._traffic.entry(request_id, include_headers, include_body_sample_b64)
        if after_seq and found.entry.seq_last <= after_seq:
            raise NotFound(
                f"request_id not found in current log window: {request_id}",
                f"it ended at {found.entry.seq_last}; leave after_seq out",
            )
        return found

    @tool(scope="control", destructive=True)
    async def logs_clear(self) -> Cleared:
        """Forget all recorded traffic, on disk too; returns {ok, cleared, next_seq}."""
        return await self._traffic.clear()

    @tool()
    async def traffic_search(
        self,
        host: Host | None = None,
        method: Methods | None = None,
        status: Statuses | None = None,
        url_contains: UrlText | None = None,
        url_regex: UrlRegex | None = None,
        header_contains: Annotated[str, Meta(description="text in a 'name: value' header line")] | None = None,
        body_contains: BodyText | None = None,
        mime: Annotated[str, Meta(description="text in the media type, such as json")] | None = None,
        since_unix_ms: SinceMs | None = None,
        has_error: HasError | None = None,
        event: Annotated[str, Meta(description="such as tunnel, map_local or upstream_error")] | None = None,
        process: Annotated[str, Meta(description="client's process name or pid")] | None = None,
        query: Query | None = None,
        fields: Fields | None = None,
        limit: Annotated[
            int, Meta(description="requests on a page", extra_json_schema={"minimum": 1, "maximum": MAX_LIMIT_FLOWS})
        ] = DEFAULT_LIMIT_FLOWS,
        cursor: Annotated[str, Meta(description="next_cursor of the page before")] | None = None,
        token_budget: Annotated[
            int, Meta(ge=100, le=100_000, description="end the page at about so many tokens of a model")
        ] = DEFAULT_TOKEN_BUDGET,
    ) -> SearchResult:
        """Find requests that fulfil every condition, newest first; returns a page and next_cursor."""
        conditions = make_filter(
            host=host,
            method=method,
            status=status,
            url_contains=url_contains,
            url_regex=url_regex,
            header_contains=header_contains,
            body_contains=body_contains,
            mime=mime,
            since_unix_ms=since_unix_ms,
            has_error=has_error,
            event=event,
            process=process,
            query=query,
        )
        most = max(clamp("limit", limit, MAX_LIMIT_FLOWS), 1)
        return await self._traffic.search(conditions, most, cursor, fields, token_budget)

    @tool(timeout_s=INNER_LIMITS_ONLY)
    async def traffic_wait(
        self,
        context: Context,
        host: Host | None = None,
        method: Methods | None = None,
        status: Statuses | None = None,
        url_contains: UrlText | None = None,
        url_regex: UrlRegex | None = None,
        body_contains: BodyText | None = None,
        has_error: HasError | None = None,
        timeout_s: Seconds = DEFAULT_TIMEOUT_S,
        after_seq: Annotated[int, Meta(ge=0, description="also count what came after this next_seq")] | None = None,
    ) -> WaitResult:
        """Wait until a request that fulfils every condition has finished; returns {found, flow, next_seq}."""
        conditions = make_filter(
            host=host,
            method=method,
            status=status,
            url_contains=url_contains,
            url_regex=url_regex,
            body_contains=body_contains,
            has_error=has_error,
        )
        waiting = self._traffic.wait(conditions, timeout_s, after_seq)
        return await report_progress_while(waiting, context, timeout_s, "no such request yet")

    @tool()
    async def traffic_summary(
        self,
        host: Host | None = None,
        method: Methods | None = None,
        status: Statuses | None = None,
        url_contains: UrlText | None = None,
        since_unix_ms: SinceMs | None = None,
        has_error: HasError | None = None,
        groups: Annotated[
            int, Meta(ge=1, le=500, description="lines to return at most, busiest first")
        ] = DEFAULT_GROUPS,
    ) -> Summary:
        """Sum requests up by host and path template: count, statuses, error rate, p50 and p95, bytes, last id."""
        conditions = make_filter(
            host=host,
            method=method,
            status=status,
            url_contains=url_contains,
            since_unix_ms=since_unix_ms,
            has_error=has_error,
        )
        return await self._traffic.summary(conditions, groups)

    @tool()
    async def traffic_show(self, request_id: RequestId, fields: Fields | None = None) -> FlowView:
        """Return the named fields of one request, all by default: rules, timing, TLS, process, bodies, frames."""
        return await self._traffic.show(request_id, fields)

    @tool()
    async def traffic_body(
        self,
        request_id: RequestId,
        direction: Annotated[Literal["request", "response"], Meta(description="whose body")] = "response",
        start: Annotated[int, Meta(ge=0, description="first byte of the decoded body")] = 0,
        end: Annotated[int, Meta(ge=0, description="byte to stop before; default the end")] | None = None,
        max_chars: Annotated[
            int, Meta(ge=1, le=1_000_000, description="characters to return at most")
        ] = DEFAULT_BODY_CHARS,
    ) -> BodyView:
        """Return a body decoded (gzip, br, zstd) and pretty when it is JSON, whole or a range of its bytes."""
        return await self._traffic.body(request_id, direction, start, end, max_chars)

    @tool()
    async def traffic_diff(self, first_id: RequestId, second_id: RequestId) -> FlowDiff:
        """Compare two requests and their responses; returns the changes as data and as text."""
        return await self._traffic.diff(first_id, second_id)


class HarTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._traffic = proxy.traffic

    @tool(scope="control", idempotent=False)
    async def traffic_export_har(
        self,
        path: Annotated[str, Meta(description="absolute path; default a new file of the daemon's own")] | None = None,
        host: Host | None = None,
        method: Methods | None = None,
        status: Statuses | None = None,
        url_contains: UrlText | None = None,
        since_unix_ms: SinceMs | None = None,
        has_error: HasError | None = None,
        limit: Annotated[int, Meta(ge=1, le=100_000, description="requests at most, newest first")] = DEFAULT_HAR_FLOWS,
        include_bodies: Annotated[bool, Meta(description="false leaves bodies out")] = True,
        overwrite: Annotated[bool, Meta(description="replace a file that exists")] = False,
    ) -> HarExport:
        """Write the newest requests that fulfil every condition to a HAR file, secrets hidden; returns its path."""
        conditions = make_filter(
            host=host,
            method=method,
            status=status,
            url_contains=url_contains,
            since_unix_ms=since_unix_ms,
            has_error=has_error,
        )
        return await self._traffic.export_har(path, conditions, limit, include_bodies, overwrite)

    @tool(scope="control", idempotent=False)
    async def traffic_import_har(
        self, path: Annotated[str, Meta(description="absolute path, such as /home/me/login.har")]
    ) -> HarImport:
        """Add the requests of a HAR file to the recorded traffic; returns how many and their ids."""
        return await self._traffic.import_har(path)


Library = Annotated[Literal["httpx", "urllib"], Meta(description="what the program uses")]
Patience = Annotated[float, Meta(gt=0, le=300, description="seconds to wait for the answer")]


class ReplayTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._traffic = proxy.traffic

    @tool(scope="control", destructive=True, idempotent=False, open_world=True, timeout_s=INNER_LIMITS_ONLY)
    async def traffic_replay(
        self,
        request_id: RequestId,
        method: HttpMethod | None = None,
        url: Annotated[str, Meta(description="another URL; default the recorded one")] | None = None,
        set_headers: Headers | None = None,
        remove_headers: RemovedHeaders | None = None,
        body: Annotated[str, Meta(description="another body as text; default the recorded one")] | None = None,
        timeout_s: Patience = DEFAULT_TIMEOUT_S,
    ) -> SentRequest:
        """Send a recorded request again with changes; only its own origin gets its secrets. Returns the new request."""
        edits = RequestEdits(
            method=method, url=url, set_headers=set_headers or {}, remove_headers=remove_headers or [], body=body
        )
        return await self._traffic.replay(request_id, edits, timeout_s)

    @tool(scope="control", destructive=True, idempotent=False, open_world=True, timeout_s=INNER_LIMITS_ONLY)
    async def traffic_compose(
        self,
        url: Annotated[str, Meta(description="such as https://api.example.com/users?page=1")],
        method: HttpMethod = "GET",
        headers: Headers | None = None,
        body: Annotated[str, Meta(description="body as text")] = "",
        timeout_s: Patience = DEFAULT_TIMEOUT_S,
    ) -> SentRequest:
        """Send a request through the running proxy; rules apply and it is recorded. Returns it with its answer."""
        return await self._traffic.compose(url, method, headers, body, timeout_s)

    @tool()
    async def traffic_as_curl(self, request_id: RequestId) -> RequestSnippet:
        """Return a request as a curl command; secrets are left out."""
        return await self._traffic.code(request_id, "curl")

    @tool()
    async def traffic_as_python(
        self,
        request_id: RequestId,
        library: Library = "httpx",
    ) -> RequestSnippet:
        """Return a request as a Python program; secrets are left out."""
        return await self._traffic.code(request_id, library)
