"""Stdin and stdout of an MCP client on the socket of the hub, message by message. `crux-mcp-bridge` is one on cruxd.

The hub serves; the pipe knows only what it needs when the hub ends: which requests wait for an answer, and what made
the session. So it fails those calls with the reason, connects again, repeats `initialize` and announces every list.
Before there is a hub it answers `initialize` and `server/discover` from the hub's last answer, and nothing else.
"""

import os
from _socket import SHUT_WR, socket
from _thread import start_new_thread
from select import POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, poll
from time import monotonic

from dari.cli.hub.protocol import CLOSING, to_json
from dari.cli.mcp.hub import HubRefused, NoHub
from dari.cli.mcp.introductions import INTRODUCTIONS, Introductions
from dari.cli.mcp.messages import ClientMessage, HubMessage, notification, response
from dari.rpc.framing import Framing
from dari.rpc.plain_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class PipedServer(Protocol):
        """What a pipe connects its client to: the hub, or cruxd."""

        name: str
        """As in `the hub ended during the call`."""
        restarts_at_once: bool
        """Whether it is started again as soon as it has ended; else the next request of the client does it."""

        @property
        def introductions(self) -> Introductions | None: ...

        def open(self, *, starts: bool, **more: object) -> tuple[socket, bytes] | None:
            """A connection that speaks MCP lines, and what came on it already; None when none runs and none may start.
            HubRefused when it cannot be used."""


READ_BYTES = 1 << 16
WRITE_BYTES = 4096
"""What a pipe that is ready takes without making us wait."""
MAX_WAITING_BYTES = 1 << 20
MAX_HUB_BYTES = 1 << 40
LOOK_S = 0.25
MAX_LOOK_S = 4.0
LOST = ("the hub ended during the call, which may have run", "look at what it did, then call again")
"""The error of a call that was under way, with its hint; a pipe names its own server."""
QUICK_S = 2.0
MAX_QUICK_LOSSES = 3
"""After so many connections in a row that ended at once, only a request of the client starts a hub again."""
SUBSCRIBE = "subscriptions/listen"
LISTS = ("tools", "prompts", "resources")
_CLOSING = notification(CLOSING)[:-1]
_GONE = POLLERR | POLLHUP | POLLNVAL
_REPEATABLE = frozenset(
    ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "ping", "server/discover")
)


class Pipe:
    """One run, from the first message to the end of stdin. `log` takes a level and a line."""

    def __init__(self, hub: "PipedServer", log: "Callable[[str, str], None]", source: int = 0, sink: int = 1) -> None:
        self._hub = hub
        self._log = log
        self._source = source
        self._sink = sink
        self._introductions = hub.introductions
        self._from_client = Framing()
        self._wake, self._waker = os.pipe()
        self._writable = poll()
        self._writable.register(sink, POLLOUT)
        # The connection
        self._sock: socket | None = None
        self._from_hub = Framing(MAX_HUB_BYTES)
        self._is_connecting = False
        self._arrived: list[tuple[socket, bytes] | HubRefused | None] = []
        self._connections = 0
        self._connected_at_s = 0.0
        self._quick_losses = 0
        self._is_closing = False
        self._is_half_closed = False
        self._look_at_s: float | None = None
        self._look_s = LOOK_S
        # Bytes on their way
        self._up = Outgoing()
        self._down = Outgoing()
        self._has_input = True
        self._is_stopping = False
        # What the session is made of
        self._version = ""
        self._initialize: ClientMessage | None = None
        self._settings: dict[str, ClientMessage] = {}
        """What a new hub has to hear again, by what it sets."""
        self._waiting: dict[str, ClientMessage] = {}
        """Requests without an answer, by id."""
        self._repeated: set[str] = set()
        self._unheard: dict[str, ClientMessage] = {}
        """Requests whose answer the client has already, or never asked for."""
        self._asked: set[str] = set()
        """Requests of the hub that the client has not answered."""
        self._asked_count = 0

    def run(self) -> None:
        """Serve until stdin ends and what was asked is answered, or nobody reads our output.

        HubRefused when no hub can be used from the start.
        """
        self._log("info", "start")
        try:
            self._connect(starts=False)
            self._loop()
        finally:
            if self._sock is not None:
                self._sock.close()

    def stop(self) -> None:
        """From another thread: as if stdin had ended."""
        self._is_stopping = True
        os.write(self._waker, b"s")

    # The loop

    def _loop(self) -> None:
        watch, watched = poll(), None
        while self._is_needed():
            reads_client = self._has_input and self._up.size < MAX_WAITING_BYTES
            connection = wanted = -1
            if self._sock is not None:
                connection = self._sock.fileno()
                reads = POLLIN if self._down.size < MAX_WAITING_BYTES else 0
                wanted = reads | (POLLOUT if self._up.size else 0)
            wants = (self._connections, reads_client, connection, wanted, self._down.size > 0)
            if wants != watched:  # seldom: mostly nothing waits to be written
                watch, watched = self._watch(reads_client, connection, wanted), wants
            ready = dict(watch.poll(self._timeout_ms()))
            if ready.get(self._sink, 0) & _GONE:
                return
            if self._wake in ready:
                self._take_connection()
            if self._source in ready:
                self._read_client()
            if connection in ready and self._sock is not None and ready[connection] & (POLLIN | _GONE):
                self._read_hub()
            if self._look_at_s is not None and monotonic() >= self._look_at_s:
                self._look()
            if self._up.size or not self._has_input:
                self._write_hub()
            if self._down.size and not self._write_client():
                return

    def _watch(self, reads_client: bool, connection: int, wanted: int) -> poll:
        watch = poll()
        watch.register(self._wake, POLLIN)
        watch.register(self._sink, POLLOUT if self._down.size else 0)
        if reads_client:
            watch.register(self._source, POLLIN)
        if connection >= 0:
            watch.register(connection, wanted)
        return watch

    def _is_needed(self) -> bool:
        if self._down.size or self._has_input:
            return True
        # Stdin has ended: the hub ends the connection once it has answered.
        return self._sock is not None or (self._is_connecting and bool(self._waiting))

    def _timeout_ms(self) -> float | None:
        return None if self._look_at_s is None else max(0.0, (self._look_at_s - monotonic()) * 1000)

    def _read_client(self) -> None:
        try:
            data = os.read(self._source, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        is_sent = self._pass_up(data)
        if data:
            messages = self._from_client.feed(data)
        else:
            # The last line of `printf … | dari mcp` has no end of its own.
            messages = [] if self._from_client.is_lsp else self._from_client.feed(b"\n")
        for message in messages:
            self._hear_client(message, is_sent=is_sent)
        if not data:
            self._end_input()

    def _pass_up(self, data: bytes) -> bool:
        """Whole lines for the only hub so far go to it as they came, and are looked at while it works."""
        if self._connections != 1 or self._sock is None or self._up.size or not self._from_client.is_whole(data):
            return False
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            return False
        except OSError:  # its last words are still to be read
            return True
        if sent < len(data):
            self._up.add(data[sent:])
        return True

    def _end_input(self) -> None:
        if not self._has_input:
            return
        self._has_input = False
        self._log("info", "eof")

    def _read_hub(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose_hub()
            return
        # As long as there was no other hub, the client gets every message; we read it while the client works.
        is_first_hub = self._connections == 1 and not self._unheard
        is_told = is_first_hub and self._pass_down(data)
        messages = [message for message in self._from_hub.feed(data) if message is not None]
        if is_first_hub and not is_told:
            for message in messages:
                if not message.startswith(_CLOSING):
                    self._tell(message)
            self._write_client()
        for message in messages:
            self._hear_hub(HubMessage(message), is_told=is_first_hub)

    def _pass_down(self, data: bytes) -> bool:
        """Lines of the hub as they came, where the client takes lines and has none to take first."""
        is_plain = not self._from_client.is_lsp and self._from_hub.is_whole(data) and _CLOSING not in data
        if not is_plain or self._down.size or len(data) > WRITE_BYTES or not self._writable.poll(0):
            return False
        try:
            sent = os.write(self._sink, data)
        except OSError:  # whoever writes the next piece finds out
            return False
        if sent < len(data):
            self._down.add(data[sent:])
        return True

    def _write_hub(self) -> None:
        if self._sock is None:
            return
        try:
            while self._up.size:
                self._up.skip(self._sock.send(self._up.head(READ_BYTES)))
            if not self._has_input and not self._is_half_closed:
                self._is_half_closed = True
                self._sock.shutdown(SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:  # its last words are still to be read
            self._up.clear()

    def _write_client(self) -> bool:
        """Whether anybody still reads."""
        try:
            while self._down.size and self._writable.poll(0):
                self._down.skip(os.write(self._sink, self._down.head(WRITE_BYTES)))
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    # What the client says

    def _hear_client(self, data: bytes | None, *, is_sent: bool = False) -> None:
        if data is None:
            self._tell(
                b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":'
                b'"Invalid request: the message is too long"}}'
            )
            return
        is_first_hub = is_sent or (self._connections == 1 and self._sock is not None)
        if is_first_hub and not is_sent:
            # It has asked whatever the client answers, so it gets every message; we read it while the hub works.
            self._send(data)
            self._write_hub()
        message = ClientMessage(data)
        self._log("debug", f"request method={message.method} id={message.id}")
        for part in message.parts or [message]:
            self._note(part)
        if message.is_response and message.id is not None:
            if message.id not in self._asked and self._connections > 1:
                return  # an answer to a hub that is gone
            self._asked.discard(message.id)
        if is_first_hub:
            return
        if self._sock is None and message.method in INTRODUCTIONS:
            self._introduce(message)
        self._send(data)

    def _note(self, message: ClientMessage) -> None:
        """What has to be known of a message when the hub ends before it has answered, or after."""
        method = message.method
        if message.is_request:
            assert message.id is not None
            self._waiting[message.id] = message
            if method == "initialize":
                self._initialize = message
                self._settings.clear()
            elif method == "logging/setLevel":
                self._settings["level"] = message
            elif method == "resources/subscribe":
                self._settings[f"uri {message.params.get('uri')}"] = message
            elif method == "resources/unsubscribe":
                self._settings.pop(f"uri {message.params.get('uri')}", None)
        elif method == "notifications/initialized":
            self._settings["initialized"] = message
        elif method == "notifications/cancelled":
            wanted = message.params.get("requestId")
            if isinstance(wanted, (int, str)):
                self._waiting.pop(to_json(wanted), None)

    def _introduce(self, message: ClientMessage) -> None:
        """Answer before there is a hub, where its last answer is known; what it says now is not passed on."""
        if self._introductions is None:
            return
        result = self._introductions.find(message.method, _asked_version(message))
        if not result or message.id is None:
            return
        del self._waiting[message.id]
        self._unheard[message.id] = message
        self._tell(response(message.id, result))
        self._write_client()
        if message.method == "initialize":
            self._version = _version_in(result)

    def _send(self, data: bytes) -> None:
        if b"\n" in data:  # a message with Content-Length may hold line ends; a line may not
            data = data.replace(b"\r", b" ").replace(b"\n", b" ")
        self._up.add(data + b"\n")
        if self._sock is None and not self._is_connecting:
            self._connect_later()

    def _tell(self, data: bytes) -> None:
        self._down.add(self._from_client.wrap(data))

    # What the hub says

    def _hear_hub(self, message: HubMessage, *, is_told: bool = False) -> None:
        if message.is_response:
            for each in message.ids or [message.id or ""]:
                asked = self._waiting.pop(each, None)
                self._repeated.discard(each)
                if asked is None and each in self._unheard:
                    self._learn(self._unheard.pop(each), message)
                    return
                if asked is not None and asked.method in INTRODUCTIONS:
                    if not is_told:
                        self._tell(message.data)
                        self._write_client()
                    self._learn(asked, message)
                    return
        elif message.method == CLOSING:
            self._is_closing = True
            return
        elif message.id is not None:
            self._asked.add(message.id)
            self._asked_count += 1
        elif message.method == "notifications/subscriptions/acknowledged" and self._is_repeat(message):
            return
        if not is_told:
            self._tell(message.data)

    def _is_repeat(self, message: HubMessage) -> bool:
        """Whether the client has this acknowledgement of its subscription already, from the hub before."""
        return any(f'subscriptionId":{each}'.encode() in message.data for each in self._repeated)

    def _learn(self, asked: ClientMessage, message: HubMessage) -> None:
        if asked.method not in INTRODUCTIONS or not message.result:
            return
        if asked.method == "initialize":
            self._version = _version_in(message.result) or self._version
        if self._introductions is not None:
            self._introductions.keep(asked.method, _asked_version(asked), message.result)

    # The connection

    def _connect(self, *, starts: bool) -> None:
        self._adopt(self._hub.open(starts=starts, pipe=True, first_request=self._asked_count))

    def _connect_later(self) -> None:
        """In a thread, so that what needs no hub is answered meanwhile."""
        self._is_connecting = True
        self._look_at_s = None
        start_new_thread(self._connect_now, ())

    def _connect_now(self) -> None:
        outcome: tuple[socket, bytes] | HubRefused | None
        try:
            outcome = self._hub.open(starts=True, pipe=True, first_request=self._asked_count)
        except HubRefused as refused:
            outcome = refused
        except BaseException as error:
            outcome = HubRefused(f"{self._hub.name} cannot be used: {type(error).__name__}: {error}", "")
        self._arrived.append(outcome)
        os.write(self._waker, b"c")

    def _take_connection(self) -> None:
        os.read(self._wake, 64)
        if self._is_stopping:
            self._has_input = False
        if not self._arrived:
            return
        self._is_connecting = False
        outcome = self._arrived.pop()
        if isinstance(outcome, HubRefused):
            self._refuse(outcome)
        else:
            self._adopt(outcome)

    def _adopt(self, opened: tuple[socket, bytes] | None) -> None:
        if opened is None:
            return
        self._sock, said = opened
        self._sock.setblocking(False)
        self._from_hub = Framing(MAX_HUB_BYTES)
        self._is_closing = not self._hub.restarts_at_once
        self._is_half_closed = False
        self._look_at_s = None
        self._look_s = LOOK_S
        self._connected_at_s = monotonic()
        self._connections += 1
        if self._connections > 1:
            self._restore()
        for message in self._from_hub.feed(said):
            if message is not None:
                self._hear_hub(HubMessage(message))

    def _restore(self) -> None:
        """Tell a new hub what made the session, before what waits for it, and the client that every list may differ."""
        again: list[bytes] = []
        if self._initialize is not None and self._initialize.id not in self._waiting:
            for message in (self._initialize, *self._settings.values()):
                again.append(message.data)
                if message.id is not None:
                    self._unheard[message.id] = message
        for identifier, message in self._waiting.items():
            if identifier in self._repeated:
                again.append(message.data)
        self._up.put_first(b"".join(data.replace(b"\n", b" ") + b"\n" for data in again))
        if "initialized" in self._settings:
            for kind in LISTS:
                self._tell(notification(f"notifications/{kind}/list_changed"))
        for identifier, message in self._waiting.items():
            if message.method == SUBSCRIBE:
                meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": loads(identifier.encode())}}
                for kind in LISTS:
                    self._tell(notification(f"notifications/{kind}/list_changed", meta))
        self._log("info", "reconnected")

    def _lose_hub(self) -> None:
        """The hub ended: its calls fail with the reason, and another one is found or started."""
        assert self._sock is not None
        self._sock.close()
        self._sock = None
        self._up.clear()
        if not self._has_input:
            self._fail_waiting(f"{self._hub.name} ended before it had answered", "start the server again")
            return
        self._log("warning", "hub_lost")
        self._fail_waiting(LOST[0].replace("the hub", self._hub.name), LOST[1], repeats=True)
        for asked in self._asked:
            self._tell(notification("notifications/cancelled", {"requestId": loads(asked.encode())}))
        self._asked.clear()
        self._unheard.clear()
        is_quick = monotonic() - self._connected_at_s < QUICK_S
        self._quick_losses = self._quick_losses + 1 if is_quick else 0
        if self._quick_losses >= MAX_QUICK_LOSSES or (self._is_closing and not self._waiting):
            self._look_at_s = monotonic() + self._look_s
        else:
            self._connect_later()

    def _look(self) -> None:
        """A hub that was asked to end is not started again for nothing; one that takes its place is found."""
        self._look_at_s = monotonic() + self._look_s
        self._look_s = min(self._look_s * 2, MAX_LOOK_S)
        try:
            self._connect(starts=False)
        except HubRefused as refused:
            self._log("debug", f"hub_refused {refused.message}")

    def _refuse(self, refused: HubRefused) -> None:
        if isinstance(refused, NoHub) and self._connections == 0 and not self._unheard:
            refused.unserved = self._unserved()
            raise refused
        self._up.clear()
        self._fail_waiting(refused.message, refused.hint)
        if self._connections == 0:
            self._write_client()
            raise refused
        self._log("error", f"hub_refused {refused.message}")

    def _unserved(self) -> bytes:
        lines = self._up.head(self._up.size).splitlines()
        return b"".join(map(self._from_client.wrap, lines)) + self._from_client.rest()

    def _fail_waiting(self, message: str, hint: str, *, repeats: bool = False) -> None:
        """Answer what waits; with `repeats`, except what a new hub can be asked once more without harm."""
        waiting, self._waiting = self._waiting, {}
        for identifier, asked in waiting.items():
            is_first = asked.method in _REPEATABLE and identifier not in self._repeated
            if repeats and (is_first or asked.method == SUBSCRIBE):
                self._waiting[identifier] = asked
                self._repeated.add(identifier)
                continue
            self._repeated.discard(identifier)
            from dari.cli.mcp.failures import render_failure

            self._tell(render_failure(asked, self._version, message, hint))


class Outgoing:
    """Bytes that wait to be written. Taking a piece off a long one copies nothing."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._at = 0
        self.size = 0
        """How many there are; looked at ten times a message."""

    def add(self, data: bytes) -> None:
        self._data += data
        self.size += len(data)

    def put_first(self, data: bytes) -> None:
        self._data[: self._at] = data
        self._at = 0
        self.size += len(data)

    def head(self, most_bytes: int) -> bytes:
        return bytes(self._data[self._at : self._at + most_bytes])

    def skip(self, count: int) -> None:
        self._at += count
        self.size -= count
        if not self.size:
            self.clear()
        elif self._at > MAX_WAITING_BYTES and self._at > len(self._data) // 2:
            # A reader that is always a little behind would have us keep all that it ever read.
            del self._data[: self._at]
            self._at = 0

    def clear(self) -> None:
        self._data.clear()
        self._at = self.size = 0


def _asked_version(message: ClientMessage) -> str:
    version = message.params.get("protocolVersion") if message.method == "initialize" else message.stateless_version
    return version if isinstance(version, str) else ""


def _version_in(result: bytes) -> str:
    at = result.find(b'"protocolVersion":"')
    return "" if at < 0 else result[at + 19 : result.find(b'"', at + 19)].decode("ascii", "replace")
