"""OAuth for servers that ask for it: the official SDK does the flow, we carry its requests and keep its token.

`import mcp` costs about a second and 67 MB, so it happens when a server has answered 401, and not before.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from dari.errors import DariError, Unavailable
from dari.installation import install_extra
from dari.mcp.client.errors import Unauthorized

FLOW_TIMEOUT_S = 300.0
REQUEST_TIMEOUT_S = 30.0
MAX_RESPONSE_BYTES = 1024 * 1024
_MAX_REQUESTS = 20

Provider = Any
"""An `httpx2.Auth` of the SDK, such as `mcp.client.auth.OAuthClientProvider`."""
Http = Any
"""An `httpx2.AsyncClient`."""
Send = Callable[[Http, Any], Awaitable[Any]]
"""Carries one `httpx2.Request` of a flow and gives its `httpx2.Response`."""
Begin = Callable[[], Awaitable[None]]


class HttpRefusal(Struct, frozen=True):
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
        make_provider: Callable[[], Provider | Awaitable[Provider]] | None = None,
        *,
        timeout_s: float = FLOW_TIMEOUT_S,
    ) -> None:
        self.token = ""
        self._url = url
        self._make_provider = make_provider
        self._timeout_s = timeout_s
        self._provider: Provider = None
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """Called before the first request: a token that is known already saves a refusal. Never raises."""

    async def authorize(self, refusal: HttpRefusal) -> None:
        """Get another token; one flow at a time, and none when the token was renewed meanwhile."""
        async with self._lock:
            if self.token and refusal.authorization != f"Bearer {self.token}":
                return
            try:
                async with asyncio.timeout(self._timeout_s):
                    self.token = await self._obtain(refusal)
            except TimeoutError:
                raise self._late() from None
            except DariError:
                raise
            except Exception as error:
                hint = "check the server's settings"
                raise Unauthorized(f"authorization for {self._url} failed: {error}", hint) from error

    def _late(self) -> DariError:
        return Unauthorized(f"the login to {self._url} was not finished within {self._timeout_s:g} s", "try again")

    async def _obtain(self, refusal: HttpRefusal) -> str:
        """A token that is not the refused one."""
        if self._provider is None and self._make_provider is not None:
            made = self._make_provider()
            self._provider = await made if isinstance(made, Awaitable) else made
        return await run_flow(self._url, self._provider, refusal)


async def run_flow(
    url: str, provider: Provider, refusal: HttpRefusal, *, send: Send | None = None, begin: Begin | None = None
) -> str:
    """The token at the end of the provider's flow.

    `begin` is awaited when neither a stored nor a refreshed token helps, before authorization starts anew: it may
    raise to prevent that. `send` replaces the plain exchange of a request for its response.
    """
    try:
        import httpx2
    except ImportError:
        raise Unavailable(
            f"{url} asks for OAuth, which needs the official SDK", f"install it: {install_extra('oauth')}"
        ) from None
    headers = {"mcp-protocol-version": refusal.version} if refusal.version else {}
    ours = httpx2.Request("POST", url, headers=headers)
    flow = provider.async_auth_flow(ours)
    is_refused = False
    # Like our own channels: proxies of the environment are not used, certificates are those that Python trusts.
    client = httpx2.AsyncClient(
        follow_redirects=False,
        timeout=REQUEST_TIMEOUT_S,
        trust_env=False,
        verify=ssl.create_default_context(),
        # A connection per request: a server may end a quiet one just as the next request is sent, and a request for
        # a token must not be sent twice.
        limits=httpx2.Limits(max_keepalive_connections=0),
    )
    async with client as http:
        try:
            outgoing = await flow.__anext__()
            for _ in range(_MAX_REQUESTS):
                if outgoing is not ours:
                    response = await (send or exchange)(http, outgoing)
                else:
                    # A token from storage or a refresh comes before the refusal is looked at, a new one after.
                    header = ours.headers.get("authorization", "")
                    if header and header != refusal.authorization:
                        return str(header).partition(" ")[2]
                    if is_refused:
                        break
                    is_refused = True
                    if begin is not None:
                        await begin()
                    response = _response(httpx2, ours, refusal)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            pass
        except httpx2.TransportError as error:
            where = outgoing.url.host
            raise Unavailable(
                f"{where}, which authorizes for {url}, cannot be reached ({type(error).__name__}: {error})",
                "check that it runs and that its certificate is valid, then try again",
            ) from None
        finally:
            await flow.aclose()
    raise Unauthorized(f"{url} gave no token that it accepts (HTTP {refusal.status})", "ask for access there")


async def exchange(http: Http, request: Any) -> Any:
    """The response to a request, whole, and of a size that such a document may have."""
    response = await http.send(request, stream=True)
    try:
        parts: list[bytes] = []
        size_bytes = 0
        async for part in response.aiter_bytes():
            size_bytes += len(part)
            if size_bytes > MAX_RESPONSE_BYTES:
                raise Unauthorized(
                    f"{request.url.host} sent more than {MAX_RESPONSE_BYTES} bytes during authorization",
                    "check the server",
                )
            parts.append(part)
    finally:
        await response.aclose()
    return answer(request, response.status_code, b"".join(parts), response)


def answer(request: Any, status: int, body: bytes, given: Any = None) -> Any:
    """A response whose body is here already; the headers of `given` where they still hold."""
    import httpx2

    headers = (
        []
        if given is None
        else [
            (name, value)
            for name, value in given.headers.multi_items()
            if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
        ]
    )
    response = httpx2.Response(status, headers=headers, content=body, request=request)
    response.next_request = None if given is None else given.next_request
    return response


def _response(httpx2: Any, request: Any, refusal: HttpRefusal) -> Any:
    headers = [(name, value) for name, value in refusal.headers.items() if name != b"content-encoding"]
    return httpx2.Response(refusal.status, headers=headers, content=refusal.body, request=request)
