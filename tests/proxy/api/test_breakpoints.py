"""Breakpoints: a real request waits, is edited, and goes on by hand or by itself."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard

from dari.errors import InvalidInput, NotFound
from tests.support.origins.origin import Line, origin
from tests.support.proxy_engine import request, wire
from tests.support.proxy_service import Rig, proxy


async def held(rig: Rig, url: str, on: str = "request", time_limit_s: float = 15) -> str:
    rule = {"kind": "breakpoint", "matcher": url, "on": on, "time_limit_s": time_limit_s}
    return (await rig.service.rules.add(rule)).id


async def test_a_request_waits_and_goes_on_edited(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"))
        asking = asyncio.ensure_future(
            rig.get(site.url("/a"), "Authorization: Bearer s3cret-value-123", method="POST", body=b"old")
        )
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        assert (waiting.on, waiting.method, waiting.url, waiting.body_sample) == (
            "request",
            "POST",
            site.url("/a"),
            "old",
        )
        assert "s3cret" not in str(waiting.headers) and site.requests == []
        edits = {"X-New": "1"}
        await rig.service.breakpoints.resume(waiting.id, url=site.url("/b"), set_headers=edits, body="new")
        assert (await asking).status == 200
        seen = site.requests[0]
        assert seen.head.startswith(b"POST /b ") and (seen.body, seen.header("x-new")) == (b"new", "1")
        assert seen.header("authorization") == "Bearer s3cret-value-123"
        assert (await rig.service.breakpoints.held()).held == []


async def test_a_response_waits_and_its_status_and_body_change(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"), on="response")
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        assert (waiting.on, waiting.status) == ("response", 200)
        await rig.service.breakpoints.resume(waiting.id, status=404, body="gone")
        reply = await asking
        assert (reply.status, reply.body) == (404, b"gone")


async def test_it_goes_on_by_itself_after_its_time(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"), time_limit_s=0.1)
        assert (await rig.get(site.url("/"))).status == 200
        assert len(site.requests) == 1


async def test_an_aborted_request_never_reaches_the_origin(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"))
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        await rig.service.breakpoints.resume(waiting.id, abort=True)
        assert (await asking).status == 502
        assert site.requests == []


async def test_a_wrong_edit_is_told_to_whoever_resumes_and_the_request_still_waits(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"))
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        resume = rig.service.breakpoints.resume
        for wrong in (
            {"status": 200},
            {"method": "BAD METHOD"},
            {"url": "nowhere"},
            {"set_headers": {"Bad Name": "x"}},
            {"set_headers": {"X": "a\r\nb"}},
            {"body": '{"password": "<redacted>"}'},
            {"url": site.url("/?token=<redacted>")},
        ):
            with pytest.raises(InvalidInput):
                await resume(waiting.id, **wrong)  # type: ignore[arg-type]
        await resume(waiting.id)
        assert (await asking).status == 200
        with pytest.raises(NotFound):
            await resume(waiting.id)


async def test_a_token_on_the_edge_of_what_is_shown_is_hidden_as_a_whole(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"))
        body = b"x" * 4080 + b" " + token.encode() + b" end"
        asking = asyncio.ensure_future(rig.get(site.url("/"), "Content-Type: text/plain", method="POST", body=body))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        assert token[:8] not in waiting.body_sample and "the first" in waiting.body_note
        await rig.service.breakpoints.resume(waiting.id)
        assert (await asking).status == 200 and site.requests[0].body == body


async def test_a_client_that_left_is_no_longer_held(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"))
        async with wire(rig.runtime.engine) as client:
            await client.send(request(site.url("/")))
            assert len((await rig.service.breakpoints.wait(timeout_s=10)).held) == 1
            client.reset()
        while (await rig.service.breakpoints.held()).held:  # noqa: ASYNC110 (the loop has to turn)
            await asyncio.sleep(0)
        assert site.requests == []


async def test_a_wait_with_a_revision_ends_when_something_is_held_and_when_it_goes_on(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        wait = rig.service.breakpoints.wait
        await held(rig, site.url("/"))
        start = await rig.service.breakpoints.held()
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        one = await wait(10, start.revision)
        assert [each.on for each in one.held] == ["request"] and one.revision != start.revision
        viewers = [asyncio.ensure_future(wait(10, one.revision)) for _ in range(2)]
        await rig.service.breakpoints.resume(one.held[0].id)
        assert [(await viewer).held for viewer in viewers] == [[], []]
        assert (await asking).status == 200
        now = await rig.service.breakpoints.held()
        assert (await wait(0, now.revision)).revision == now.revision


async def test_stopping_the_proxy_holds_nobody_back(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"), time_limit_s=600)
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        await rig.service.breakpoints.wait(timeout_s=10)
        await rig.service.control.stop()
        with pytest.raises((ConnectionError, EOFError)):
            await asking
        assert (await rig.service.breakpoints.held()).held == []


async def test_waiting_in_vain_ends_with_nothing(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        assert (await rig.service.breakpoints.wait(timeout_s=0.01)).held == []


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def _plain(name: str, data: bytes) -> bytes:
    match name:
        case "gzip":
            return gzip.decompress(data)
        case "deflate":
            return zlib.decompress(data)
        case "br":
            return bytes(brotli.decompress(data))
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data


def _in_two_pieces(head: str, body: bytes, is_chunked: bool) -> Callable[[Line], Awaitable[None]]:
    """A response whose body comes after its head, so that a breakpoint has to wait for it."""

    async def handle(line: Line) -> None:
        while await line.request() is not None:
            framing = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(body)}"
            line.writer.write(f"HTTP/1.1 200 OK\r\n{head}{framing}\r\n\r\n".encode())
            await line.writer.drain()
            await asyncio.sleep(0)
            line.writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if is_chunked else body)
            await line.writer.drain()

    return handle


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("name", CODERS)
async def test_a_coded_response_is_shown_as_text_and_goes_on_coded(name: str, is_chunked: bool, tmp_path: Path) -> None:
    head = f"Content-Type: application/json\r\nContent-Encoding: {name}\r\nContent-MD5: old\r\n"
    answer = _in_two_pieces(head, CODERS[name](b'{"user":"Ada"}'), is_chunked)
    async with origin(answer) as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"), on="response")
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        assert (waiting.body_sample, waiting.body_note) == ('{"user":"Ada"}', "")
        await rig.service.breakpoints.resume(waiting.id, body='{"user":"Grace"}')
        reply = await asking
        assert reply.header("content-encoding") == name and reply.header("content-md5") is None
        assert reply.header("content-length") == str(len(reply.body))
        assert _plain(name, reply.body) == b'{"user":"Grace"}'


@pytest.mark.parametrize("name", CODERS)
async def test_a_coded_request_is_shown_as_text_and_goes_on_coded(name: str, tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"))
        body = CODERS[name](b"old text")
        asking = asyncio.ensure_future(rig.get(site.url("/"), f"Content-Encoding: {name}", method="POST", body=body))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        assert waiting.body_sample == "old text"
        await rig.service.breakpoints.resume(waiting.id, body="new text")
        assert (await asking).status == 200
        seen = site.requests[0]
        assert seen.header("content-length") == str(len(seen.body)) and _plain(name, seen.body) == b"new text"


async def test_a_coding_that_nobody_can_write_is_dropped_with_the_body_it_described(tmp_path: Path) -> None:
    answer = _in_two_pieces("Content-Encoding: aws-chunked-2\r\n", b"\x00\x01", False)
    async with origin(answer) as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"), on="response")
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        assert waiting.body_sample == "" and "2 bytes are not shown" in waiting.body_note
        await rig.service.breakpoints.resume(waiting.id, body="plain")
        reply = await asking
        assert (reply.body, reply.header("content-encoding")) == (b"plain", None)


async def test_the_coding_changes_only_together_with_the_body(tmp_path: Path) -> None:
    answer = _in_two_pieces("Content-Encoding: gzip\r\n", gzip.compress(b"text"), False)
    async with origin(answer) as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"), on="response")
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        resume = rig.service.breakpoints.resume
        with pytest.raises(InvalidInput, match="Content-Encoding"):
            await resume(waiting.id, remove_headers=["content-encoding"])
        await resume(waiting.id, remove_headers=["content-encoding"], body="text")
        reply = await asking
        assert (reply.body, reply.header("content-encoding")) == (b"text", None)


async def test_the_charset_of_a_response_is_read_and_kept(tmp_path: Path) -> None:
    answer = _in_two_pieces("Content-Type: text/plain; charset=euc-kr\r\n", "다리".encode("euc-kr"), False)
    async with origin(answer) as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"), on="response")
        for body, kind, data in (
            ("강", "text/plain; charset=euc-kr", "강".encode("euc-kr")),
            ("🦀", "text/plain; charset=utf-8", "🦀".encode()),
        ):
            asking = asyncio.ensure_future(rig.get(site.url("/")))
            (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
            assert waiting.body_sample == "다리"
            await rig.service.breakpoints.resume(waiting.id, body=body)
            reply = await asking
            assert (reply.header("content-type"), reply.body) == (kind, data)


async def test_an_upload_is_awaited_so_that_its_body_can_be_replaced(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"))
        async with wire(rig.runtime.engine) as line:
            await line.send(request(site.url("/"), "Content-Length: 8", method="POST", body=b"half"))
            await line.send(b"half")
            (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
            assert waiting.body_sample == "halfhalf"
            await rig.service.breakpoints.resume(waiting.id, body="other")
            assert (await line.reply("POST")).status == 200
        assert site.requests[0].body == b"other"


async def test_a_response_that_never_ends_is_held_all_the_same(tmp_path: Path) -> None:
    async def stream(line: Line) -> None:
        await line.request()
        line.writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await line.reader.read()

    async with origin(stream) as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"), on="response")
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=20)).held
        assert waiting.body_sample == "hello"
        await rig.service.breakpoints.resume(waiting.id, body="bye")
        assert (await asking).body == b"bye"
