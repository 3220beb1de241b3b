"""A server behind Streamable HTTP: one POST for every message, GET streams for sessions."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypedDict

from dari.errors import DariError, InvalidInput
from dari.mcp.client.channel import Inbox
from dari.mcp.client.lines import MAX_LINE_BYTES
from dari.mcp.client.oauth import OAuth
from dari.mcp.versions import V2024_11, V2025_03
from dari.transport.client.address import Address, parse_address
from dari.transport.client.get_stream import keep_open, resume
from dari.transport.client.http_connection import Headers, HttpPool
from dari.transport.client.http_post import Post
from dari.transport.client.sse import EventReader
from dari.version import VERSION

CONNECT_TIMEOUT_S = 10.0
IDLE_TIMEOUT_S = 300.0
DELETE_TIMEOUT_S = 2.0
MAX_UNTAKEN = 1024
"""Notifications and answers on their way. A server that asks and asks and takes none of them gets no more."""
FOLLOW_S = 0.5

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_log = logging.getLogger("dari.transport")
_UNVERSIONED = ("", V2024_11, V2025_03)


class HttpOptions(TypedDict, total=False):
    """What an HTTP channel takes besides its URL."""

    socket_path: Path | None
    headers: Mapping[str, str] | None
    bearer: str | Callable[[], str]
    oauth: OAuth | None
    ssl_context: ssl.SSLContext | None
    connect_timeout_s: float
    idle_timeout_s: float
    most_bytes: int
    denied_hint: str


class HttpChannel:
    """Connects when there is something to send, and keeps connections for the next message.

    `bearer` may be a function, for a token that changes. `oauth` is asked only when the server wants it.
    `denied_hint` is what to do when the server does not accept us. A header `Connection: close` means one request
    for each connection. Proxies of the environment (`HTTP_PROXY` …) are not used.
    """

    carries_headers = True
    is_full = False
    replaces_silent_streams = True
    """Whether a stream that said nothing for `idle_timeout_s` is given up for a new one."""

    def __init__(
        self,
        url: str,
        *,
        socket_path: Path | None = None,
        headers: Mapping[str, str] | None = None,
        bearer: str | Callable[[], str] = "",
        oauth: OAuth | None = None,
        ssl_context: ssl.SSLContext | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        most_bytes: int = MAX_LINE_BYTES,
        denied_hint: str = "",
    ) -> None:
        self.address = parse_address(url, socket_path)
        self.oauth = oauth
        self.denied_hint = denied_hint
        self.most_bytes = most_bytes
        self.idle_timeout_s = idle_timeout_s
        self.session_id = ""
        self.version = ""
        self.is_stateless = False
        self._bearer = bearer
        self._ssl_context = ssl_context
        self._connect_timeout_s = connect_timeout_s
        self._given = _given_headers(headers or {})
        known = {name.lower(): value.strip().lower() for name, value in (headers or {}).items()}
        self._has_authorization = "authorization" in known
        self._keeps_alive = known.get("connection") != "close"
        self._posts: dict[int, Post] = {}
        self._telling: set[Post] = set()
        self._resuming: dict[int, asyncio.Task[None]] = {}
        self._standing: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.session_id = self.version = ""
        await self._prepare()

    def ask(self, request_id: int, message: bytes, headers: bytes) -> None:
        post = self._posts[request_id] = Post(self, request_id, message, headers)
        post.start()

    def tell(self, message: bytes, headers: bytes = b"") -> None:
        if len(self._telling) >= MAX_UNTAKEN:
            _log.debug("transport=client event=not_delivered %d messages are not taken yet", MAX_UNTAKEN)
            return
        post = Post(self, None, message, headers)
        self._telling.add(post)
        post.start()

    def cancel(self, request_id: int, notice: bytes) -> None:
        if notice and not self.is_stateless:
            self.tell(notice)
        post = self._posts.get(request_id)
        if post is not None:
            post.abort()
        resuming = self._resuming.get(request_id)
        if resuming is not None:
            resuming.cancel()

    def agreed(self, version: str, *, is_stateless: bool) -> None:
        self.version = version
        self.is_stateless = is_stateless
        if not version or is_stateless:
            self.session_id = ""
            if self._standing is not None:
                self._standing.cancel()
                self._standing = None

    async def follow(self) -> None:
        """Opens the session's stream, once, and waits a moment for it: a server may ask through nothing else."""
        if self.is_stateless or (self._standing is not None and not self._standing.done()):
            return
        opened = asyncio.Event()
        self._standing = self.spawn(keep_open(self, opened.set))
        try:
            async with asyncio.timeout(FOLLOW_S):
                await opened.wait()
        except TimeoutError:
            pass  # some servers send no head before the first event

    async def drain(self) -> None:
        """Every message has a connection of its own to wait on."""

    def last_words(self) -> str:
        return ""

    async def close(self) -> None:
        for post in [*self._posts.values(), *self._telling]:
            post.abort()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            if self.session_id:
                await self._end_session()
        finally:
            await self.pool.close()

    # What posts and streams ask of their channel.

    @property
    def authorization(self) -> str:
        """The value of the header, where it is ours to set."""
        if self._has_authorization:
            return ""
        bearer = self._bearer if isinstance(self._bearer, str) else self._bearer()
        if bearer:
            return f"Bearer {bearer}"
        if self.oauth is not None and self.oauth.token:
            return f"Bearer {self.oauth.token}"
        return f"Basic {self.address.credentials}" if self.address.credentials else ""

    async def _prepare(self) -> None:
        self.pool = HttpPool(
            self.address,
            connect_timeout_s=self._connect_timeout_s,
            ssl_context=self._ssl_context,
            keeps_alive=self._keeps_alive,
        )
        if self.oauth is not None and not self.oauth.token:
            await self.oauth.load()

    def request(
        self, method: str, address: Address, session_id: str, headers: bytes = b"", body: bytes | None = None
    ) -> bytes:
        """The bytes of a request."""
        lines = [f"{method} {address.target} HTTP/1.1\r\nhost: {address.host_header}\r\n", self._given]
        authorization = self.authorization
        if authorization:
            lines.append(f"authorization: {authorization}\r\n")
        if session_id:
            lines.append(f"mcp-session-id: {session_id}\r\n")
        if not headers.startswith(b"mcp-") and self.version not in _UNVERSIONED:
            lines.append(f"mcp-protocol-version: {self.version}\r\n")
        if body is None:
            accepted = "text/event-stream" if method == "GET" else "application/json"
            return "".join([*lines, f"accept: {accepted}\r\n"]).encode("latin-1") + headers + b"\r\n"
        lines.append(
            "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n"
        )
        return "".join(lines).encode("latin-1") + headers + b"\r\n" + body

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def learn_session(self, session_id: bytes) -> None:
        """The answer to `initialize` names the session."""
        text = session_id.decode("latin-1")
        if text and not self.version and text.isprintable() and text.isascii():
            self.session_id = text

    def forget_session(self, session_id: str) -> None:
        """The server does not know it any more. Another may have taken its place already."""
        if self.session_id == session_id:
            self.session_id = ""

    def resume(self, request_id: int, reader: EventReader) -> None:
        task = self._resuming[request_id] = self.spawn(resume(self, request_id, reader))
        task.add_done_callback(lambda _: self._resuming.pop(request_id, None))

    def finished(self, post: Post) -> None:
        if post.request_id is None:
            self._telling.discard(post)
        else:
            self._posts.pop(post.request_id, None)

    async def _end_session(self) -> None:
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(DELETE_TIMEOUT_S):
                connection = await self.pool.take(is_urgent=True)
                connection.send(_Farewell(ended), self.request("DELETE", self.address, self.session_id))
                await ended
        except (TimeoutError, DariError):
            pass  # it expires by itself
        self.session_id = ""


class _Farewell:
    """Takes the response to DELETE, whatever it says: 405 is fine too."""

    def __init__(self, ended: asyncio.Future[None]) -> None:
        self._ended = ended

    def head(self, status: int, headers: Headers) -> None: ...

    def data(self, part: bytes) -> None: ...

    def ended(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def broken(self, error: DariError, *, is_untouched: bool) -> None:
        self.ended()


def _given_headers(given: Mapping[str, str]) -> str:
    lines = []
    known = {name.lower() for name in given}
    for name, value in given.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value.strip()):
            raise InvalidInput(f"header {name!r} has a name or value that HTTP forbids", "remove line breaks")
        lines.append(f"{name}: {value.strip()}\r\n")
    if "user-agent" not in known:
        lines.append(f"user-agent: dari/{VERSION}\r\n")
    if "accept-encoding" not in known:
        lines.append("accept-encoding: identity\r\n")
    return "".join(lines)
