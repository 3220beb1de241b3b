"""Proxies to stand behind ours: SOCKS5 with or without a login, and what never answers."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.support.origins.listener import listening


@dataclass
class Socks:
    port: int = 0
    targets: list[tuple[str, int]] = field(default_factory=list)


@asynccontextmanager
async def socks(login: tuple[bytes, bytes] | None = None, refusal: int = 0) -> AsyncIterator[Socks]:
    """RFC 1928 and 1929; `refusal` is the code every request gets."""
    made = Socks()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _serve(made, reader, writer, login, refusal)

    async with listening(handle, asyncio.IncompleteReadError) as made.port:
        yield made


async def _serve(
    made: Socks,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    login: tuple[bytes, bytes] | None,
    refusal: int,
) -> None:
    methods = await reader.readexactly((await reader.readexactly(2))[1])
    wanted = 0 if login is None else 2
    writer.write(bytes((5, wanted if wanted in methods else 0xFF)))
    if wanted not in methods:
        return
    if login is not None:
        user = await reader.readexactly((await reader.readexactly(2))[1])
        password = await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(bytes((1, 0 if (user, password) == login else 1)))
        if (user, password) != login:
            return
    kind = (await reader.readexactly(4))[3]
    if kind == 3:
        host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
    else:
        host = str(ipaddress.ip_address(await reader.readexactly(4 if kind == 1 else 16)))
    port = int.from_bytes(await reader.readexactly(2), "big")
    made.targets.append((host, port))
    writer.write(bytes((5, refusal, 0, 1, 127, 0, 0, 1, 0, 0)))
    if refusal:
        return
    there, onward = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(_copy(reader, onward), _copy(there, writer))


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
    finally:
        sink.close()
