"""Random bytes to the HTTP parser and to the line link: whatever comes, the next good request is answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.core.scopes import MCP_GRANT
from dari.mcp.server import Server
from dari.transport.lines import LineReplyChannel
from tests.support.demo_server import demo_server
from tests.support.transports import Rig, running
from tests.support.waiting import turn_until
from tests.support.wire import call, demo_process, initialize

fuzz = settings(max_examples=150, deadline=None, derandomize=True, database=None)

PIECES = [
    b"GET", b"POST", b"DELETE", b" ", b"/mcp", b"/healthz", b" HTTP/1.1", b" HTTP/1.0", b"\r\n", b"\n", b"\r\n\r\n",
    b"Host: localhost", b"Host: evil", b"Content-Length: 3", b"Content-Length: 99999999999999999999", b"{}", b"abc",
    b"Transfer-Encoding: chunked", b"3\r\nabc\r\n", b"0\r\n\r\n", b"Expect: 100-continue", b"Connection: close",
    b"Connection: Upgrade\r\nUpgrade: h2c", b"Content-Type: application/json", b"Mcp-Session-Id: x", b"Origin: null",
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b"Accept: text/event-stream", b"\x00", b"\xff",
    b"MCP-Protocol-Version: ",    b"2026-07-28",
    b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
    b"Last-Event-ID: g-0", b"Authorization: Bearer x", b": ", b"x" * 70_000,
]  # fmt: skip
HTTP = st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=40)), max_size=25).map(b"".join)
WORDS = [
    b"{", b"}", b"[", b"]", b",", b":", b'"jsonrpc":"2.0"', b'"id":1', b'"id":null', b'"method":"ping"', b'"method":7',
    b'"method":"tools/call"', b'"params":{"name":"demo_echo","arguments":{"text":"x"}}', b'"params":', b"\n", b"\r\n",
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', b"Content-Length: 5\r\n\r\n", b"Content-Length: ",
    b"Content-Type: a",    b"\xff\xfe", b"\x00", b'"\\ud800"', b"1e999",
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}',
    b'"method":"initialize"', b'"params":{"protocolVersion":"2025-03-26"}', b'"result":{}', b'"error":{}', b"-" * 9000,
]  # fmt: skip
LINES = st.lists(st.one_of(st.sampled_from(WORDS), st.binary(max_size=30)), max_size=30).map(b"".join)
CUTS = st.integers(min_value=1, max_value=5000)


class Kept:
    """A stream that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def unread_bytes(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True


def examples(strategy: st.SearchStrategy[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    """Bounded examples, the same in every run, drawn before the loop runs."""
    drawn: list[tuple[bytes, int]] = []

    @fuzz
    @given(strategy)
    def draw(example: tuple[bytes, int]) -> None:
        drawn.append(example)

    draw()
    return drawn


async def sent(data: bytes, step: int, write: Callable[[bytes], None]) -> None:
    step = max(step, len(data) // 50)
    for start in range(0, len(data), step):
        with suppress(RuntimeError):  # uvloop's word for a connection that was closed
            write(data[start : start + step])
        await asyncio.sleep(0)


async def still_serves(rig: Rig) -> None:
    wire = await rig.session()
    assert (await wire.request("DELETE", "/mcp")).status == 204
    await rig.close_wires()
    await turn_until(lambda: not rig.connections)


@pytest.mark.parametrize("way", ["http", "unix"])
async def test_random_bytes_do_not_keep_the_next_client_from_its_answer(way: str, tmp_path: Path) -> None:
    drawn = examples(st.tuples(st.one_of(HTTP, LINES), CUTS))
    loop, complaints = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    async with running(socket_path=tmp_path / "s") as rig:
        await still_serves(rig)
        before = rig.holdings()
        for data, step in drawn:
            connect: Callable[[], Awaitable[object]] = rig.http if way == "http" else rig.http_on_unix
            wire = await connect()
            await sent(data, step, wire.writer.write)  # type: ignore[attr-defined]
            with suppress(ConnectionError, OSError, RuntimeError):
                wire.writer.write_eof()  # type: ignore[attr-defined]
            with suppress(ConnectionError):
                await wire.reader.read()  # type: ignore[attr-defined]
            await rig.close_wires()
        for session in list(rig.hub.sessions._by_id.values()):
            rig.hub.sessions.end(session, "over")
        await rig.until_back_to(before)
        await still_serves(rig)
    assert complaints == []


async def answered(server: Server, data: bytes, step: int) -> bytes:
    stream = Kept()
    link = LineReplyChannel(server, MCP_GRANT, stream, "test")
    await sent(data, step, link.feed)
    await link.finish(grace_s=5)
    return stream.written


async def test_random_lines_are_answered_line_by_line_and_leave_nothing_behind() -> None:
    server = demo_server()
    tasks = len(asyncio.all_tasks())
    for data, step in examples(st.tuples(LINES, CUTS)):
        written = await answered(server, data, step)
        if not data.lstrip().lower().startswith(b"content-length"):
            for line in written.splitlines():
                json.loads(line)
        assert len(server.calls) == len(server.sessions) == len(server.listening) == 0
    assert len(asyncio.all_tasks()) == tasks
    good = json.dumps(initialize()).encode() + b"\n" + json.dumps(call("demo_echo", 2, text="x")).encode() + b"\n"
    assert b'"id":2,"result"' in await answered(server, good, 7)


async def test_lines_that_are_good_are_answered_however_they_are_cut() -> None:
    server = demo_server()
    messages = [initialize(), *(call("demo_echo", number, text="é\U0001f980" * number) for number in range(20))]
    data = b"".join(json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in messages)
    for _, step in examples(st.tuples(st.just(b""), st.integers(min_value=1, max_value=300)))[:40]:
        replies = [json.loads(line) for line in (await answered(server, data, step)).splitlines()]
        assert {reply["id"] for reply in replies} == {"init", *range(20)}


async def test_a_real_process_survives_random_bytes_on_every_transport(tmp_path: Path) -> None:
    """The same on uvloop, which the command uses, instead of asyncio's own loop."""
    drawn = examples(st.tuples(st.one_of(HTTP, LINES), CUTS))
    async with demo_process(tmp_path) as server:
        stdio = server.stdio()
        await stdio.ask(initialize())
        for number, (data, step) in enumerate(drawn):
            wire = await (server.http() if number % 2 else server.http_on_unix())
            await sent(data, step, wire.writer.write)
            with suppress(OSError, RuntimeError):
                wire.writer.write_eof()
            with suppress(ConnectionError):
                await wire.reader.read()
            wire.writer.close()
        assert "result" in await (await server.http()).ask(initialize())
        assert "result" in await (await server.unix()).ask(initialize())
        assert (await stdio.ask(call("demo_echo", 2, text="x")))["id"] == 2
        server.process.terminate()
        assert await server.process.wait() == 0
        assert server.process.stderr
        log = (await server.process.stderr.read()).decode()
        assert "Traceback" not in log
        assert "event=fatal" not in log
