"""What a client of our MCP server may send, and a server of our MCP client."""

import asyncio
import json
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.stalls.heartbeat import ATTACK_LIMIT_S, Stall, beside, sent

CHUNKS = 300_000
LINES = 500_000
_POST = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
_CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"dari_ping","arguments":%b}}'


@asynccontextmanager
async def _hub() -> AsyncIterator[tuple[int, Path]]:
    from dari.core.registry import Registry
    from dari.core.scopes import MCP_GRANT
    from dari.mcp.server import Info, Server
    from dari.settings import ServeSettings
    from dari.transport.server import McpListeners

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run", "hub.sock")
        path.parent.mkdir(mode=0o700)
        settings = ServeSettings(transport="http", http_port=0, socket_path=path)
        hub = McpListeners(Server(Registry(), Info("bench", "1")), settings, MCP_GRANT)
        await hub.start()
        try:
            yield int(hub.url.rsplit(":", 1)[1].removesuffix("/mcp")), path
        finally:
            await hub.stop()


async def chunked_post() -> Stall:
    async with _hub() as (port, _):
        body = b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * CHUNKS + b"0\r\n\r\n"
        return await beside(lambda: sent(port, _POST + body))


async def chunked_post_elsewhere() -> Stall:
    """The same where uvicorn's own class reads it."""
    async with _hub() as (port, _):
        head = b"POST /health HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        return await beside(lambda: sent(port, head + b"1\r\n \r\n" * CHUNKS + b"0\r\n\r\n"))


async def pipelined_posts() -> Stall:
    async with _hub() as (port, _):
        message = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        one = _POST + b"Content-Length: %d\r\n\r\n" % len(message) + message
        return await beside(lambda: sent(port, one * 50_000))


async def deep_arguments() -> Stall:
    deep = b'{"a":' * 200_000 + b"1" + b"}" * 200_000
    return await _posted(_CALL % deep)


async def many_values() -> Stall:
    return await _posted(_CALL % (b'{"a":[' + b"0," * 2_000_000 + b"0]}"))


async def batch() -> Stall:
    return await _lined(b"[" + b",".join([b'{"jsonrpc":"2.0","id":1,"method":"ping"}'] * 200_000) + b"]\n")


async def lines_of_noise() -> Stall:
    return await _lined(b"1\n" * LINES)


async def blank_lines() -> Stall:
    return await _lined(b"\n" * LINES)


async def a_line_without_end() -> Stall:
    return await _lined(b"x" * 60_000_000)


async def _posted(message: bytes) -> Stall:
    async with _hub() as (port, _):
        request = _POST + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(message) + message
        return await beside(lambda: sent(port, request))


async def _lined(data: bytes) -> Stall:
    async with _hub() as (_, path):
        return await beside(lambda: asyncio.to_thread(_write, path, data))


def _write(path: Path, data: bytes) -> None:
    import threading

    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(ATTACK_LIMIT_S)
        line.connect(str(path))

        def drain() -> None:
            try:
                while line.recv(1 << 20):
                    pass
            except OSError:
                pass

        reader = threading.Thread(target=drain, daemon=True)
        reader.start()
        try:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
        except OSError:
            return
        reader.join(ATTACK_LIMIT_S)


# Our client beside a server that talks too much.


@asynccontextmanager
async def _web_server(answer: bytes) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            for at in range(0, len(answer), 65536):
                writer.write(answer[at : at + 65536])
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _answered(answer: bytes) -> Stall:
    from dari.errors import DariError
    from dari.transport.connect import connect

    async with _web_server(answer) as port:

        async def ask() -> None:
            try:
                async with asyncio.timeout(20), connect(f"http://127.0.0.1:{port}/mcp", open_timeout_s=15):
                    pass
            except (DariError, TimeoutError):
                pass

        return await beside(ask)


_OK = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n"


async def chunked_answer() -> Stall:
    return await _answered(_OK % b"application/json" + b"1\r\n \r\n" * CHUNKS + b"0\r\n\r\n")


async def chunked_events() -> Stall:
    return await _answered(_OK % b"text/event-stream" + b"1\r\n\n\r\n" * CHUNKS + b"0\r\n\r\n")


async def events_of_noise() -> Stall:
    events = b"data:1\n\n" * LINES
    return await _answered(_OK % b"text/event-stream" + b"%x\r\n" % len(events) + events + b"\r\n0\r\n\r\n")


async def lines_of_one_event() -> Stall:
    event = b"data:x\n" * LINES + b"\n"
    return await _answered(_OK % b"text/event-stream" + b"%x\r\n" % len(event) + event + b"\r\n0\r\n\r\n")


async def an_event_without_end() -> Stall:
    event = b"data:" + b"x" * 60_000_000
    return await _answered(_OK % b"text/event-stream" + b"%x\r\n" % len(event) + event + b"\r\n0\r\n\r\n")


_CHATTY = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "x", "version": "1"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    elif asked.get("method") == "tools/list":
        sys.stdout.write(%s)
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": []}}), flush=True)
"""


async def _spoken(expression: str) -> Stall:
    import sys

    from dari.errors import DariError
    from dari.transport.connect import connect

    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "chatty.py")
        script.write_text(_CHATTY % expression)
        async with connect([sys.executable, str(script)]) as client:

            async def ask() -> None:
                try:
                    await client.listing("tools")
                except DariError:
                    pass

            return await beside(ask)


async def noise_of_a_server() -> Stall:
    return await _spoken('"1\\n" * 1_000_000')


async def notifications_of_a_server() -> Stall:
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
    return await _spoken(f"{note + chr(10)!r} * 200_000")


async def a_million_tools() -> Stall:
    tools = "','.join(json.dumps({'name': f't{at}'}) for at in range(1_000_000))"
    answer = '\'{"jsonrpc":"2.0","id":%d,"result":{"tools":[\' % asked[\'id\'] + ' + tools + " + ']}}\\n'"
    return await _spoken(answer)
