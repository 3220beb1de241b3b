"""`dari mcp --transport http|both`: requests that the listener has let in, forwarded to the hub over its socket."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable
from threading import Thread

from dari.cli.mcp.failures import render_failure
from dari.cli.mcp.http_sessions import SESSION_ID, HttpSession, HttpSessionTable
from dari.cli.mcp.hub import Hub, HubRefused
from dari.cli.mcp.messages import ClientMessage
from dari.cli.mcp.pipe import LOST, Pipe
from dari.errors import Unavailable
from dari.transport.client.http_connection import Headers, HttpConnection
from dari.transport.http_request import HttpRequest
from dari.transport.sse import encode_event

IDS_PER_HUB = 1_000_000
MAX_IDLE_CONNECTIONS = 16
MAX_IDLE_S = 30.0
"""Less than the hub keeps an idle connection, so that none is used that it is about to close."""
_OURS = frozenset(
    (b"host", b"origin", b"authorization", b"connection", b"content-length", b"transfer-encoding", b"expect")
)
"""Request headers that were for our listener."""
_NOT_PASSED_ON = frozenset((b"connection", b"content-length", b"transfer-encoding", b"date", b"keep-alive"))


class HubUnavailable(Unavailable):
    """The hub does not take this client, or there is none."""

    def __init__(self, refused: HubRefused) -> None:
        super().__init__(refused.message, refused.hint)


class HubLost(HubUnavailable):
    """The hub that served us is gone."""


class HubForwarder:
    """Forwards HTTP requests to the hub. When it ends, another one is found or started and gets the sessions."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.generation = 0
        """Counts the hubs that served us."""
        self.sessions = HttpSessionTable()
        self._key = ""
        self._lease: socket.socket | None = None
        self._opening = asyncio.Lock()
        self._idle: list[HttpConnection] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        """Have a hub serve us; HubUnavailable when it does not."""
        async with self._opening:
            if self._lease is not None:
                return
            key = secrets.token_urlsafe(16)
            # A client may still answer what the hub before asked: no two hubs give their questions the same ids.
            first_request = self.generation * IDS_PER_HUB
            self._lease = await self._connect(starts=True, http=key, first_request=first_request)
            self._key = key
            self.generation += 1
            self._loop.add_reader(self._lease.fileno(), self._hear_lease)

    def finish(self) -> None:
        """Ask the hub to let what runs finish, and to end every stream."""
        if self._lease is not None:
            self._lease.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        if self._lease is not None:
            self._loop.remove_reader(self._lease.fileno())
            self._lease.close()
            self._lease = None

    def serve(self, request: HttpRequest) -> None:
        """Answer a request with what the hub answers."""
        self.send(_ForwardedRequest(request, self))

    def send(self, forwarded: _ForwardedRequest) -> None:
        task = self._loop.create_task(self._forward(forwarded))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, forwarded: _ForwardedRequest) -> None:
        try:
            try:
                connection = await self._prepare(forwarded)
            except HubLost:  # noticed before anything was sent: the next one is as good
                connection = await self._prepare(forwarded)
        except (HubUnavailable, OSError) as error:
            forwarded.fail(str(error), getattr(error, "hint", ""))
            return
        forwarded.send_on(connection)

    async def _prepare(self, forwarded: _ForwardedRequest) -> HttpConnection:
        if forwarded.session is not None:
            await self._restore(forwarded.session)
        return await self._connection()

    async def _restore(self, session: HttpSession) -> None:
        """Have the hub that serves us know the session."""
        await self.open()
        async with session.restoring:
            if session.generation != self.generation:
                await session.restore(self.generation, self._connection)

    async def _connection(self) -> HttpConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable and self._loop.time() - connection.idle_since_s < MAX_IDLE_S:
                return connection
            connection.abort()
        await self.open()
        sock = await self._connect(starts=False, attach=self._key)
        _, made = await self._loop.create_unix_connection(lambda: HttpConnection(self._free, self._gone), sock=sock)
        return made

    async def _connect(self, *, starts: bool, **options: object) -> socket.socket:
        try:
            opened = await asyncio.to_thread(self._hub.open, starts=starts, **options)
        except HubRefused as refused:
            raise HubUnavailable(refused) from None
        if opened is None:
            self.close()
            raise HubLost(HubRefused(*LOST))
        sock = socket.socket(fileno=opened[0].detach())
        sock.setblocking(False)
        return sock

    def _free(self, connection: HttpConnection) -> None:
        if len(self._idle) < MAX_IDLE_CONNECTIONS:
            connection.idle_since_s = self._loop.time()
            self._idle.append(connection)
        else:
            connection.abort()

    def _gone(self, connection: HttpConnection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)

    def _hear_lease(self) -> None:
        """Nothing is said on it: what comes is its end, and that of the hub."""
        assert self._lease is not None
        try:
            if self._lease.recv(4096):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.close()


class _ForwardedRequest:
    """One request on its way: takes the hub's response, and is what the listener cancels."""

    def __init__(self, request: HttpRequest, forwarder: HubForwarder) -> None:
        self._request = request
        self._forwarder = forwarder
        self.session = forwarder.sessions.find(request.fields)
        self._connection: HttpConnection | None = None
        self._status = 0
        self._head = b""
        self._body: bytearray | None = None
        self._is_streaming = False
        # A client that hangs up is gone for the hub too.
        request.headers = request.fields
        request.started(self)

    def send_on(self, connection: HttpConnection) -> None:
        request = self._request
        if request.response_complete:
            connection.abort()
            return
        self._connection = connection
        passed = {name: value for name, value in request.fields.items() if name not in _OURS}
        if (session := self.session) is not None:
            passed[SESSION_ID] = session.hub_id
            if session.is_restored:
                passed.pop(b"last-event-id", None)  # of a hub that is gone
            if request.method == b"POST":
                session.note(bytes(request.body))
            elif request.method == b"DELETE":
                self._forwarder.sessions.remove(session)
        fields = b"".join(b"%b: %b\r\n" % pair for pair in passed.items())
        head = b"%b /mcp HTTP/1.1\r\nhost: localhost\r\n%bcontent-length: %d\r\n\r\n"
        connection.send(self, head % (request.method, fields, len(request.body)) + bytes(request.body))

    def cancel(self, reason: str) -> None:
        if self._connection is not None:
            self._connection.abort()
        if self._is_streaming:
            self._request.end_events()
        else:
            self._request.refuse(503, reason)

    def fail(self, message: str, hint: str) -> None:
        """The hub gives no answer: say so in the form of the request."""
        asked = ClientMessage(bytes(self._request.body))
        if not asked.is_request:
            self.cancel(message)
            return
        version = self._request.fields.get(b"mcp-protocol-version", b"").decode("latin-1")
        answer = render_failure(asked, version, message, hint)
        if self._is_streaming:
            self._request.write_event(encode_event(answer))
            self._request.end_events()
        else:
            self._request.send(200, answer)

    # What the connection tells

    def head(self, status: int, headers: Headers) -> None:
        self._status = status
        self._keep_session(status, headers)
        self._head = b"".join(b"%b: %b\r\n" % pair for pair in headers.items() if pair[0] not in _NOT_PASSED_ON)
        if b"content-length" in headers:
            self._body = bytearray()
        else:
            self._is_streaming = True
            self._request.start_stream(status, self._head)
            session = self.session if self._request.method == b"GET" else None
            if session is not None and (events := session.announcements()):
                self._request.write_event(events)

    def _keep_session(self, status: int, headers: Headers) -> None:
        """Remember a session that begins, forget one that the hub does not know; its id is the client's."""
        if self.session is not None:
            if status in (401, 404):  # strict servers say 401 of a session that they do not know
                self._forwarder.sessions.remove(self.session)
            if SESSION_ID in headers:
                headers[SESSION_ID] = self.session.id
        elif SESSION_ID in headers and status == 200:
            fields, body = self._request.fields, bytes(self._request.body)
            made = HttpSession(headers[SESSION_ID], self._forwarder.generation, body, fields)
            self._forwarder.sessions.add(made)

    def data(self, part: bytes) -> None:
        if self._body is not None:
            self._body += part
        else:
            self._request.write_event(part)

    def ended(self) -> None:
        if self._body is None:
            self._request.end_events()
        else:
            self._request.respond(self._status, self._head, bytes(self._body))

    def broken(self, error: Unavailable, *, is_untouched: bool) -> None:
        # A connection that was kept and broke may have been dead before; a call may have run all the same.
        if is_untouched and ClientMessage(bytes(self._request.body)).method != "tools/call":
            self._forwarder.send(self)
        else:
            self.fail(*LOST)


async def serve_stdio_in_thread(pipe: Pipe, ended: asyncio.Event, report: Callable[[HubRefused], None]) -> None:
    """Run the pipe beside the event loop until its client leaves; `ended` makes it finish."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def run() -> None:
        try:
            pipe.run()
        except HubRefused as refused:
            report(refused)
        finally:
            _close_stdout()
            loop.call_soon_threadsafe(done.set)

    Thread(target=run, daemon=True).start()
    stopping = loop.create_task(_stop_when(ended, pipe))
    try:
        await done.wait()
    finally:
        stopping.cancel()


def _close_stdout() -> None:
    """Its reader learns that nothing more comes, while HTTP goes on."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)


async def _stop_when(ended: asyncio.Event, pipe: Pipe) -> None:
    await ended.wait()
    pipe.stop()
