"""The console's addresses beside `/mcp`: the page, its files, log-in and log-out, and the one WebSocket.

Everything but log-in and files asks for the cookie, and the WebSocket for the page key as well: a subprotocol, since a
page can set no other header there. The Host must be a name of ours, and a WebSocket or a POST must come from our own
origin: a page of somebody else cannot reach any of it. The cookie opens nothing at `/mcp`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qs

from msgspec import Struct

from dari.console.login import SESSION_LIFETIME_S, ConsoleSession, Logins
from dari.console.script_chunks import LANGUAGES
from dari.console.static_files import StaticFile, encode_for, find_file, frame_style_hash, page_file
from dari.daemon.caller_scopes import CallerIdentity
from dari.daemon.person import find_agent
from dari.daemon.tcp_peer import Address, is_local, knows_tcp_owners, tcp_peer_pid
from dari.log import format_event
from dari.text.sanitize import escape_hidden
from dari.transport.guard import HttpGuard
from dari.transport.health import PATH as HEALTH_PATH
from dari.transport.health import HealthApp, Scope

PAGES = frozenset(["", "servers", "tools", "traffic", "terminals", "knowledge", "approvals", "audit", "settings"])
COOKIE = "dari_console"
LANGUAGE_COOKIE = "dari_language"
LIVE_PATH = "/live"
SUBPROTOCOL = "dari"
"""What a page speaks on the WebSocket; its page key stands behind it in the list."""
PAGE_KEY = b"x-dari-page-key"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self' '{style}'; img-src 'self' data: blob:; "
    "media-src data: blob:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
_log = logging.getLogger("dari.console")

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Serve = Callable[[Receive, Send, CallerIdentity, ConsoleSession], Awaitable[None]]
"""Serves the WebSocket of a page that was let in, from its acceptance to its end."""


class AgentRefusal(Struct, frozen=True):
    """A browser that was refused because an agent started it."""

    what: str
    pid: int
    reason: str


class ConsoleApp:
    """An ASGI application; `health` answers where it did before. `on_refused` records what was refused to an agent."""

    def __init__(
        self,
        health: HealthApp,
        guard: HttpGuard,
        logins: Logins,
        serve: Serve,
        on_refused: Callable[[AgentRefusal], None],
    ) -> None:
        self._health = health
        self._guard = guard
        self._logins = logins
        self._serve = serve
        self._on_refused = on_refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._open(scope, receive, send)
        elif scope["path"] == HEALTH_PATH or scope.get("client") is None:
            await self._health(scope, receive, send)
        else:
            await self._answer(scope, send)

    async def _answer(self, scope: Scope, send: Send) -> None:
        headers, path, method = _fields(scope), scope["path"], scope["method"]
        if not self._guard.allows_host(headers.get(b"host")):
            await _say(send, 403, "host not allowed")
        elif path == "/login" and method in ("GET", "HEAD"):
            await self._log_in(scope, headers, send)
        elif path == "/logout" and method == "POST":
            await self._log_out(headers, send)
        elif method not in ("GET", "HEAD"):
            await _say(send, 405, "method not allowed", [(b"allow", b"GET, HEAD")])
        elif path.startswith("/static/"):
            file = await asyncio.to_thread(find_file, path.removeprefix("/static/"))  # the first time it is made
            await _send_file(send, file, headers, method)
        elif path.strip("/").partition("/")[0] in PAGES:
            session = self._session(headers)
            # A page that gets no WebSocket asks here for the reason, and shows its key.
            if session is None or (PAGE_KEY in headers and not session.accepts(headers[PAGE_KEY].decode("latin-1"))):
                await _send_file(send, find_file("login.html"), headers, method, status=401)
            else:
                page, is_plain = path.strip("/").partition("/")[0], scope["query_string"] == b"plain"
                file = await asyncio.to_thread(page_file, page, _language(headers), is_plain=is_plain)
                await _send_file(send, file, headers, method)
        else:
            await _say(send, 404, "not found")

    async def _log_in(self, scope: Scope, headers: Mapping[bytes, bytes], send: Send) -> None:
        key = parse_qs(scope["query_string"].decode("latin-1")).get("key", [""])[0]
        # Only for a key that counts: to look for an agent reads every process, and any page can ask for this address.
        if self._logins.knows(key) and (refusal := await self._refusal(scope, "logging in to the console")):
            await _say(send, 403, refusal)
            return
        given = self._logins.redeem(key) if scope["method"] == "GET" else None
        if given is None:
            if self._session(headers) is not None:  # the link was used by this browser before
                await _redirect(send, "/")
                return
            _log.warning(format_event("console", "login_refused"))
            await _send_file(send, find_file("login.html"), headers, "GET", status=401)
            return
        lasting = f"Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_LIFETIME_S:.0f}"
        cookie = f"{self._cookie_name(headers)}={given.cookie}; {lasting}"
        _log.info(format_event("console", "login"))
        # Behind the `#`: no server is sent it, and the page takes it out of its address at once.
        await _redirect(send, f"/#{given.page_key}", [(b"set-cookie", cookie.encode())])

    async def _log_out(self, headers: Mapping[bytes, bytes], send: Send) -> None:
        session = self._session(headers)
        if session is None or not _is_same_origin(headers):
            await _say(send, 403, "only the page itself logs out")
            return
        self._logins.end(session.id)
        gone = f"{self._cookie_name(headers)}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"
        await _redirect(send, "/", [(b"set-cookie", gone.encode())])

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The WebSocket: refused before it is accepted, so that the page sees a plain 403."""
        headers = _fields(scope)
        await receive()  # websocket.connect
        session = self._session(headers)
        if (
            scope["path"] != LIVE_PATH
            or session is None
            or not _has_page_key(scope, session)
            or not self._guard.allows_host(headers.get(b"host"))
            or not _is_same_origin(headers)
        ):
            await send({"type": "websocket.close"})
            return
        if refusal := await self._refusal(scope, "opening the console"):
            _log.warning(format_event("console", "refused", refusal))
            await send({"type": "websocket.close"})
            return
        from dari.core.scopes import ALL_SCOPES

        caller = CallerIdentity("app", ALL_SCOPES, None, is_vouched_for=True)
        await self._serve(receive, send, caller, session)

    async def _refusal(self, scope: Scope, what: str) -> str:
        """Why the browser that connects is not a person's: an agent started it. Empty when nothing says so."""
        client, server = scope.get("client"), scope.get("server")
        if not client or not server or server[1] is None or not knows_tcp_owners():
            return ""
        pid, reason = await asyncio.to_thread(_find_agent_behind, (client[0], client[1]), (server[0], server[1]))
        if not reason:
            return ""
        self._on_refused(AgentRefusal(what, pid, reason))
        return f"the console is for a person, and {reason}; use a browser that you started yourself"

    def _session(self, headers: Mapping[bytes, bytes]) -> ConsoleSession | None:
        """Of any cookie of the name: another port of this host can set one like it, which must not log a person out."""
        found = map(self._logins.find, _cookies(headers, self._cookie_name(headers)))
        return next((session for session in found if session is not None), None)

    def _cookie_name(self, headers: Mapping[bytes, bytes]) -> str:
        """With the port: browsers send a cookie to every port of a host, and two hubs may run."""
        _, _, port = headers.get(b"host", b"").decode("latin-1").rpartition(":")
        return f"{COOKIE}_{port}" if port.isdigit() else COOKIE


def _cookies(headers: Mapping[bytes, bytes], name: str) -> Iterator[str]:
    """The values of this name. Cookies of other programs on this host stand there too, in whatever form."""
    for pair in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        given, _, value = pair.strip().partition("=")
        if given == name:
            yield value


def _language(headers: Mapping[bytes, bytes]) -> str:
    """What the person chose in the page, or else the first language of the browser; English where we have neither."""
    asked = (*_cookies(headers, LANGUAGE_COOKIE), headers.get(b"accept-language", b"").decode("latin-1")[:2].lower())
    return next((one for one in asked if one in LANGUAGES), "en")


def _find_agent_behind(peer: Address, own: Address) -> tuple[int, str]:
    """The process of a browser, and why an agent started it; the reason is empty when nothing says so."""
    if not is_local(peer[0]):
        return 0, ""
    pid = tcp_peer_pid(peer, own)  # none: a browser may hide its descriptors from processes of its own user
    return (0, "") if pid is None else (pid, find_agent(pid))


def _has_page_key(scope: Scope, session: ConsoleSession) -> bool:
    offered = scope["subprotocols"]
    return len(offered) == 2 and offered[0] == SUBPROTOCOL and session.accepts(offered[1])


def _is_same_origin(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"origin") == b"http://" + headers.get(b"host", b"")


def _fields(scope: Scope) -> dict[bytes, bytes]:
    """The first of each: a second Host or Origin changes nothing. Cookies may come in several lines."""
    fields: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name == b"cookie" and name in fields:
            fields[name] += b"; " + value
        else:
            fields.setdefault(name, value)
    return fields


async def _send_file(
    send: Send, file: StaticFile | None, headers: Mapping[bytes, bytes], method: str, status: int = 200
) -> None:
    if file is None:
        await _say(send, 404, "not found")
        return
    tag = file.etag.encode()
    known = status == 200 and headers.get(b"if-none-match") == tag
    coding, body = (
        (b"", b"") if known else await asyncio.to_thread(encode_for, file, headers.get(b"accept-encoding", b""))
    )
    fields = [(b"content-type", file.content_type.encode()), (b"etag", tag), (b"vary", b"accept-encoding")]
    lasting = b"public, max-age=31536000, immutable" if file.is_lasting else b"no-cache"
    fields += [(b"cache-control", lasting), (b"content-length", b"%d" % len(body))]
    if coding:
        fields.append((b"content-encoding", coding))
    await _send(send, 304 if known else status, fields, b"" if method == "HEAD" else body)


async def _redirect(send: Send, place: str, fields: list[tuple[bytes, bytes]] | None = None) -> None:
    await _send(send, 303, [(b"location", place.encode()), (b"content-length", b"0"), *(fields or [])], b"")


async def _say(send: Send, status: int, text: str, fields: list[tuple[bytes, bytes]] | None = None) -> None:
    body = escape_hidden(text).encode() + b"\n"
    plain = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await _send(send, status, [*plain, *(fields or [])], body)


@cache
def _policy() -> tuple[bytes, bytes]:
    return b"content-security-policy", CSP.format(style=frame_style_hash()).encode()


async def _send(send: Send, status: int, fields: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*fields, _policy(), *_SAFE]})
    await send({"type": "http.response.body", "body": body})
