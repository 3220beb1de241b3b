"""curl through the proxy over plain HTTP: versions, framing, uploads, events, tunnels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proxy.clients.curl import curling
from tests.support.proxy_lab import started
from tests.support.proxy_site import MIB, pattern_sha256
from tests.support.waiting import until


async def test_http_1_0_gets_the_body_without_chunks(program: Callable[[str], str], tmp_path: Path) -> None:
    async with curling(program, tmp_path) as (here, curl):
        assert await curl.ok("--http1.0", here.url("/chunked")) == b"three chunks"
        assert await curl.ok("--http1.0", here.url("/hello")) == b"0123456789"
        flow = await here.flow("/chunked")
        assert (flow.http_version, flow.status, flow.response_body.size_bytes) == ("1.0", 200, 12)


async def test_http_1_1_keeps_its_connection(program: Callable[[str], str], tmp_path: Path) -> None:
    async with curling(program, tmp_path) as (here, curl):
        out = await curl.ok("--http1.1", "-w", "[%{http_version} %{num_connects}]", *[here.url("/hello")] * 3)
        assert out == b"0123456789[1.1 1]0123456789[1.1 0]0123456789[1.1 0]"
        assert here.plain.connections == 1
        assert [flow.status for flow in here.memory.done] == [200, 200, 200]


async def test_a_chunked_upload_arrives_whole(program: Callable[[str], str], tmp_path: Path, upload: Path) -> None:
    async with curling(program, tmp_path) as (here, curl):
        out = await curl.ok("-H", "Transfer-Encoding: chunked", "--data-binary", f"@{upload}", here.url("/echo"))
        seen = json.loads(out)
        assert (seen["size"], seen["sha256"]) == (3 * MIB, hashlib.sha256(upload.read_bytes()).hexdigest())
        assert ["transfer-encoding", "chunked"] in seen["headers"]
        flow = await here.flow("/echo")
        assert (flow.request_body.size_bytes, flow.request_body.outcome) == (3 * MIB, "complete")


async def test_an_upload_waits_for_100_continue(program: Callable[[str], str], tmp_path: Path, upload: Path) -> None:
    async with curling(program, tmp_path) as (here, curl):
        # Longer than the test's own limit: without the origin's 100 it fails.
        waits = ["-v", "-H", "Expect: 100-continue", "--expect100-timeout", "600"]
        ran = await curl(*waits, "-T", str(upload), here.url("/echo"))
        assert ran.code == 0 and json.loads(ran.out)["size"] == 3 * MIB
        assert ran.errors.count("< HTTP/1.1 100 Continue") == 1
        assert (await here.flow("/echo")).method == "PUT"


async def test_an_upload_that_is_refused_is_not_sent(
    program: Callable[[str], str], tmp_path: Path, upload: Path
) -> None:
    async with curling(program, tmp_path) as (here, curl):
        waits = ["-H", "Expect: 100-continue", "--expect100-timeout", "600", "-w", "[%{http_code} %{size_upload}]"]
        assert await curl.ok(*waits, "-T", str(upload), here.url("/refuse")) == b"no\n[413 0]"
        flow = await here.flow("/refuse")
        assert (flow.status, flow.request_body.size_bytes) == (413, 0)


async def test_an_event_arrives_before_the_stream_ends(program: Callable[[str], str], tmp_path: Path) -> None:
    async with curling(program, tmp_path) as (here, curl):
        async with started([*curl.words, "-N", here.url("/events")]) as process:
            assert process.stdout is not None
            assert await process.stdout.readuntil(b"\n\n") == b"data: one\n\n"
            assert here.memory.done == []
            here.site.release.set()
            assert await process.stdout.read() == b"data: two\n\n"
            assert await process.wait() == 0
        assert (await here.flow("/events")).response_body.sample == b"data: one\n\ndata: two\n\n"


async def test_raw_shows_the_chunks_and_the_trailer_of_the_origin(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    async with curling(program, tmp_path) as (here, curl):
        out = await curl.ok("--raw", here.url("/chunked"))
        assert out == b"5\r\nthree\r\n1\r\n \r\n6\r\nchunks\r\n0\r\nX-Sum: 12\r\n\r\n"
        assert (await here.flow("/chunked")).response_body.trailers == [(b"X-Sum", b"12")]


async def test_plain_http_inside_a_tunnel_is_read(program: Callable[[str], str], tmp_path: Path) -> None:
    async with curling(program, tmp_path) as (here, curl):
        assert await curl.ok("--proxytunnel", here.url("/hello")) == b"0123456789"
        flow = await here.flow("/hello")
        assert (flow.method, flow.url) == ("GET", here.url("/hello"))


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_tunnel_that_is_not_decrypted_is_one_flow(
    scheme: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    async with curling(program, tmp_path, decrypts=False) as (here, curl):
        url = here.url("/hello", scheme)
        # The origin's own certificate reaches curl.
        assert await curl.ok("--proxytunnel", "--cacert", str(here.origin_ca_file), url) == b"0123456789"
        flow = await here.memory.flow()
        assert (flow.event, flow.method, flow.is_encrypted) == ("tunnel", "CONNECT", True)
        assert flow.response_body.size_bytes > 10
        assert flow.tls is not None and flow.tls.problem == "no rule asks for it"


async def test_head_has_a_length_and_no_body(program: Callable[[str], str], tmp_path: Path) -> None:
    async with curling(program, tmp_path) as (here, curl):
        out = await curl.ok("-I", here.url("/hello"), here.url("/chunked"), "-w", "[%{num_connects}]")
        assert out.count(b"HTTP/1.1 200 OK") == 2
        assert b"Content-Length: 10" in out and b"[1]" in out and out.endswith(b"[0]")
        assert (await here.flow("/hello")).response_body.size_bytes == 0


async def test_parallel_downloads_are_each_whole(program: Callable[[str], str], tmp_path: Path) -> None:
    async with curling(program, tmp_path) as (here, curl):
        words = [part for n in range(20) for part in ("-o", str(tmp_path / f"got{n}"), here.url(f"/big?{n % 4 + 1}"))]
        await curl.ok("-Z", "--parallel-max", "10", *words)
        for n in range(20):
            digest = hashlib.sha256((tmp_path / f"got{n}").read_bytes()).hexdigest()
            assert digest == pattern_sha256(n % 4 + 1), n
        await here.memory.flow(20)
        assert sorted(flow.response_body.size_bytes for flow in here.memory.done) == sorted(
            [MIB, 2 * MIB, 3 * MIB, 4 * MIB] * 5
        )


async def test_what_is_for_the_proxy_never_reaches_the_origin(program: Callable[[str], str], tmp_path: Path) -> None:
    async with curling(program, tmp_path) as (here, curl):
        trusts = ["--cacert", str(here.ca_file), "--http1.1"]
        secrets = [
            "-U",
            "someone:swordfish",
            "--proxy-header",
            "X-Proxy-Only: swordfish",
            "-H",
            "Connection: X-Hop",
            "-H",
            "X-Hop: swordfish",
        ]
        for words in ([here.url("/echo")], ["--proxytunnel", here.url("/echo")], [*trusts, here.url("/echo", "https")]):
            seen = json.loads(await curl.ok(*secrets, *words))
            names = {name for name, _ in seen["headers"]}
            assert not names & {"proxy-authorization", "proxy-connection", "x-hop"}, names
        assert b"swordfish" not in here.plain.received.replace(b"X-Proxy-Only: swordfish", b"")
        assert b"swordfish" not in here.secure.received


async def test_a_download_that_is_cut_off_ends_its_flow(program: Callable[[str], str], tmp_path: Path) -> None:
    async with curling(program, tmp_path) as (here, curl):
        async with started([*curl.words, here.url("/endless")]) as process:
            assert process.stdout is not None
            await process.stdout.readexactly(100_000)
            process.kill()
        flow = await here.memory.flow()
        assert flow.error == "the client closed the connection" and flow.response_body.outcome == "error"
        await until(lambda: here.site.has_ended_early == ["/endless"])
