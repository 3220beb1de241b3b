"""Either end of an HTTP/2 connection for tests: events sorted by stream, windows that a test may leave closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    InformationalResponseReceived,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

Fields = list[tuple[bytes, bytes]]


@dataclass
class Side:
    """What the peer has sent on one stream."""

    number: int
    headers: Fields = field(default_factory=list)
    early: list[Fields] = field(default_factory=list)
    """Informational heads."""
    body: bytearray = field(default_factory=bytearray)
    trailers: Fields | None = None
    is_ended: bool = False
    reset: ErrorCodes | int | None = None

    @property
    def status(self) -> int:
        return int(dict(self.headers)[b":status"])

    @property
    def is_over(self) -> bool:
        return self.is_ended or self.reset is not None

    def header(self, name: str) -> bytes | None:
        return dict(self.headers).get(name.encode())


class H2Peer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_client: bool) -> None:
        self.reader = reader
        self.writer = writer
        # Nothing is checked here: tests send what is wrong.
        config = H2Configuration(
            client_side=is_client,
            header_encoding=None,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            validate_inbound_headers=False,
        )
        self.wire = H2Connection(config)
        self.sides: dict[int, Side] = {}
        self.goaway: ErrorCodes | int | None = None
        self.is_closed = False
        self.stalled: set[int] = set()
        """Streams whose window is not given back."""
        self._changed = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def open(self) -> None:
        self.wire.initiate_connection()
        self.flush()
        self._reading = asyncio.create_task(self._read())

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        self.writer.transport.abort()

    def flush(self) -> None:
        if data := self.wire.data_to_send():
            self.writer.write(data)

    async def until(self, is_so: Callable[[], object]) -> None:
        while not is_so():
            assert not self.is_closed, "the connection ended"
            self._changed.clear()
            await self._changed.wait()

    async def closed(self) -> None:
        while not self.is_closed:
            self._changed.clear()
            await self._changed.wait()

    async def until_over(self, side: Side) -> None:
        """The stream has ended, or all of them."""
        while not (self.is_closed or side.is_over):
            self._changed.clear()
            await self._changed.wait()

    # As a client.

    def ask(self, authority: str, path: str = "/", *more: tuple[bytes, bytes], method: str = "GET", ends: bool = True,
            scheme: str = "https") -> Side:  # fmt: skip
        fields = [
            (b":method", method.encode()),
            (b":scheme", scheme.encode()),
            (b":authority", authority.encode()),
            (b":path", path.encode()),
            *more,
        ]
        return self.ask_raw(fields, ends)

    def ask_raw(self, fields: Fields, ends: bool = True) -> Side:
        number = self.wire.get_next_available_stream_id()
        side = self.sides[number] = Side(number)
        self.wire.send_headers(number, fields, end_stream=ends)
        self.flush()
        return side

    async def answer(self, side: Side) -> Side:
        await self.until(lambda: side.is_over)
        return side

    # Both.

    async def say(self, number: int, data: bytes, ends: bool = False) -> None:
        """As fast as the windows allow."""
        sent = 0
        while sent < len(data):
            await self.until(lambda: self.wire.local_flow_control_window(number) > 0)
            room = min(self.wire.local_flow_control_window(number), self.wire.max_outbound_frame_size)
            piece = data[sent : sent + room]
            sent += len(piece)
            self.wire.send_data(number, piece, end_stream=ends and sent == len(data))
            self.flush()
            await self.writer.drain()

    def head(self, number: int, status: int, *fields: tuple[bytes, bytes], ends: bool = False) -> None:
        self.wire.send_headers(number, [(b":status", b"%d" % status), *fields], end_stream=ends)
        self.flush()

    def trail(self, number: int, *fields: tuple[bytes, bytes]) -> None:
        self.wire.send_headers(number, list(fields), end_stream=True)
        self.flush()

    def end(self, number: int) -> None:
        self.wire.end_stream(number)
        self.flush()

    def reset(self, number: int, code: ErrorCodes = ErrorCodes.CANCEL) -> None:
        self.wire.reset_stream(number, code)
        self.flush()

    def unstall(self, number: int) -> None:
        self.stalled.discard(number)
        self.wire.acknowledge_received_data(len(self.sides[number].body), number)
        self.flush()

    async def _read(self) -> None:
        try:
            while data := await self.reader.read(1 << 18):
                for event in self.wire.receive_data(data):
                    self._meet(event)
                self.flush()
                self._changed.set()
        except (ConnectionError, ProtocolError):
            pass
        finally:
            self.is_closed = True
            self._changed.set()

    def _meet(self, event: Event) -> None:
        if isinstance(event, ConnectionTerminated):
            self.goaway = event.error_code
            return
        number = getattr(event, "stream_id", None)
        if not number:
            return
        side = self.sides.setdefault(number, Side(number))
        if isinstance(event, RequestReceived | ResponseReceived):
            side.headers = [(bytes(name), bytes(value)) for name, value in event.headers]
        elif isinstance(event, InformationalResponseReceived):
            side.early.append([(bytes(name), bytes(value)) for name, value in event.headers])
        elif isinstance(event, TrailersReceived):
            side.trailers = [(bytes(name), bytes(value)) for name, value in event.headers]
        elif isinstance(event, DataReceived):
            side.body += event.data
            if number not in self.stalled:
                self.wire.acknowledge_received_data(event.flow_controlled_length, number)
        elif isinstance(event, StreamEnded):
            side.is_ended = True
        elif isinstance(event, StreamReset):
            side.reset = event.error_code


Answerer = Callable[[H2Peer, Side], Awaitable[None]]


@dataclass
class H2Origin:
    port: int = 0
    peers: list[H2Peer] = field(default_factory=list)
    requests: list[Side] = field(default_factory=list)
    problems: list[BaseException] = field(default_factory=list)

    @property
    def authority(self) -> str:
        return f"localhost:{self.port}"


async def answers_ok(peer: H2Peer, side: Side) -> None:
    await peer.answer(side)
    peer.head(side.number, 200, (b"content-type", b"text/plain"))
    await peer.say(side.number, b"ok", ends=True)


@asynccontextmanager
async def h2_origin(handle: Answerer = answers_ok, tls: object = None) -> AsyncIterator[H2Origin]:
    """Calls `handle` for each stream once its head is there."""
    made = H2Origin()
    tasks: set[asyncio.Task[None]] = set()

    async def answer(peer: H2Peer, side: Side) -> None:
        try:
            await handle(peer, side)
        except (ProtocolError, AssertionError, ConnectionError) as error:
            made.problems.append(error)  # the stream or the connection was ended under it

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = H2Peer(reader, writer, is_client=False)
        made.peers.append(peer)
        peer.open()
        begun: set[int] = set()
        while not peer.is_closed:
            for number, side in list(peer.sides.items()):
                if number not in begun and side.headers:
                    begun.add(number)
                    made.requests.append(side)
                    task = asyncio.create_task(answer(peer, side))
                    tasks.add(task)
            peer._changed.clear()
            if not peer.is_closed:
                await peer._changed.wait()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)  # type: ignore[arg-type]
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for peer in made.peers:
            await peer.close()
        await server.wait_closed()
