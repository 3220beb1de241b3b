"""OAuth for servers that ask for it: the official SDK does the flow, we carry its requests and keep its token.

`import mcp` costs about a second and 67 MB, so it happens when a server has answered 401, and not before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dari.errors import Denied, Unavailable

FLOW_TIMEOUT_S = 300.0
_MOST_REQUESTS = 20

Provider = Any
"""An `httpx2.Auth` of the SDK, such as `mcp.client.auth.OAuthClientProvider`."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the server said instead of an answer, and with which header it was asked."""

    status: int
    headers: Mapping[bytes, bytes]
    body: bytes
    authorization: str
    version: str


class OAuth:
    """Gets a token when a server wants one. `make_provider` is called then, and may import the SDK."""

    def __init__(
        self,
        url: str,
        make_provider: Callable[[], Provider | Awaitable[Provider]],
        *,
        timeout_s: float = FLOW_TIMEOUT_S,
    ) -> None:
        self.token = ""
        self._url = url
        self._make_provider = make_provider
        self._timeout_s = timeout_s
        self._provider: Provider = None
        self._lock = asyncio.Lock()

    async def authorize(self, refusal: Refusal) -> None:
        """Get another token; one flow at a time, and none when somebody else has renewed it meanwhile."""
        async with self._lock:
            if self.token and refusal.authorization != f"Bearer {self.token}":
                return
            try:
                async with asyncio.timeout(self._timeout_s):
                    self.token = await self._run_flow(refusal)
            except TimeoutError:
                raise Denied(f"nobody authorized us for {self._url} in {self._timeout_s:g} s", "try again") from None
            except (Denied, Unavailable):
                raise
            except Exception as error:
                raise Denied(f"authorization for {self._url} failed: {error}", "check the server's settings") from error

    async def _run_flow(self, refusal: Refusal) -> str:
        try:
            import httpx2
        except ImportError:
            raise Unavailable(
                f"{self._url} asks for OAuth, which needs the official SDK", "install it: pip install 'dari[oauth]'"
            ) from None
        provider = await self._ready_provider()
        headers = {"mcp-protocol-version": refusal.version} if refusal.version else {}
        ours = httpx2.Request("POST", self._url, headers=headers)
        flow = provider.async_auth_flow(ours)
        is_refused = False
        async with httpx2.AsyncClient(follow_redirects=False, timeout=30.0) as http:
            try:
                outgoing = await flow.__anext__()
                for _ in range(_MOST_REQUESTS):
                    if outgoing is not ours:
                        response = await http.send(outgoing)
                    else:
                        # A token from storage or a refresh comes before the refusal is looked at, a new one after.
                        header = ours.headers.get("authorization", "")
                        if header and header != refusal.authorization:
                            return str(header).partition(" ")[2]
                        if is_refused:
                            break
                        is_refused = True
                        response = _response(httpx2, ours, refusal)
                    outgoing = await flow.asend(response)
            except StopAsyncIteration:
                pass
            finally:
                await flow.aclose()
        raise Denied(f"{self._url} gave no token that it accepts (HTTP {refusal.status})", "ask for access there")

    async def _ready_provider(self) -> Provider:
        if self._provider is None:
            made = self._make_provider()
            self._provider = await made if isinstance(made, Awaitable) else made
        return self._provider


def _response(httpx2: Any, request: Any, refusal: Refusal) -> Any:
    headers = [(name, value) for name, value in refusal.headers.items() if name != b"content-encoding"]
    return httpx2.Response(refusal.status, headers=headers, content=refusal.body, request=request)
