"""Requests and responses held by a breakpoint rule (`crab_rules_add` with kind breakpoint)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.proxy.api.breakpoints import HeldFlows, Resumed
from dari.proxy.api.service import ProxyService
from dari.proxy.tools.arguments import Headers, HttpMethod, RemovedHeaders, Seconds, report_progress_while


class BreakpointTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._breakpoints = proxy.breakpoints

    @tool()
    async def breakpoints_list(self) -> HeldFlows:
        """Return what a breakpoint rule holds now, longest first, and when each goes on by itself."""
        return await self._breakpoints.held()

    @tool(timeout_s=INNER_LIMITS_ONLY)
    async def breakpoints_wait(self, context: Context, timeout_s: Seconds = 30) -> HeldFlows:
        """Wait until a breakpoint rule holds something; returns what is held, empty when the time is over."""
        return await report_progress_while(self._breakpoints.wait(timeout_s), context, timeout_s, "nothing is held yet")

    @tool(scope="control", idempotent=False)
    async def breakpoints_resume(
        self,
        id: Annotated[str, Meta(description="id of what is held, such as b1")],
        method: HttpMethod | None = None,
        url: Annotated[str, Meta(description="of a request: send it there instead")] | None = None,
        status: Annotated[int, Meta(description="of a response: 200 to 599")] | None = None,
        set_headers: Headers | None = None,
        remove_headers: RemovedHeaders | None = None,
        body: Annotated[str, Meta(description="another body as text; it is compressed as the headers say")]
        | None = None,
        abort: Annotated[bool, Meta(description="end it instead")] = False,
    ) -> Resumed:
        """Let a held request or response go on, changed or as it is, or end it; returns {id, request_id, ok}."""
        return await self._breakpoints.resume(id, method, url, status, set_headers, remove_headers, body, abort)
