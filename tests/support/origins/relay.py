"""A door before an origin: it sees the first bytes of each connection, and may refuse one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.support.origins.listener import listening


@dataclass
class Relay:
    port: int = 0
    has_opened: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def relay(
    port: int, refuses: Callable[[bytes], bytes | None] = lambda first: None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Relay]:
    """`refuses` gets the first bytes and gives the last word, or None to let them through."""
    made = Relay()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.has_opened.set()
        first = await reader.read(65536)
        if (last := refuses(first)) is not None:
            writer.write(last)
            return
        there, onward = await asyncio.open_connection("127.0.0.1", port)
        onward.write(first)
        await asyncio.gather(_copy(reader, onward), _copy(there, writer))

    async with listening(handle, tls=tls) as made.port:
        yield made


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
    finally:
        sink.close()
