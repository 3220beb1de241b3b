"""One connection to the hub's socket, from its first line to its end."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from msgspec.structs import replace

from dari.bridge.config.locations import ClientEnvironment
from dari.cli.hub import protocol
from dari.cli.hub.handshake import CliHandshake, parse_handshake
from dari.cli.hub.socket_console import FrameWriter, SocketConsole
from dari.core.scopes import ALL_SCOPES, MCP_GRANT
from dari.daemon.caller_scopes import CallerIdentity, serve_caller
from dari.daemon.peer import PeerCredentials
from dari.daemon.person import AGENT_HOSTS
from dari.errors import DariError, InvalidInput, NotFound
from dari.os_errors import from_os_error
from dari.rpc.codec import encode, notification_message

if TYPE_CHECKING:
    from dari.cli.hub.http_attachment import HttpAttachment
    from dari.cli.hub.stdio_token import StdioToken
    from dari.mcp.server import Server
    from dari.transport.lines import LineReplyChannel

RunCommand = Callable[[str, list[str], SocketConsole, ClientEnvironment], Awaitable[int]]
"""Program, words, the person's terminal, where they stand → exit code. Cancelling it is Ctrl-C."""
MakeServer: TypeAlias = "Callable[[ClientEnvironment, Mapping[str, Any]], AbstractAsyncContextManager[Server]]"
"""Where a client stands and its options → the server it talks to, for as long as it does."""

HANDSHAKE_TIMEOUT_S = 10.0
STOP_GRACE_S = 2.0
HALF_CLOSED_GRACE_S = 5.0
EXIT_INTERRUPTED = 4
EXIT_DAEMON_ENDED = 2

_log = logging.getLogger("dari.bridge")


class ConnectionHost(Protocol):
    """What a connection needs of its server."""

    run_command: RunCommand
    make_server: MakeServer
    attachments: dict[str, HttpAttachment]

    def enter(self, connection: CliConnection) -> None: ...
    def admit(self, hello: CliHandshake) -> None: ...
    def finish(self, connection: CliConnection) -> None: ...
    def leave(self, connection: CliConnection) -> None: ...


class CliConnection(asyncio.Protocol):
    """Speaks frames to a command's client and lines to an MCP client; ends with whichever side ends first."""

    def __init__(self, host: ConnectionHost, peer: PeerCredentials) -> None:
        self._host = host
        self._peer = peer
        self._heard = bytearray()
        self._hear: Callable[[], None] = self._hear_hello
        self._terminal: SocketConsole | None = None
        self._link: LineReplyChannel | None = None
        self._is_pipe = False
        self._stopping: asyncio.Event | None = None
        """Of an HTTP listener that is served: set when it stops."""
        self._why: Literal["gone", "interrupted", "host"] = "gone"
        self._finishing: asyncio.Task[None] | None = None
        self.task: asyncio.Task[None] | None = None
        self._gone = asyncio.get_running_loop().create_future()
        self._deadline = asyncio.get_running_loop().call_later(HANDSHAKE_TIMEOUT_S, self._too_slow)

    # The socket's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio.Transport but are not subclasses of it.
        self.transport = cast(asyncio.Transport, transport)
        self._outbox = FrameWriter(self.transport)
        self._host.enter(self)

    def data_received(self, data: bytes) -> None:
        if self._link is not None:
            self._link.feed(data)
            return
        self._heard += data
        self._hear()

    def eof_received(self) -> bool:
        """An MCP client may close its writing end and still wait for answers; a command's client has left."""
        if self._stopping is not None:
            self._stopping.set()
            return True
        if self._link is None:
            return False
        from dari.transport.unix import is_gone

        if is_gone(self.transport.get_extra_info("socket")):
            return False
        self._finish_lines(self._link)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self._deadline.cancel()
        self._outbox.resume()
        if not self._gone.done():
            self._gone.set_result(None)
        if self._link is not None:
            self._link.close()
        if self._stopping is not None:
            self._stopping.set()
            return
        if self.task is None:
            self._host.leave(self)
        elif self._link is None:
            self.task.cancel()

    def pause_writing(self) -> None:
        self._outbox.pause()
        if self._link is not None:
            self._link.pause_writing()

    def resume_writing(self) -> None:
        self._outbox.resume()
        if self._link is not None:
            self._link.resume_writing()

    # The host's side

    @property
    def is_command(self) -> bool:
        return self._terminal is not None

    def end(self) -> None:
        """The hub ends: cancel a command and report it to its client; an MCP client's calls end until it reconnects."""
        if self._terminal is not None and self.task is not None and not self.task.done():
            self._why = "host"
            self.task.cancel()
        elif self._link is not None:
            if self._is_pipe:
                self._link.emit(notification_message(protocol.CLOSING))
            self._finish_lines(self._link, STOP_GRACE_S)
        elif self._stopping is not None:
            self._stopping.set()
        else:
            self.transport.close()

    def abort(self) -> None:
        self.transport.abort()

    # What was heard

    def _hear_hello(self) -> None:
        end = self._heard.find(b"\n")
        if end < 0 and len(self._heard) <= protocol.MAX_HANDSHAKE_BYTES:
            return
        self._deadline.cancel()
        self._hear = lambda: None
        if end < 0:
            self._refuse(InvalidInput(f"a first line may have {protocol.MAX_HANDSHAKE_BYTES} bytes", "pass less"))
            return
        line = bytes(self._heard[:end])
        del self._heard[: end + 1]
        try:
            hello = parse_handshake(line)
            self._host.admit(hello)
            self._welcome(hello)
        except DariError as error:
            self._refuse(error)

    def _welcome(self, hello: CliHandshake) -> None:
        if hello.purpose == "finish":
            self._host.finish(self)
            return
        if hello.purpose == "cli":
            self._terminal = SocketConsole(self._outbox, hello.tty, hello.env)
            self._hear = self._hear_frames
            # On its own and at once: from here on the client must not try again.
            self.transport.write(protocol.encode_frame(protocol.BEGIN, b"%d" % os.getpid()))
            work = self._run_command(hello, self._terminal)
        elif isinstance(key := hello.options.get("attach"), str):
            self._attach(key)
            return
        else:
            AGENT_HOSTS.note_client(self._peer.pid)
            self.transport.pause_reading()
            key = hello.options.get("http")
            work = self._serve(hello) if not isinstance(key, str) else self._serve_http(hello, key)
        self.task = asyncio.get_running_loop().create_task(work)
        self.task.add_done_callback(self._done)
        self._hear()

    def _hear_frames(self) -> None:
        heard = self._heard
        at = 0
        while len(heard) - at >= protocol.HEADER_BYTES:
            size = int.from_bytes(heard[at + 1 : at + protocol.HEADER_BYTES], "big")
            if size > protocol.MAX_FRAME_BYTES:
                self.transport.abort()
                return
            end = at + protocol.HEADER_BYTES + size
            if len(heard) < end:
                break
            self._hear_frame(bytes(heard[at : at + 1]), bytes(heard[at + protocol.HEADER_BYTES : end]))
            at = end
        del heard[:at]

    def _hear_frame(self, kind: bytes, payload: bytes) -> None:
        assert self._terminal is not None
        if kind == protocol.CANCEL:
            if self.task is not None and not self.task.done():
                self._why = "interrupted"
                self.task.cancel()
        elif not self._terminal.hear(kind, payload):
            self.transport.abort()

    def _too_slow(self) -> None:
        self._refuse(InvalidInput(f"no first line in {HANDSHAKE_TIMEOUT_S:g} s", "send it at once"))

    def _refuse(self, error: DariError) -> None:
        said = {"code": error.name, "message": error.message, "hint": error.hint}
        self.transport.write(protocol.encode_frame(protocol.REFUSED, encode(said)))
        self.transport.close()

    # What a client asks for

    async def _run_command(self, hello: CliHandshake, terminal: SocketConsole) -> None:
        try:
            peer = self._peer
            with serve_caller(CallerIdentity("cli", ALL_SCOPES, peer.pid, peer.started)):
                code = await self._host.run_command(hello.program, hello.argv, terminal, hello.surroundings())
        except asyncio.CancelledError:
            code = EXIT_INTERRUPTED
            if self._why == "host":
                code = EXIT_DAEMON_ENDED
                terminal.err("error: the daemon was asked to end before the command had\nhint: run it again\n")
        except Exception as error:
            if (refused := from_os_error(error)) is not None:
                code = refused.exit_code
                terminal.err(f"error: {refused.message}\n" + (f"hint: {refused.hint}\n" if refused.hint else ""))
            else:
                _log.exception("hub event=fatal program=%s", hello.program)
                code = EXIT_INTERRUPTED
                said = f"{type(error).__name__}: {error}"
                terminal.err(f"error: {said}\nhint: a fault of ours; the daemon's log has more\n")
        self._outbox.put(protocol.EXIT, bytes((code & 0xFF,)))
        self._outbox.flush()
        self.transport.close()

    async def _serve(self, hello: CliHandshake) -> None:
        from dari.cli.hub.stdio_token import StdioToken
        from dari.transport.lines import LineReplyChannel  # 20 ms that a daemon which runs commands never needs

        try:
            token = StdioToken.of(hello.env)
            async with self._host.make_server(hello.surroundings(), hello.options) as server:
                if self._gone.done():
                    return
                self.transport.write(protocol.encode_frame(protocol.BEGIN, b"%d" % os.getpid()))
                grant = MCP_GRANT if token is None else token.grant
                self._link = LineReplyChannel(server, grant, _LineStream(self.transport), "unix")
                self._prepare_pipe(self._link, hello.options)
                heard, self._heard = bytes(self._heard), bytearray()
                self._link.feed(heard)
                if not self.transport.is_closing():
                    self.transport.resume_reading()
                await (self._gone if token is None else self._until_gone_or_revoked(token))
        except (DariError, OSError) as error:
            if (failure := from_os_error(error)) is None:
                raise
            if self._link is None:
                self._refuse(failure)
            else:
                _log.error("hub event=mcp_failed error=%s", failure.message)

    async def _until_gone_or_revoked(self, token: StdioToken) -> None:
        """A revoked token ends the connection with all that runs on it."""
        ended = asyncio.ensure_future(token.ended())
        try:
            await token.note_use()
            await asyncio.wait({self._gone, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        self.transport.abort()

    async def _serve_http(self, hello: CliHandshake, key: str) -> None:
        """Until the client leaves, or has closed its writing end and what ran has finished."""
        from secrets import token_hex

        from dari.cli.hub.http_attachment import HttpAttachment

        try:
            async with self._host.make_server(hello.surroundings(), hello.options) as server:
                count = hello.options.get("first_request")
                server.first_request = count if isinstance(count, int) else 0
                # What is approved for the session of a client without one is for this listener, and ends with it.
                grant = replace(MCP_GRANT, may_relay_person=False, listener=token_hex(4))
                attachment = HttpAttachment(server, grant)
                await attachment.start()
                self._host.attachments[key] = attachment
                self._stopping = asyncio.Event()
                try:
                    self.transport.write(protocol.encode_frame(protocol.BEGIN, b"%d" % os.getpid()))
                    self.transport.resume_reading()
                    await self._stopping.wait()
                finally:
                    del self._host.attachments[key]
                    await attachment.stop()
                    server.end_access(grant)
        except DariError as error:
            self._refuse(error)

    def _attach(self, key: str) -> None:
        """One more HTTP connection of a client that is here already."""
        attachment = self._host.attachments.get(key)
        if attachment is None:
            self._refuse(NotFound("this HTTP listener is not known here", "connect it again"))
            return
        self._outbox.resume()
        self.transport.write(protocol.encode_frame(protocol.BEGIN, b"%d" % os.getpid()))
        heard, self._heard = bytes(self._heard), bytearray()
        self._host.leave(self)
        attachment.take(self.transport, heard)

    def _prepare_pipe(self, link: LineReplyChannel, options: Mapping[str, Any]) -> None:
        """`dari mcp` connects again for its client, which may still answer requests of the hub before."""
        self._is_pipe = options.get("pipe") is True
        count = options.get("first_request")
        if isinstance(count, int) and link.session is not None:
            link.session.skip_request_ids(count)

    def _finish_lines(self, link: LineReplyChannel, grace_s: float = HALF_CLOSED_GRACE_S) -> None:
        if self._finishing is None:
            self._finishing = asyncio.get_running_loop().create_task(link.finish(grace_s))

    def _done(self, task: asyncio.Task[None]) -> None:
        self._host.leave(self)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("hub event=fatal", exc_info=error)
        if self.transport.is_closing():
            return
        self.transport.close()


class _LineStream:
    """A transport as `LineLink` wants it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def unread_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()
