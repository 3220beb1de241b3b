"""A method changed at a breakpoint decides how the origin is asked; the client's own decides how it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from dari.proxy.engine.hooks import Decision, HeadEdit, Pause
from dari.proxy.flow import Flow
from tests.support.origins.h2_peer import H2Peer, Side, h2_origin
from tests.support.origins.origin import OK, Line, answering, origin
from tests.support.proxy_engine import proxy, request, wire
from tests.support.proxy_engine_h2 import NEW_TLS, decrypting, h2_client


class Editing:
    """Rules that edit one request after another at a breakpoint; the requests behind them pass as they are."""

    def __init__(self, edits: Iterable[HeadEdit | None], **decision: Any) -> None:
        self._edits = iter(edits)
        self._decision = decision

    def decide(self, flow: Flow) -> Decision:
        if flow.method == "CONNECT":
            return Decision(decrypts=True)
        edit = next(self._edits, None)
        return Decision(pause_request=_resuming(edit), **self._decision) if edit is not None else Decision()

    def respond(self, flow: Flow, status: int) -> int:
        return status


def _resuming(edit: HeadEdit | None) -> Pause:
    return lambda _, resume: resume(edit)


async def test_a_request_edited_to_one_that_may_not_be_sent_twice_is_sent_once() -> None:
    async def handle(line: Line) -> None:
        while (seen := await line.request()) is not None:
            if seen.head.startswith(b"POST "):
                line.reset()
                return
            await line.say(OK)

    rules = Editing([None, HeadEdit(method="POST")])
    async with origin(handle) as there, proxy(rules=rules) as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 200
        assert (await line.get(there.url())).status == 502
        assert [seen.head.split()[0] for seen in there.requests] == [b"GET", b"POST"]


async def test_a_request_edited_to_one_that_may_be_sent_twice_is_sent_again() -> None:
    async def handle(line: Line) -> None:
        while (seen := await line.request()) is not None:
            if seen.head.startswith(b"PUT ") and line.origin.connections == 1:
                line.reset()
                return
            await line.say(OK)

    rules = Editing([None, HeadEdit(method="PUT")])
    async with origin(handle) as there, proxy(rules=rules) as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 200
        await line.send(request(there.url(), "Content-Length: 3", method="POST", body=b"abc"))
        assert (await line.reply()).status == 200
        assert [seen.head.split()[0] for seen in there.requests] == [b"GET", b"PUT", b"PUT"]


HEADS = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Seen: 1\r\n\r\n",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Seen: 1\r\n\r\n",
    "neither": b"HTTP/1.1 200 OK\r\nX-Seen: 1\r\n\r\n",
}


@pytest.mark.parametrize("head", HEADS)
async def test_a_get_edited_to_head_is_answered_with_an_empty_body(head: str) -> None:
    rules = Editing([HeadEdit(method="HEAD")])
    async with origin(answering(HEADS[head], OK)) as there, proxy(rules=rules) as engine, wire(engine) as line:
        reply = await line.get(there.url())
        assert (reply.status, reply.body, reply.header("x-seen")) == (200, b"", "1")
        assert (reply.header("content-length"), reply.header("transfer-encoding")) == ("0", None)
        assert (await line.get(there.url())).body == b"ok"
        assert [seen.head.split()[0] for seen in there.requests] == [b"HEAD", b"GET"]
        assert there.connections == 1


async def test_a_get_edited_to_head_may_get_a_body_from_a_rule() -> None:
    rules = Editing([HeadEdit(method="HEAD")], response_body=lambda body: body + b"made")
    async with origin(answering(HEADS["length"])) as there, proxy(rules=rules) as engine, wire(engine) as line:
        assert (await line.get(there.url())).body == b"made"


@pytest.mark.parametrize(
    "body", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"]
)
async def test_a_head_edited_to_get_is_answered_without_a_body(body: bytes) -> None:
    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nX-Seen: 1\r\n" + body[:-3])
        await line.say(body[-3:] + (b"0\r\n\r\n" if b"chunked" in body else b""))
        while await line.request() is not None:
            await line.say(OK)

    rules = Editing([HeadEdit(method="GET")])
    async with origin(handle) as there, proxy(rules=rules) as engine, wire(engine) as line:
        await line.send(request(there.url(), method="HEAD"))
        reply = await line.reply("HEAD")
        assert (reply.status, reply.header("x-seen")) == (200, "1")
        assert (await line.get(there.url())).body == b"ok"


@pytest.mark.parametrize(
    ("method", "head"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
    ],
)
async def test_a_body_given_to_a_response_that_may_have_none_is_left_out(method: str, head: bytes) -> None:
    rules = Editing([HeadEdit()], pause_response=_resuming(HeadEdit(body=b"given")))
    async with origin(answering(head, OK)) as there, proxy(rules=rules) as engine, wire(engine) as line:
        await line.send(request(there.url(), method=method))
        await line.reply("HEAD")
        reply = await line.get(there.url())
        assert reply.head.startswith(b"HTTP/1.1 200 ") and reply.body == b"ok"


async def test_a_request_is_not_edited_to_connect() -> None:
    rules = Editing([HeadEdit(method="CONNECT")])
    async with origin() as there, proxy(rules=rules) as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 400
        assert (await line.get(there.url())).body == b"ok"
        assert there.connections == 1


@pytest.mark.parametrize(("asked", "edited"), [("GET", "HEAD"), ("HEAD", "GET")])
async def test_an_edited_method_is_answered_over_http_2(tmp_path: Path, asked: str, edited: str) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        is_head = side.header(":method") == b"HEAD"
        peer.head(side.number, 200, (b"content-length", b"5"), ends=is_head)
        if not is_head:
            await peer.say(side.number, b"hello", ends=True)

    rules = Editing([HeadEdit(method=edited)])
    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path, rules=rules) as engine:
        async with h2_client(engine, there.port) as client, asyncio.timeout(20):
            answer = await client.answer(client.ask(there.authority, method=asked))
            assert (answer.status, bytes(answer.body), answer.reset) == (200, b"", None)
            assert asked == "HEAD" or answer.header("content-length") == b"0"
            assert (await client.answer(client.ask(there.authority))).body == b"hello"
        assert [side.header(":method") for side in there.requests] == [edited.encode(), b"GET"]
