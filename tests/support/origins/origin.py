"""An origin that says exactly what a test tells it to, and keeps every byte it was sent."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from tests.support.origins.listener import listening

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Seen:
    """A request as the origin received it."""

    head: bytes
    body: bytes = b""
    """With its chunks, if it had any."""

    def header(self, name: str) -> str | None:
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.lower() == name.lower().encode():
                return value.strip().decode("latin-1")
        return None


class Broken(Exception):
    """The connection ended in the middle of a request."""


Handler = Callable[["Line"], Awaitable[None]]


class Line:
    """One connection at the origin."""

    def __init__(self, origin: Origin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.origin = origin
        self.reader = reader
        self.writer = writer

    async def head(self) -> Seen | None:
        """The next head, None at the end of the connection."""
        try:
            data = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            self.origin.received += error.partial
            return None
        self.origin.received += data
        return Seen(data)

    async def request(self) -> Seen | None:
        seen = await self.head()
        if seen is not None:
            await self.body(seen)
            self.origin.requests.append(seen)
        return seen

    async def body(self, seen: Seen) -> None:
        try:
            if (length := seen.header("content-length")) is not None:
                seen.body = await self.reader.readexactly(int(length))
            elif seen.header("transfer-encoding"):
                await self._chunks(seen)
        except asyncio.IncompleteReadError as error:
            raise Broken from error
        finally:
            self.origin.received += seen.body

    async def _chunks(self, seen: Seen) -> None:
        while True:
            line = await self.reader.readuntil(b"\r\n")
            seen.body += line
            if line.strip() == b"0":
                break
            seen.body += await self.reader.readexactly(int(line.split(b";")[0], 16) + 2)
        while (line := await self.reader.readuntil(b"\r\n")) != b"\r\n":
            seen.body += line
        seen.body += line

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        # Below 3.11.4 an asyncio TLS transport that has been closed raises AttributeError here.
        with suppress(AttributeError):
            self.writer.transport.abort()


@dataclass
class Origin:
    port: int = 0
    requests: list[Seen] = field(default_factory=list)
    received: bytes = b""
    connections: int = 0

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"


def answering(*responses: bytes, closes: bool = False) -> Handler:
    """Each request gets the next response, the last one for ever."""

    async def handle(line: Line) -> None:
        queue = list(responses)
        while await line.request() is not None:
            await line.say(queue.pop(0) if len(queue) > 1 else queue[0])
            if closes:
                return

    return handle


@asynccontextmanager
async def origin(
    handle: Handler | None = None, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Origin]:
    made = Origin()
    handler = handle or answering(OK)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.connections += 1
        await handler(Line(made, reader, writer))

    async with listening(serve, Broken, tls=tls, host=host) as made.port:
        yield made
