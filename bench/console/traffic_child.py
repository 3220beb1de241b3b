"""An origin and its client, which sends through a proxy: so many requests quickly, then so many each second.

python traffic_child.py PROXY_PORT ORIGIN_PORT FIRST FIRST_PER_SECOND PER_SECOND    prints `ready` after the first ones
"""

import asyncio
import math
import sys

CONNECTIONS = 8
KINDS = ("users", "orders", "items", "search", "sessions", "images", "metrics", "events")
STATUSES = ("200 OK", "200 OK", "200 OK", "201 Created", "304 Not Modified", "404 Not Found", "500 Server Error")
BODY = b'{"items": [' + b", ".join(b'{"id": %d, "name": "item %d"}' % (n, n) for n in range(20)) + b"]}"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    number = 0
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            number += 1
            status = STATUSES[number % len(STATUSES)]
            body = b"" if status.startswith("304") else BODY
            head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


class Line:
    """One connection to the proxy that is kept open."""

    def __init__(self, proxy: int, origin: int, first: int) -> None:
        self.proxy, self.origin, self.number = proxy, origin, first

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.proxy)

    async def ask(self) -> None:
        self.number += CONNECTIONS
        kind = KINDS[self.number % len(KINDS)]
        url = f"http://127.0.0.1:{self.origin}/api/{kind}/{self.number}?page={self.number % 50}"
        self.writer.write(f"GET {url} HTTP/1.1\r\nHost: 127.0.0.1:{self.origin}\r\nAccept: */*\r\n\r\n".encode())
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = head.partition(b"content-length:")[2].split(b"\r\n")[0].strip()
        await self.reader.readexactly(int(length or 0) if b" 304 " not in head.split(b"\r\n")[0] else 0)

    async def keep_on(self, per_s: float, count: float = math.inf) -> None:
        loop = asyncio.get_running_loop()
        next_s = loop.time()
        while count > 0:
            count -= 1
            await self.ask()
            next_s = max(next_s + 1 / per_s, loop.time())
            await asyncio.sleep(next_s - loop.time())


async def main(proxy: int, origin: int, first: int, first_per_s: float, per_s: float) -> None:
    await asyncio.start_server(answer, "127.0.0.1", origin)
    lines = [Line(proxy, origin, number) for number in range(CONNECTIONS)]
    await asyncio.gather(*(line.open() for line in lines))
    await asyncio.gather(*(line.keep_on(first_per_s / CONNECTIONS, first / CONNECTIONS) for line in lines))
    print("ready", flush=True)
    await asyncio.gather(*(line.keep_on(per_s / CONNECTIONS) for line in lines))


if __name__ == "__main__":
    ports, rates = map(int, sys.argv[1:4]), map(float, sys.argv[4:6])
    asyncio.run(main(*ports, *rates))
