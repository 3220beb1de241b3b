"""HTTP sessions of `dari mcp` that outlive their hub: what made each is known here, and sent to the next hub.

The client keeps the session id that it got first; each hub has its own. What cannot be sent again is lost: questions of
the hub before, its streams, and sessions beyond `MAX_SESSIONS`. Those end as MCP has it, with 404.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from dari.cli.mcp.messages import ClientMessage, notification
from dari.cli.mcp.pipe import LISTS
from dari.transport.sse import encode_event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from dari.errors import Unavailable
    from dari.transport.client.http_connection import Headers, HttpConnection

MAX_SESSIONS = 1000
MAX_SETTINGS = 1000
SESSION_ID = b"mcp-session-id"
_KEPT = (b"accept", b"content-type", b"mcp-protocol-version", b"user-agent")
_SETTING = (b"notifications/initialized", b"logging/setLevel", b"resources/subscribe", b"resources/unsubscribe")


class HttpSession:
    """One session of a client. `generation` is that of the hub which knows it."""

    def __init__(self, id: bytes, generation: int, initialize: bytes, fields: Mapping[bytes, bytes]) -> None:
        self.hub_id = self.id = id
        self.generation = generation
        self.is_restored = False
        self.must_announce = False
        """A hub has taken another one's place, and no stream has announced it to the client since."""
        self.restoring = asyncio.Lock()
        self._initialize = initialize
        self._fields = {name: value for name, value in fields.items() if name in _KEPT}
        self._settings: dict[str, bytes] = {}

    def note(self, body: bytes) -> None:
        """Keep what a new hub would have to hear again."""
        if not any(name in body for name in _SETTING):
            return
        message = ClientMessage(body)
        uri = f"uri {message.params.get('uri')}"
        if message.method == "resources/unsubscribe":
            self._settings.pop(uri, None)
        elif len(self._settings) < MAX_SETTINGS and message.method.encode() in _SETTING:
            self._settings[uri if message.method == "resources/subscribe" else message.method] = body

    async def restore(self, generation: int, connect: Callable[[], Awaitable[HttpConnection]]) -> None:
        """Make the session anew in the hub of this generation; without success its id stays unknown there."""
        opened = await self._post(await connect(), self._initialize)
        self.generation = generation
        made = opened.headers.get(SESSION_ID)
        if opened.status != 200 or made is None:
            return
        self.hub_id, self.is_restored, self.must_announce = made, True, True
        for body in self._settings.values():
            await self._post(await connect(), body, b"%b: %b\r\n" % (SESSION_ID, made))

    def announcements(self) -> bytes:
        """Events that say that every list may differ; once for each hub."""
        if not self.must_announce or "notifications/initialized" not in self._settings:
            return b""
        self.must_announce = False
        return b"".join(encode_event(notification(f"notifications/{kind}/list_changed")) for kind in LISTS)

    async def _post(self, connection: HttpConnection, body: bytes, more: bytes = b"") -> _CollectedResponse:
        fields = b"".join(b"%b: %b\r\n" % pair for pair in self._fields.items())
        head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n%b%bcontent-length: %d\r\n\r\n" % (fields, more, len(body))
        response = _CollectedResponse()
        connection.send(response, head + body)
        await response.done.wait()
        return response


class _CollectedResponse:
    """A response of which only the head counts."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Headers = {}
        self.done = asyncio.Event()

    def head(self, status: int, headers: Headers) -> None:
        self.status, self.headers = status, headers

    def data(self, part: bytes) -> None:
        pass

    def ended(self) -> None:
        self.done.set()

    def broken(self, error: Unavailable, *, is_untouched: bool) -> None:
        self.status = 0
        self.done.set()


class HttpSessionTable:
    """Sessions by the id that their client has; the one that was used longest ago is forgotten first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[bytes, HttpSession] = OrderedDict()

    def find(self, fields: Mapping[bytes, bytes]) -> HttpSession | None:
        session = self._sessions.get(fields.get(SESSION_ID, b""))
        if session is not None:
            self._sessions.move_to_end(session.id)
        return session

    def add(self, session: HttpSession) -> None:
        self._sessions[session.id] = session
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)

    def remove(self, session: HttpSession) -> None:
        self._sessions.pop(session.id, None)
