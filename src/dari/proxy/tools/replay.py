"""Requests sent again, made from nothing, or written down as a command."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.proxy.sender import Answered
from dari.proxy.service import ProxyService
from dari.proxy.tools.arguments import Headers, HttpMethod, RemovedHeaders, RequestId
from dari.proxy.traffic.replay import Edits
from dari.proxy.traffic_desk import Code

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
        timeout_s: Patience = 30,
    ) -> Answered:
        """Send a recorded request again with changes; only its own origin gets its secrets. Returns the new request."""
        edits = Edits(
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
        timeout_s: Patience = 30,
    ) -> Answered:
        """Send a request through the running proxy; rules apply and it is recorded. Returns it with its answer."""
        return await self._traffic.compose(url, method, headers, body, timeout_s)

    @tool()
    async def traffic_as_curl(self, request_id: RequestId) -> Code:
        """Return a request as a curl command; secrets are left out."""
        return await self._traffic.code(request_id, "curl")

    @tool()
    async def traffic_as_python(
        self,
        request_id: RequestId,
        library: Library = "httpx",
    ) -> Code:
        """Return a request as a Python program; secrets are left out."""
        return await self._traffic.code(request_id, library)
