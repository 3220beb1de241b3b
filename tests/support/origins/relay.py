"""A door before an origin: it sees the first bytes of each connection, and may refuse one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


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
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        made.has_opened.set()
        try:
            first = await reader.read(65536)
            if (last := refuses(first)) is not None:
                writer.write(last)
                return
            there, onward = await asyncio.open_connection("127.0.0.1", port)
            onward.write(first)
            await asyncio.gather(_copy(reader, onward), _copy(there, writer))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
    finally:
        sink.close()
