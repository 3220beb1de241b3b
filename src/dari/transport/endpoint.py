"""`/mcp`: what each HTTP method means, in both eras, before and after the protocol core."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

from msgspec import UNSET

from dari.core.rate_limit import ClientRateLimit
from dari.core.scopes import MCP_GRANT, Grant
from dari.log import format_event
from dari.mcp.headers import PARAM_PREFIX
from dari.mcp.server import Server
from dari.mcp.session import Session
from dari.mcp.versions import HANDSHAKE, STATELESS, V2025_11
from dari.rpc.codec import UNREADABLE, Message, decode_message, error_message
from dari.transport.guard import HttpGuard
from dari.transport.http_request import HttpRequest
from dari.transport.sessions import HttpSessions

PATH = b"/mcp"
Mount = Callable[[str], "tuple[Server, HttpSessions] | str | None"]
"""What stands at a path: a server with its own sessions, a reason why nothing does, or None: not ours to answer."""
Handler = Callable[[HttpRequest], None]
MAX_BODY_BYTES = 32 * 1024 * 1024
KEEPALIVE_S = 15.0

_STATELESS = frozenset(version.encode() for version in STATELESS)
_HANDSHAKE = frozenset(version.encode() for version in HANDSHAKE)
_METHODS = b"GET, POST, DELETE, OPTIONS"
_HEADERS = (
    b"Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID"
)
_log = logging.getLogger("dari.transport")


class McpEndpoint:
    """Serves exchanges. Several may share one session table: TCP asks for a token, the Unix socket does not."""

    def __init__(
        self,
        server: Server,
        sessions: HttpSessions,
        guard: HttpGuard,
        grant: Grant = MCP_GRANT,
        *,
        rate_limit: ClientRateLimit | None = None,
        most_body_bytes: int = MAX_BODY_BYTES,
        mount: Mount | None = None,
        handler: Handler | None = None,
    ) -> None:
        """`handler` answers what was admitted, in the place of the server and its sessions."""
        self.server = server
        self.sessions = sessions
        self.guard = guard
        self.grant = grant
        self.most_body_bytes = most_body_bytes
        self._rate_limit = rate_limit
        self._is_strict = server.strict
        self._mount = mount
        self._handler = handler
        self._mounted: dict[bytes, McpEndpoint] = {}
        self._loop = asyncio.get_running_loop()
        self.open: set[HttpRequest] = set()
        self.is_stopping = False

    @property
    def mounted(self) -> list[McpEndpoint]:
        """The endpoints of other paths that were asked for so far."""
        return list(self._mounted.values())

    def admits(self, fields: Mapping[bytes, bytes]) -> bool:
        """Whether `admit` will let such a request in, as far as host, origin and token go."""
        origin = fields.get(b"origin")
        return (
            self.guard.allows_host(fields.get(b"host"))
            and (origin is None or self.guard.allows_origin(origin))
            and self.guard.identify(fields.get(b"authorization"), self._loop.time(), self.grant) is not None
        )

    def at(self, path: bytes, fields: Mapping[bytes, bytes]) -> tuple[McpEndpoint, str] | None:
        """Who answers at a path, and why not if there is nothing; None when the path is none of ours. To look for it
        may start a server, so that is done only for requests which are let in: any web page can send others."""
        if path == PATH:
            return self, ""
        if self._mount is not None and not self.admits(fields):
            return (self, "not let in") if path.endswith(PATH) else None
        found = None if self._mount is None else self._mount(path.decode("latin-1"))
        if found is None:
            return None
        if isinstance(found, str):
            return self, found
        server, sessions = found
        known = self._mounted.get(path)
        if known is None or known.server is not server:
            known = self._mounted[path] = McpEndpoint(
                server,
                sessions,
                self.guard,
                self.grant,
                rate_limit=self._rate_limit,
                most_body_bytes=self.most_body_bytes,
            )
            known.is_stopping = self.is_stopping
        return known, ""

    def admit(self, request: HttpRequest, client: str) -> None:
        """The checks that need only the head. A refused request has its response already."""
        request.peer = client
        try:
            self._check(request, client)
        except Exception as error:
            self._broke(request, error)

    def serve(self, request: HttpRequest) -> None:
        """The whole request is here."""
        try:
            if self._handler is not None:
                self._handler(request)
            elif request.method == b"POST":
                self._post(request)
            elif request.method == b"GET":
                self._get(request)
            else:
                self._delete(request)
        except Exception as error:
            self._broke(request, error)

    def give_up(self, reason: str) -> None:
        """Cancel every call whose response is open."""
        for request in list(self.open):
            request.give_up(reason)

    def end_access(self, ended: Collection[Grant], reason: str) -> None:
        """Tokens count no more: end what they opened, which is their sessions with their calls and streams, requests
        that are not finished, and what the server keeps for clients without a session."""
        gone = set(map(id, ended))
        for endpoint in (self, *self.mounted):
            endpoint.sessions.end_all(lambda session: id(session.grant) in gone and session.peer != "unix", reason)
            for request in [each for each in endpoint.open if id(each.grant) in gone]:
                request.end_access(reason)
            for grant in ended:
                endpoint.server.end_access(grant)

    def _check(self, request: HttpRequest, client: str) -> None:
        fields = request.fields
        if not self.guard.allows_host(fields.get(b"host")):
            request.refuse(403, "host not allowed")
            return
        origin = fields.get(b"origin")
        if origin is not None:
            if not self.guard.allows_origin(origin):
                request.refuse(403, "origin not allowed")
                return
            request.extra_headers = _reflected(origin)
        if request.method == b"OPTIONS":
            self._preflight(request)
            return
        grant = self.guard.identify(fields.get(b"authorization"), self._loop.time(), self.grant)
        if grant is None:
            request.refuse(401, "invalid or missing token", b'www-authenticate: Bearer realm="dari"\r\n')
            return
        request.grant = grant
        if self._rate_limit is not None and self._rate_limit.take(client):
            request.refuse(429, "too many requests", b"retry-after: 1\r\n")
        elif self.is_stopping:
            request.refuse(503, "the server is stopping")
        elif request.method not in (b"POST", b"GET", b"DELETE"):
            request.refuse(405, "method not allowed", b"allow: " + _METHODS + b"\r\n")
        elif request.absence:
            request.refuse(404, request.absence)

    def _broke(self, request: HttpRequest, error: Exception) -> None:
        _log.exception(format_event("http", "fatal"))
        request.refuse(500, f"{type(error).__name__}: {error}")

    def answered(self, request: HttpRequest) -> None:
        """A result is about to leave: the first one of a session carries its id."""
        session = request.opened
        if session is not None and session.version:
            request.opened = None
            self.sessions.keep(session)
            request.extra_headers += b"mcp-session-id: %b\r\n" % session.id.encode()

    def keep_awake(self, now_s: float) -> None:
        if self._handler is not None:
            return
        for request in list(self.open):
            request.keep_awake(now_s, KEEPALIVE_S)

    def _post(self, request: HttpRequest) -> None:
        fields = request.fields
        content_type = fields.get(b"content-type", b"")
        if (
            content_type != b"application/json"
            and content_type.partition(b";")[0].strip().lower() != b"application/json"
        ):
            request.refuse(415, "expected application/json")
            return
        try:
            message = decode_message(bytes(request.body))
        except UNREADABLE as error:
            self._unreadable(request, error)
            return
        version = fields.get(b"mcp-protocol-version")
        params = message.params
        has_envelope = bool(params) and params.meta is not UNSET and params.meta.version is not UNSET  # type: ignore[union-attr]
        if has_envelope or (version is not None and version not in _HANDSHAKE and not self._is_strict):
            self._post_stateless(request, message, version, has_envelope)
        elif message.method == "initialize" and message.id is not UNSET:
            self._initialize(request, message)
        else:
            session = self._session(request)
            if session is not None:
                request.session = session
                if message.id is not UNSET:
                    self.sessions.note_use(session)
                self._dispatch(request, message)

    def _post_stateless(
        self, request: HttpRequest, message: Message, version: bytes | None, has_envelope: bool
    ) -> None:
        request.headers = request.fields
        if version is not None and version not in _STATELESS and not has_envelope:
            fault = self.server.unsupported_version(version.decode("latin-1"))
            known_id = message.id if isinstance(message.id, int | str) else None
            request.reply(error_message(known_id, fault.code, fault.message, fault.data), fault.code)
        elif message.method == "subscriptions/listen" and not request.takes_events:
            request.refuse(406, "subscriptions/listen needs Accept: text/event-stream")
        else:
            self._dispatch(request, message)

    def _initialize(self, request: HttpRequest, message: Message) -> None:
        if not self.sessions.has_room(request.peer):
            request.refuse(503, "too many sessions, and none of them is idle", b"retry-after: 5\r\n")
            return
        request.session = request.opened = self.sessions.draft(request.grant, request.peer)
        self._dispatch(request, message)

    def _dispatch(self, request: HttpRequest, message: Message) -> None:
        expects_reply = message.id is not UNSET and message.method is not UNSET
        self.server.dispatch(message, request)
        if not expects_reply:
            request.accept(204 if self._is_strict else 202)

    def _unreadable(self, request: HttpRequest, error: Exception) -> None:
        session_id = request.fields.get(b"mcp-session-id")
        is_stateless = request.fields.get(b"mcp-protocol-version") in _STATELESS
        if session_id and not is_stateless:
            request.session = self._session(request)
            if request.session is None:
                return
        request.status_for_errors = 400
        if is_stateless:
            request.headers = request.fields
        self.server.refuse(bytes(request.body), error, request)

    def _get(self, request: HttpRequest) -> None:
        if request.fields.get(b"mcp-protocol-version") in _STATELESS:
            request.refuse(405, "this protocol version has no GET stream", b"allow: POST\r\n")
            return
        if not request.takes_events:
            request.refuse(406, "expected Accept: text/event-stream")
            return
        session = self._session(request)
        if session is None:
            return
        self.sessions.note_use(session)
        last = request.fields.get(b"last-event-id", b"").decode("latin-1")
        found = session.streams.find(last) if last else None
        standing = session.standing = session.streams.standing()
        stream, after = found if found is not None else (standing, standing.delivered)
        request.follow(stream, after, prime=session.version == V2025_11 and not last)

    def _delete(self, request: HttpRequest) -> None:
        if request.fields.get(b"mcp-protocol-version") in _STATELESS:
            request.refuse(405, "this protocol version has no sessions", b"allow: POST\r\n")
            return
        session = self._session(request)
        if session is not None:
            self.sessions.end(session, "the client ended the session")
            request.accept(204)

    def _session(self, request: HttpRequest) -> Session | None:
        session_id = request.fields.get(b"mcp-session-id")
        if session_id is None:
            request.refuse(400, "missing Mcp-Session-Id header")
            return None
        session = self._find_session(request, session_id)
        if session is None:
            request.refuse(401 if self._is_strict else 404, "session expired or invalid")
        return session

    def _find_session(self, request: HttpRequest, session_id: bytes) -> Session | None:
        """The session, if it was begun with the token that the request carries."""
        session = self.sessions.find(session_id)
        return session if session is None or session.grant is request.grant else None

    def _preflight(self, request: HttpRequest) -> None:
        asked = request.fields.get(b"access-control-request-headers", b"")
        mirrored = [name.strip() for name in asked.split(b",") if name.strip().lower().startswith(PARAM_PREFIX)]
        request.extra_headers += b"access-control-allow-methods: %b\r\naccess-control-allow-headers: %b\r\n" % (
            _METHODS,
            b", ".join([_HEADERS, *mirrored]),
        )
        request.extra_headers += b"access-control-max-age: 600\r\n"
        request.accept(204)


def _reflected(origin: bytes) -> bytes:
    """CORS by exact reflection of an origin that was checked; never a wildcard."""
    return (
        b"access-control-allow-origin: %b\r\nvary: Origin\r\naccess-control-expose-headers: Mcp-Session-Id\r\n" % origin
    )
