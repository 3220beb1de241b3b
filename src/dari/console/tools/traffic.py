"""What the Traffic page needs beyond crab's own tools: rows for its table, its filter, secrets shown to a person."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from dari.core.scopes import ADMIN
from dari.core.tool import tool
from dari.proxy.api.traffic import FlowView
from dari.proxy.query.language import EXAMPLES, KEYS, FlowFilterError, parse
from dari.proxy.query.rows import MAX_ROWS, RowPage
from dari.proxy.tools.arguments import RequestId

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

Filter = Annotated[str, Meta(max_length=1000, description="such as host:api.test status:5xx; empty for everything")]
MAX_REVEALED_BYTES = 4 * 1024 * 1024


class FilterCheck(Struct, frozen=True):
    """Whether a filter can be read; `start` and `end` are the characters that are wrong."""

    ok: bool
    problem: str = ""
    hint: str = ""
    start: int = 0
    end: int = 0


class FilterKey(Struct, frozen=True):
    key: str
    example: str
    meaning: str


class FilterHelp(Struct, frozen=True):
    keys: list[FilterKey]
    examples: list[str]


class RevealedBody(Struct, frozen=True):
    """Bytes of a decoded body from `start` on, of `total_bytes`."""

    data_base64: str
    start: int
    total_bytes: int
    mime: str
    is_whole: bool
    note: str | None = None


class TrafficPageTools:
    """Tools named `dari_traffic_<method>`."""

    prefix = "dari_traffic"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._proxy = backends.proxy

    # crabd has hidden the secrets; searching a thousand rows again would hold the hub for 40 ms.
    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def rows(
        self,
        filter: Filter = "",
        before_id: Annotated[int, Meta(ge=1, description="only requests before this id")] | None = None,
        limit: Annotated[int, Meta(ge=1, le=MAX_ROWS, description="rows to return at most")] = MAX_ROWS,
    ) -> RowPage:
        """Return the newest requests that fit a filter as rows, oldest first, and the id to go on before."""
        return await self._proxy(False).table.rows(filter, before_id, limit)

    @tool(scope=ADMIN, read_only=True)
    async def check_filter(self, filter: Filter) -> FilterCheck:
        """Tell whether a filter can be read, and what is wrong at which characters."""
        try:
            parse(filter)
        except FlowFilterError as error:
            return FilterCheck(False, error.problem, error.hint, error.start, error.end)
        return FilterCheck(True)

    @tool(scope=ADMIN, read_only=True)
    async def filter_help(self) -> FilterHelp:
        """Return the keys of the filter language, each with an example and what it means."""
        keys = [FilterKey(name, key.example, key.meaning) for name, key in KEYS.items()]
        return FilterHelp(keys, list(EXAMPLES))

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def reveal(self, request_id: RequestId) -> FlowView:
        """Return one request with the secrets in its URL, headers and bodies, for a person."""
        return await self._proxy(False).traffic.reveal(request_id)

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def reveal_body(
        self,
        request_id: RequestId,
        direction: Annotated[Literal["request", "response"], Meta(description="whose body")] = "response",
        start: Annotated[int, Meta(ge=0, description="first byte of the decoded body")] = 0,
        max_bytes: Annotated[
            int, Meta(ge=1, le=MAX_REVEALED_BYTES, description="bytes to return at most")
        ] = MAX_REVEALED_BYTES,
    ) -> RevealedBody:
        """Return bytes of a decoded body as they were, such as a picture, for a person."""
        chunk = await self._proxy(False).traffic.reveal_body(request_id, direction, start)
        data = base64.b64encode(chunk.data[:max_bytes]).decode()
        return RevealedBody(data, chunk.start, chunk.total_bytes, chunk.mime, chunk.is_whole, chunk.note)
