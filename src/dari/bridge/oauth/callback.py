"""How a login reaches a person and comes back: the prompt, and a listener on loopback that accepts one response."""

from __future__ import annotations

import asyncio
import errno
import hmac
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from dari.errors import InvalidInput, Unavailable
from dari.mcp.client.errors import Unauthorized
from dari.transport.authority import BadAuthority, parse_authority

PATH = "/callback"
MAX_PASTES = 5
MAX_HEAD_BYTES = 16 * 1024
HEAD_TIMEOUT_S = 10.0
_LOCAL = ("127.0.0.1", "localhost", "::1")
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body{{font:1.1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:20vh auto;padding:0 1rem}}</style>
<h1>{title}</h1><p>{text}</p></html>"""


@dataclass(frozen=True, slots=True)
class AuthorizationResponse:
    """What the authorization server sent the browser back with."""

    code: str
    state: str
    issuer: str | None


class InvalidResponse(Exception):
    """Not the answer to this login; the text says why. The login goes on."""


def parse_response(query: str, state: str) -> AuthorizationResponse:
    """The answer in a query. WrongAnswer when it belongs to another login, Unauthorized when it is a no."""
    values = {name: found[0] for name, found in parse_qs(query, keep_blank_values=True, max_num_fields=50).items()}
    # Any web page can send a browser here: a request without the right state is ignored, even an error.
    if not state or not hmac.compare_digest(values.get("state", "").encode(), state.encode()):
        raise InvalidResponse("this answer does not belong to the login that is under way")
    if "error" in values:
        said = " ".join((values["error"], values.get("error_description", ""))).strip()
        raise Unauthorized(f"the authorization server refused: {said[:300]}", "log in again and allow the access")
    if not values.get("code"):
        raise InvalidResponse("the answer holds no code")
    return AuthorizationResponse(values["code"], values["state"], values.get("iss"))


class CallbackListener:
    """Listens on loopback only. Open it before the URL is shown; it takes one answer and no other."""

    def __init__(self, redirect_url: str = "") -> None:
        """`redirect_url` is the one that the authorization server knows; without it one is made, with a free port."""
        parts = urlsplit(redirect_url or f"http://127.0.0.1:0{PATH}")
        if parts.scheme != "http" or parts.hostname is None or not _is_local(parts.netloc.removesuffix(":0")):
            raise InvalidInput(f"{redirect_url!r} does not lead to this machine", "paste the URL instead")
        self._host = parts.hostname
        self._port = parts.port or (80 if redirect_url else 0)
        self._path = parts.path or "/"
        self._state = ""
        self._servers: list[asyncio.Server] = []
        self._requests: set[asyncio.Task[None]] = set()
        self._answer: asyncio.Future[AuthorizationResponse] = asyncio.get_running_loop().create_future()

    @property
    def redirect_url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}{self._path}"

    async def open(self) -> None:
        hosts = ["127.0.0.1", "::1"] if self._host == "localhost" else [self._host]
        try:
            await self._listen(hosts[0])
        except OSError as error:
            raise Unavailable(
                f"the port {self._port} for the answer to the login cannot be used: {error.strerror}",
                "end what uses it, or set auth.callbackPort to another one that is registered",
            ) from None
        for host in hosts[1:]:
            try:
                await self._listen(host)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise Unavailable(f"the port {self._port} is taken on {host}", "set auth.callbackPort") from None
                # No IPv6 on this machine: browsers fall back.

    def expect(self, state: str) -> None:
        """From now on the answer with this state counts."""
        self._state = state

    async def answer(self) -> AuthorizationResponse:
        return await asyncio.shield(self._answer)

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        requests = list(self._requests)
        for request in requests:
            request.cancel()  # a page that is on its way is still sent: closing a transport flushes it
        await asyncio.gather(*requests, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()
        if not self._answer.done():
            self._answer.cancel()
        elif not self._answer.cancelled():
            self._answer.exception()  # retrieved, so that asyncio does not warn

    async def _listen(self, host: str) -> None:
        server = await asyncio.start_server(self._serve, host, self._port, limit=MAX_HEAD_BYTES)
        self._servers.append(server)
        self._port = server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._requests.add(task)
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                status, title, text = self._take(head)
                writer.write(_page(status, title, text))
                await writer.drain()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a browser that opens connections ahead of time, or something that is none
        except asyncio.CancelledError:
            pass  # by `close`; the task ends here, and Python 3.11 would report it as an error
        finally:
            self._requests.discard(task)
            writer.close()

    def _take(self, head: str) -> tuple[str, str, str]:
        first, *lines = head.split("\r\n")
        method, _, rest = first.partition(" ")
        target = rest.rpartition(" ")[0]
        path, _, query = target.partition("?")
        hosts = [line.partition(":")[2].strip().lower() for line in lines if line.lower().startswith("host:")]
        # Another name may point at this machine (DNS rebinding): it is refused.
        if len(hosts) != 1 or not _is_local(hosts[0]):
            return "421 Misdirected Request", "Wrong address", "Nothing is served under this name."
        if path != self._path:
            return "404 Not Found", "Nothing here", "This address only waits for the end of a login."
        if method != "GET":
            return "405 Method Not Allowed", "Not like this", "This address only waits for the end of a login."
        if self._answer.done():
            return "410 Gone", "Already done", "The login has been answered. You can close this page."
        try:
            answer = parse_response(query, self._state)
        except InvalidResponse as wrong:
            return "400 Bad Request", "Not this login", f"Nothing was changed: {wrong}."
        except Unauthorized as error:
            self._answer.set_exception(error)
            return "200 OK", "Not logged in", "The access was not allowed. You can close this page."
        except ValueError:
            return "400 Bad Request", "Not this login", "The address cannot be read."
        self._answer.set_result(answer)
        return "200 OK", "Logged in", "You can close this page and go back to the terminal."


def _is_local(host: str) -> bool:
    try:
        return parse_authority(host.encode()).host in _LOCAL
    except BadAuthority:
        return False


async def wait_for_response(
    listener: CallbackListener | None, interact: LoginPrompt, state: str
) -> AuthorizationResponse:
    """The answer to the login with this state, by whichever way it comes first."""
    ways = [asyncio.ensure_future(_pasted_response(interact, state))]
    if listener is not None:
        ways.append(asyncio.ensure_future(listener.answer()))
    try:
        done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _pasted_response(interact: LoginPrompt, state: str) -> AuthorizationResponse:
    complaint = ""
    for _ in range(MAX_PASTES):
        text = (await interact.pasted(complaint)).strip()
        if not text:
            complaint = ""
            continue
        try:
            return parse_response(urlsplit(text).query or text.lstrip("?"), state)
        except InvalidResponse as wrong:
            complaint = str(wrong)
        except ValueError:
            complaint = "an address is expected"
    # Somebody leans on the Enter key; the browser may still come back.
    never: asyncio.Future[AuthorizationResponse] = asyncio.get_running_loop().create_future()
    return await never


def _page(status: str, title: str, text: str) -> bytes:
    body = _PAGE.format(title=title, text=text).encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
        "cache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n"
        "content-security-policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body


class LoginPrompt(Protocol):
    """How a person is asked. Implemented by `NoPrompt` and by the login command's terminal."""

    can_ask: bool

    async def show(self, url: str, redirect_url: str) -> None:
        """Tell the person to open `url` in a browser, which comes back to `redirect_url`."""

    async def pasted(self, complaint: str) -> str:
        """An address that the person pasted; waits for ever where none can be. `complaint` is about the last one."""
        ...


class NoPrompt:
    """A daemon, a pipe, a model: no one to open a browser."""

    can_ask = False

    async def show(self, url: str, redirect_url: str) -> None:
        raise AssertionError("NoPrompt cannot show a URL")

    async def pasted(self, complaint: str) -> str:
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never


NO_PROMPT = NoPrompt()
