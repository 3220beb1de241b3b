"""Recorded credentials go to the origin they were recorded for, and to no other, whichever way a request is sent on."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from dari.errors import Conflict, Denied, InvalidInput
from dari.proxy.credentials import answers_same_origin, body_without_secrets, is_same_origin
from dari.proxy.replay import RequestEdits
from dari.proxy.rules.rule import MockRule
from tests.support.origins.origin import origin
from tests.support.proxy_engine import request, wire
from tests.support.proxy_service import Rig, proxy

HEADERS = (
    *("Authorization: Bearer plum-1234567890", "Cookie: sid=plum", "X-Auth: plum", "X-Debug: ghp_" + "a1B2" * 9),
    *("Accept: text/plain", "X-Tenant: seven"),
)
LOGIN = b"user=ann&password=plum&page=2"


class Site:
    """An origin that remembers what it was sent."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"(?i)content-length: (\d+)", head)
        body = await reader.readexactly(int(length[1]) if length else 0)
        if "gzip" in head:
            with suppress(gzip.BadGzipFile):
                body = gzip.decompress(body)
        self.seen.append(head + body.decode())
        answer = b'{"access_token": "plum", "page": 2}'
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: sid=plum\r\nX-Page: 2\r\n"
            b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(answer), answer)
        )
        await writer.drain()
        writer.close()


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    made = Site()
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    async with server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield made


@asynccontextmanager
async def recorded(directory: Path) -> AsyncIterator[tuple[Rig, Site, Site]]:
    """A proxy that has seen one login at `home`; `other` is another origin."""
    async with site() as home, site() as other, proxy(directory) as rig:
        form = "Content-Type: application/x-www-form-urlencoded"
        await rig.get(f"{home.url}/login", form, *HEADERS, method="POST", body=LOGIN)
        yield rig, home, other


async def test_a_replay_to_its_own_origin_has_its_secrets(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (rig, home, _):
        done = await rig.service.traffic.replay("1", RequestEdits(url=f"{home.url}/again"))
        assert home.seen[1].count("plum") == 4 and done.notes == []


async def test_a_replay_to_another_port_drops_secrets_and_says_which(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (rig, _, other):
        done = await rig.service.traffic.replay(
            "1", RequestEdits(url=f"{other.url}/login", set_headers={"X-Auth": "my-own"})
        )
        assert "plum" not in other.seen[0] and "ghp_" not in other.seen[0]
        assert "X-Tenant: seven" in other.seen[0] and "user=ann" in other.seen[0] and "X-Auth: my-own" in other.seen[0]
        for name in ("Authorization", "Cookie", "X-Debug", "secrets in the body"):
            assert name in done.notes[0]
        assert "plum" not in done.notes[0]


async def test_only_the_admin_scope_sends_them_elsewhere(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (rig, _, other):
        with pytest.raises(Denied):
            await rig.service.rpc("traffic.replay_with_secrets", {"request_id": "1", "edits": {"url": other.url}})
        await rig.service.traffic.replay_with_secrets("1", RequestEdits(url=f"{other.url}/login"))
        assert other.seen[0].count("plum") == 4


async def test_a_replayed_mark_is_refused_instead_of_sent(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (rig, home, _):
        for edits in (
            RequestEdits(set_headers={"Authorization": "<redacted>"}),
            RequestEdits(body='{"password": "<redacted>", "page": 2}'),
            RequestEdits(body_b64=b"password=%3Credacted%3E"),
            RequestEdits(url=f"{home.url}/login?token=<redacted>&page=2"),
        ):
            with pytest.raises(InvalidInput):
                await rig.service.traffic.replay("1", edits)
        assert len(home.seen) == 1


async def test_map_remote_keeps_credentials_at_home_until_a_person_lets_them_go(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (rig, home, other):
        rules = rig.service.rules
        rule = await rules.add({"kind": "map_remote", "matcher": home.url, "destination": other.url})
        body = gzip.compress(b'{"user": "ann", "password": "plum"}')
        json = ("Content-Type: application/json", "Content-Encoding: gzip")
        secret = "/ghp_" + "a1B2" * 9
        await rig.get(f"{home.url}{secret}/a?token=plum&page=2", *HEADERS, *json, method="POST", body=body)
        assert "plum" not in other.seen[0] and "ghp_" not in other.seen[0]
        assert (
            "/redacted/a?" in other.seen[0]
            and "page=2" in other.seen[0]
            and "X-Tenant: seven" in other.seen[0]
            and '"user": "ann"' in other.seen[0]
        )
        for attempt in (rules.update(rule.id, {"keeps_credentials": True}), rules.add(_keeping(home, other))):
            with pytest.raises(Denied):
                await attempt
        await rules.keep_credentials(rule.id)
        await rig.get(f"{home.url}/b", *HEADERS)
        assert other.seen[1].count("plum") == 3
        await rules.update(rule.id, {"destination": f"{other.url}/elsewhere"})
        await rig.get(f"{home.url}/c", *HEADERS)
        assert "plum" not in other.seen[2]


@pytest.mark.parametrize(
    ("coding", "body", "status"),
    [
        ("gzip", b"not gzip, password=plum", 502),
        ("my-own", b"password=plum", 502),
        ("gzip", gzip.compress(bytes(40_000_000)), 502),
        ("", b"password=plum&rest=" + b"x" * 9_000_000, 413),
    ],
    ids=["broken", "unknown", "large when unpacked", "large"],
)
async def test_a_body_that_cannot_be_searched_for_secrets_does_not_go_elsewhere(
    tmp_path: Path, coding: str, body: bytes, status: int
) -> None:
    async with site() as home, site() as other, proxy(tmp_path) as rig:
        rule = await rig.service.rules.add({"kind": "map_remote", "matcher": home.url, "destination": other.url})
        lines = ["Content-Type: application/x-www-form-urlencoded"]
        lines += [f"Content-Encoding: {coding}"] if coding else []
        reply = await rig.get(f"{home.url}/a", *lines, method="POST", body=body)
        assert (reply.status, b"secrets" in reply.body, other.seen) == (status, True, [])
        await rig.service.rules.keep_credentials(rule.id)
        assert (await rig.get(f"{home.url}/a", *lines, method="POST", body=body)).status == 200


async def test_a_replay_elsewhere_of_a_body_that_cannot_be_unpacked_asks_for_another_body(tmp_path: Path) -> None:
    async with site() as home, site() as other, proxy(tmp_path) as rig:
        lines = ("Content-Type: text/plain", "Content-Encoding: gzip")
        await rig.get(f"{home.url}/a", *lines, method="POST", body=b"not gzip, password=plum")
        with pytest.raises(Conflict):
            await rig.service.traffic.replay("1", RequestEdits(url=other.url))
        await rig.service.traffic.replay("1", RequestEdits(url=f"{other.url}/b", body="mine"))
        assert len(other.seen) == 1 and "plum" not in other.seen[0]


def _keeping(home: Site, other: Site) -> dict[str, Any]:
    return {"kind": "map_remote", "matcher": home.url, "destination": other.url, "keeps_credentials": True}


async def test_a_breakpoint_that_changes_the_origin_drops_them(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (rig, home, other):
        await rig.service.rules.add({"kind": "breakpoint", "matcher": f"{home.url}/held"})
        waiting = asyncio.create_task(rig.get(f"{home.url}/held", *HEADERS))
        (held,) = (await rig.service.breakpoints.wait(30)).held
        done = await rig.service.breakpoints.resume(held.id, url=f"{other.url}/x", set_headers={"X-Mine": "1"})
        await waiting
        assert "plum" not in other.seen[0] and "X-Mine: 1" in other.seen[0] and "Cookie" in done.dropped_headers
        form = "Content-Type: application/x-www-form-urlencoded"
        waiting = asyncio.create_task(rig.get(f"{home.url}/held", form, method="POST", body=LOGIN))
        (held,) = (await rig.service.breakpoints.wait(30)).held
        with pytest.raises(Conflict):
            await rig.service.breakpoints.resume(held.id, url=f"{other.url}/x")
        await rig.service.breakpoints.resume(held.id)
        await waiting
        assert len(other.seen) == 1 and "plum" in home.seen[1]


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        (["Content-Type: application/x-www-form-urlencoded"], b"rest=" + b"x" * 20_000 + b"&password=plum"),
        (["Content-Type: text/plain", "Content-Encoding: my-own"], b"password=plum"),
        (["Content-Type: text/plain", "Content-Encoding: gzip"], b"not gzip, password=plum"),
        (["Content-Type: image/png"], b"\x89PNG\0 password=plum\n"),
    ],
    ids=["behind the sample", "unknown coding", "broken coding", "text in binary"],
)
async def test_a_held_body_that_may_hold_secrets_goes_to_another_origin_only_when_it_is_replaced(
    tmp_path: Path, lines: list[str], body: bytes
) -> None:
    async with site() as home, site() as other, proxy(tmp_path) as rig:
        await rig.service.rules.add({"kind": "breakpoint", "matcher": home.url})
        waiting = asyncio.create_task(rig.get(f"{home.url}/held", *lines, method="POST", body=body))
        (held,) = (await rig.service.breakpoints.wait(30)).held
        with pytest.raises(Conflict):
            await rig.service.breakpoints.resume(held.id, url=f"{other.url}/x")
        await rig.service.breakpoints.resume(held.id, url=f"{other.url}/x", body="mine")
        assert (await waiting).status == 200
        assert len(other.seen) == 1 and "plum" not in other.seen[0]


async def test_without_inspection_a_held_body_does_not_go_to_another_origin(tmp_path: Path) -> None:
    async with site() as home, site() as other, proxy(tmp_path) as rig:
        await rig.service.settings.set_inspect_enabled(False)
        await rig.service.rules.add({"kind": "breakpoint", "matcher": home.url})
        waiting = asyncio.create_task(rig.get(f"{home.url}/held", method="POST", body=LOGIN))
        (held,) = (await rig.service.breakpoints.wait(30)).held
        with pytest.raises(Conflict):
            await rig.service.breakpoints.resume(held.id, url=f"{other.url}/x")
        await rig.service.breakpoints.resume(held.id)
        assert (await waiting).status == 200
        assert other.seen == [] and "plum" in home.seen[0]


async def test_an_upload_that_has_not_ended_does_not_go_to_another_origin(tmp_path: Path) -> None:
    async with site() as home, site() as other, proxy(tmp_path) as rig:
        await rig.service.rules.add({"kind": "breakpoint", "matcher": home.url})
        async with wire(rig.runtime.engine) as line:
            await line.send(request(f"{home.url}/held", "Content-Length: 29", method="POST", body=LOGIN[:9]))
            (held,) = (await rig.service.breakpoints.wait(30)).held
            with pytest.raises(Conflict):
                await rig.service.breakpoints.resume(held.id, url=f"{other.url}/x")
            await rig.service.breakpoints.resume(held.id)
            await line.send(LOGIN[9:])
            assert (await line.reply("POST")).status == 200
        assert other.seen == []


@pytest.mark.parametrize(("trailer", "goes"), [("X-Sum: 1", True), ("Authorization: Bearer plum-1234567890", False)])
async def test_secrets_in_trailers_do_not_go_to_another_origin(tmp_path: Path, trailer: str, goes: bool) -> None:
    async with origin() as home, origin() as other, proxy(tmp_path) as rig:
        await rig.service.rules.add({"kind": "breakpoint", "matcher": home.url("/")})
        async with wire(rig.runtime.engine) as line:
            chunked = f"3\r\nold\r\n0\r\n{trailer}\r\n\r\n".encode()
            await line.send(request(home.url("/a"), "Transfer-Encoding: chunked", method="POST", body=chunked))
            (held,) = (await rig.service.breakpoints.wait(30)).held
            with nullcontext() if goes else pytest.raises(Conflict):
                await rig.service.breakpoints.resume(held.id, url=other.url("/x"))
            if not goes:
                await rig.service.breakpoints.resume(held.id)
            assert (await line.reply("POST")).status == 200
        assert len(other.requests) == goes


async def test_a_held_body_without_secrets_goes_to_another_origin_as_it_is(tmp_path: Path) -> None:
    async with site() as home, site() as other, proxy(tmp_path) as rig:
        await rig.service.rules.add({"kind": "breakpoint", "matcher": home.url})
        body = gzip.compress(b"page=2")
        lines = ("Content-Type: application/x-www-form-urlencoded", "Content-Encoding: gzip")
        waiting = asyncio.create_task(rig.get(f"{home.url}/held", *lines, method="POST", body=body))
        (held,) = (await rig.service.breakpoints.wait(30)).held
        await rig.service.breakpoints.resume(held.id, url=f"{other.url}/x")
        assert (await waiting).status == 200
        assert other.seen[0].endswith("page=2")


async def test_a_mock_for_another_site_leaves_the_secrets_out(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (rig, home, _):
        made = await rig.service.rules.mock("1", "http://elsewhere.test/")
        assert made.warnings and "left out" in made.warnings[-1]
        elsewhere = rig.runtime.book.get(made.id)
        assert isinstance(elsewhere, MockRule) and "plum" not in str(elsewhere) and ("X-Page", "2") in elsewhere.headers
        at_home = await rig.service.rules.mock("1")
        kept = rig.runtime.book.get(at_home.id)
        assert isinstance(kept, MockRule) and "plum" in str(kept)
        with pytest.raises(Conflict):
            await rig.service.rules.update(at_home.id, {"matcher": "http://elsewhere.test/"})
        assert home.seen


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (b"application/json", b'{"password": "plum", "name": "\xff"}'),
        (b"application/json; charset=no-such-thing", b'{"password": "plum"}'),
        (b"application/json; charset=punycode", b'{"password": "plum"}'),
        (b"application/json; charset=idna", b'{"password": "plum..", "name": "\xff"}'),
        (b"application/json; charset=euc-kr", '{"비밀번호": "plum", "name": "한"}'.encode("euc-kr")),
        (b"application/json; charset=utf-16", '{"password": "plum", "name": "한"}'.encode("utf-16")),
        (
            b"multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="password"\r\n\r\nplum\r\n--x\r\n'
            b'Content-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n\x89PNG\xff\r\n--x--\r\n',
        ),
    ],
)
def test_secrets_in_a_body_of_any_charset_stay_at_home_and_the_rest_is_as_it_was(kind: bytes, body: bytes) -> None:
    codec = "utf-16" if b"utf-16" in kind else "latin-1"
    sent = body_without_secrets(body, [(b"Content-Type", kind)]).decode(codec)
    assert "plum" not in sent
    assert re.sub(r"<redacted>(\.\.)?", "plum", sent) == body.decode(codec).replace("plum..", "plum")


@pytest.mark.parametrize(
    ("url", "is_same"),
    [
        ("https://api.test/x", True),
        ("https://API.test:443/", True),
        ("wss://api.test/socket", True),
        ("http://api.test/", False),
        ("https://api.test:8443/", False),
        ("https://api.test@evil.test/", False),
        ("https://api.test.evil.test/", False),
        ("https://evil.test/?https://api.test/", False),
        ("https://api.test./", False),
        ("https://api.test:port/", False),
        ("//api.test/", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, is_same: bool) -> None:
    assert is_same_origin("https://api.test/a?b#c", url) is is_same


def test_a_matcher_answers_for_the_origin_it_names() -> None:
    url = "https://api.test/a"
    assert answers_same_origin("https://api.test/b", url) and answers_same_origin("api.test/b", url)
    for matcher in ("http://api.test/", "/a", "*", "*.test", "test", "evil.test/api.test", "api.test:8443"):
        assert not answers_same_origin(matcher, url)
