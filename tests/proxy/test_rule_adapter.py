"""Rules added while the proxy runs, seen by a real client at its next request."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dari.errors import Denied, Failed, InvalidInput
from tests.support.origins.origin import OK, answering, origin
from tests.support.proxy_engine import request, tunnel, wire
from tests.support.proxy_service import proxy
from tests.support.waiting import until


def ok(body: bytes, *headers: str) -> bytes:
    lines = "".join(f"{line}\r\n" for line in headers)
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body


async def test_every_kind_takes_effect_on_an_open_connection(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig, wire(rig.runtime.engine) as client:
        url = site.url("/a")
        assert (await client.get(url)).status == 200
        await rig.service.rules.add_map_local_text(url, "here", status_code=201)
        reply = await client.get(url)
        assert (reply.status, reply.body, reply.header("x-crab-mitm")) == (201, b"here", "map_local")
        await rig.service.rules.add_status_rewrite(url, to_status_code=503, from_status_code=201)
        reply = await client.get(url)
        assert reply.status == 503
        assert reply.header("x-crab-mitm-status-rewrite") == "201 Created->503 Service Unavailable"
        assert (await rig.service.rules.remove_map_local(url)).removed == 1
        assert (await client.get(url)).status == 200
        await rig.service.rules.clear()
        assert (await client.get(url)).body == b"ok"
        assert site.connections == 1 and len(site.requests) == 3


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_a_rule_applies_to_plain_requests_in_a_tunnel_to_its_host_without_a_ca(
    tmp_path: Path, scheme: str
) -> None:
    async with origin() as site, origin() as other, proxy(tmp_path) as rig:
        await rig.service.rules.add_map_local_text(f"{scheme}://{site.authority}/", "here")
        async with tunnel(rig.runtime.engine, site.authority) as client:
            await client.send(f"GET /x HTTP/1.1\r\nHost: {site.authority}\r\n\r\n".encode())
            assert (await client.reply()).body == b"here"
        async with tunnel(rig.runtime.engine, site.authority) as client:
            await client.send(b"\x16\x03\x01 not HTTP")
            await client.send(b"\r\n\r\n")
            await until(lambda: site.received.endswith(b"\r\n\r\n"))
            assert site.received.startswith(b"\x16\x03\x01"), "TLS is passed on unread: the rule is for http"
        async with tunnel(rig.runtime.engine, other.authority) as client:
            await client.send(f"GET /x HTTP/1.1\r\nHost: {other.authority}\r\n\r\n".encode())
            assert (await client.reply()).body == b"ok"
        entries = [(one.method, one.event) for one in (await rig.service.traffic.tail()).entries]
        assert entries.count(("GET", "map_local")) == 1 and ("GET", "upstream") not in entries


async def test_the_traffic_shows_the_rewritten_status_and_the_rule_counts_its_hits(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.service.rules.add_status_rewrite(site.url("/"), to_status_code=418)
        assert (await rig.get(site.url("/tea"))).status == 418
        page = await rig.service.traffic.tail()
        assert page.entries[0].status == 418
        shown = await rig.service.traffic.show(page.entries[0].request_id, ["status", "upstream_status", "rule_ids"])
        assert shown.flow == {"id": 1, "status": 418, "upstream_status": 200, "rule_ids": ["r1"]}
        assert (await rig.service.rules.list()).rules[0].hits == 1


async def test_map_remote_sends_the_request_elsewhere_with_its_query(tmp_path: Path) -> None:
    async with origin() as here, origin(answering(ok(b"there"))) as there, proxy(tmp_path) as rig:
        await rig.service.rules.add_map_remote(here.url("/old"), there.url("/new"))
        assert (await rig.get(here.url("/old/path?x=1"))).body == b"there"
        seen = there.requests[0]
        assert seen.head.startswith(b"GET /new/path?x=1 ") and seen.header("host") == there.authority
        assert here.requests == []
        entry = (await rig.service.traffic.tail()).entries[0]
        assert (entry.event, entry.map_remote_to) == ("map_remote", there.url("/new/path?x=1"))


async def test_headers_and_bodies_are_edited_both_ways(tmp_path: Path) -> None:
    async with origin(answering(ok(b"hello world"))) as site, proxy(tmp_path) as rig:
        add = rig.service.rules.add
        edits = [{"action": "set", "name": "X-Who", "value": "me"}, {"action": "remove", "name": "X-Gone"}]
        await add({"kind": "header_rewrite", "matcher": site.url("/"), "edits": edits})
        seen = [{"action": "add", "name": "X-Seen", "value": "1"}]
        await add({"kind": "header_rewrite", "matcher": site.url("/"), "edits": seen, "on": "response"})
        await add({"kind": "body_replace", "matcher": site.url("/"), "find": "world", "text": "there"})
        await add({"kind": "body_replace", "matcher": site.url("/"), "find": "a", "text": "b", "on": "request"})
        reply = await rig.get(site.url("/"), "X-Gone: 1", method="POST", body=b"banana")
        assert (reply.body, reply.header("x-seen")) == (b"hello there", "1")
        got = site.requests[0]
        assert (got.body, got.header("x-who"), got.header("x-gone")) == (b"bbnbnb", "me", None)


async def test_a_compressed_body_is_edited_as_text_and_stays_compressed(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"price": 10}')
    async with origin(answering(ok(packed, "Content-Encoding: gzip"))) as site, proxy(tmp_path) as rig:
        await rig.service.rules.add({"kind": "body_replace", "matcher": site.url("/"), "find": "10", "text": "99"})
        reply = await rig.get(site.url("/"))
        assert reply.header("content-encoding") == "gzip"
        assert gzip.decompress(reply.body) == b'{"price": 99}'


async def test_a_body_that_is_not_what_its_header_says_is_left_alone(tmp_path: Path) -> None:
    async with origin(answering(ok(b"no gzip 10", "Content-Encoding: gzip"))) as site, proxy(tmp_path) as rig:
        await rig.service.rules.add({"kind": "body_replace", "matcher": site.url("/"), "find": "10", "text": "99"})
        assert (await rig.get(site.url("/"))).body == b"no gzip 10"


async def test_block_and_fault_keep_the_origin_out(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.service.rules.add({"kind": "block", "matcher": site.url("/no"), "status_code": 451})
        await rig.service.rules.add({"kind": "fault", "matcher": site.url("/rst"), "mode": "reset"})
        assert (await rig.get(site.url("/no"))).status == 451
        with pytest.raises((ConnectionError, EOFError)):
            await rig.get(site.url("/rst"))
        assert site.requests == []


async def test_a_method_and_a_regex_narrow_a_rule(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        rule = {"kind": "block", "matcher": r"/users/\d+$", "matcher_kind": "regex", "method": "DELETE"}
        await rig.service.rules.add(rule)
        assert (await rig.get(site.url("/users/12"), method="DELETE")).status == 403
        assert (await rig.get(site.url("/users/12"))).status == 200
        assert (await rig.get(site.url("/users/me"), method="DELETE")).status == 200


async def test_a_recorded_response_becomes_a_mock(tmp_path: Path) -> None:
    packed = gzip.compress(b"from the origin")
    headers = ("Content-Encoding: gzip", "X-Kept: yes")
    async with origin(answering(ok(packed, *headers), OK)) as site, proxy(tmp_path) as rig:
        await rig.get(site.url("/data?page=1"))
        made = await rig.service.rules.mock("1")
        reply = await rig.get(site.url("/data?page=2"))
        assert (reply.body, reply.header("x-kept")) == (b"from the origin", "yes")
        assert (made.kind, made.method, len(site.requests)) == ("mock", "GET", 1)


async def test_a_disabled_rule_rests_and_comes_back(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        added = await rig.service.rules.add({"kind": "block", "matcher": site.url("/")})
        await rig.service.rules.update(added.id, {"enabled": False})
        assert (await rig.get(site.url("/"))).status == 200
        await rig.service.rules.update(added.id, {"enabled": True, "status_code": 410})
        assert (await rig.get(site.url("/"))).status == 410
        await rig.service.rules.remove(added.id)
        assert (await rig.get(site.url("/"))).status == 200


async def test_what_the_allow_list_leaves_out_is_proxied_silently(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.service.rules.add_allow("example.test")
        await rig.service.rules.add({"kind": "block", "matcher": site.url("/")})
        assert (await rig.get(site.url("/"))).status == 200
        assert (await rig.service.traffic.tail()).entries == []
        why = await rig.service.rules.test(site.url("/"))
        assert not why.is_recorded and any("allow rule" in hint for hint in why.hints)


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ({"kind": "bloc", "matcher": "/"}, "bloc"),
        ({"matcher": "/"}, "None"),
        ({"kind": "block", "matcher": "/", "status": 1}, "status"),
        ({"kind": "block"}, "matcher"),
        ({"kind": "delay", "matcher": "/", "delay_ms": "soon"}, "delay_ms"),
        ({"kind": "block", "matcher": "/", "status_code": 99}, "99"),
    ],
)
async def test_a_wrong_rule_is_refused_with_its_member_named(
    tmp_path: Path, rule: dict[str, object], word: str
) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        with pytest.raises(InvalidInput) as caught:
            await rig.service.rules.add(rule)
        assert word in caught.value.message
        assert (await rig.service.rules.list()).rules == []


async def test_a_file_is_served_as_it_is_now(tmp_path: Path) -> None:
    page = tmp_path / "page.json"
    page.write_text('{"v": 1}')
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.service.rules.add_map_local_file(site.url("/"), str(page))
        first = await rig.get(site.url("/"))
        page.write_text('{"v": 22}')
        assert (first.body, first.header("content-type")) == (b'{"v": 1}', "application/json")
        assert (await rig.get(site.url("/"))).body == b'{"v": 22}'


async def test_a_file_out_of_bounds_is_refused_when_added_and_when_it_becomes_so(tmp_path: Path) -> None:
    secret = tmp_path / ".ssh" / "id"
    secret.parent.mkdir()
    secret.write_text("key")
    link = tmp_path / "page.txt"
    link.write_text("harmless")
    async with origin() as site, proxy(tmp_path) as rig:
        for path in (str(secret), "/etc/hostname", "page.txt", f"{tmp_path}/../etc/passwd"):
            with pytest.raises(Denied):
                await rig.service.rules.add_map_local_file(site.url("/"), path)
        with pytest.raises(Failed):
            await rig.service.rules.add_map_local_file(site.url("/"), str(tmp_path / "missing"))
        await rig.service.rules.add_map_local_file(site.url("/"), str(link))
        assert (await rig.get(site.url("/"))).body == b"harmless"
        link.unlink()
        link.symlink_to(secret)
        assert (await rig.get(site.url("/"))).status == 502
        with pytest.raises(Denied):
            await rig.service.rules.update("r1", {"source": {"kind": "file", "value": "/etc/hostname"}})


async def test_pipelined_requests_see_the_rules_of_their_moment(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig, wire(rig.runtime.engine) as client:
        await rig.service.rules.add_map_local_text(site.url("/x"), "x")
        await client.send(request(site.url("/x")) + request(site.url("/y")))
        assert [(await client.reply()).body for _ in range(2)] == [b"x", b"ok"]
