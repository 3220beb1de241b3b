"""curl through the decrypting proxy: HTTP/1.1 and HTTP/2 inside CONNECT, and a CA that it does not trust."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proxy.clients.curl import curling
from tests.support.proxy_lab import OURS, started
from tests.support.proxy_site import MIB, pattern_sha256

VERSIONS = ["--http1.1", "--http2"]


def spoken(option: str) -> bytes:
    """What curl says was spoken: HTTP/2 only if the proxy offers it."""
    return b"2" if option == "--http2" and "h2" in OURS.alpn else b"1.1"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_decrypted_request_is_answered_and_recorded(
    version: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    async with curling(program, tmp_path) as (here, curl):
        url = here.url("/hello", "https")
        out = await curl.ok(version, "--cacert", str(here.ca_file), "-w", "[%{http_version} %{ssl_verify_result}]", url)
        assert out == b"0123456789[%b 0]" % spoken(version)
        flow = await here.flow("/hello")
        assert (flow.url, flow.status, flow.response_body.sample) == (url, 200, b"0123456789")
        assert flow.tls is not None and flow.tls.sni == "localhost" and flow.tls.problem is None


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_upload_arrives_whole(
    version: str,
    program: Callable[[str], str],
    tmp_path: Path,
    upload: Path,
) -> None:
    async with curling(program, tmp_path) as (here, curl):
        url = here.url("/echo", "https")
        out = await curl.ok(version, "--cacert", str(here.ca_file), "--data-binary", f"@{upload}", url)
        assert json.loads(out)["sha256"] == hashlib.sha256(upload.read_bytes()).hexdigest()
        assert (await here.flow("/echo")).request_body.size_bytes == 3 * MIB


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_answer_that_comes_during_the_upload_is_delivered(
    version: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    async with curling(program, tmp_path) as (here, curl):
        large = tmp_path / "large.bin"
        large.write_bytes(bytes(30 * MIB))
        words = [version, "--cacert", str(here.ca_file), "-H", "Expect:", "-w", "[%{http_code}]", "-T", str(large)]
        assert (await curl(*words, here.url("/refuse", "https"))).out == b"no\n[413]"
        flow = await here.flow("/refuse")
        assert (flow.status, flow.error) == (413, None)


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_event_arrives_before_the_stream_ends(
    version: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    async with curling(program, tmp_path) as (here, curl):
        words = [*curl.words, version, "--cacert", str(here.ca_file), "-N", here.url("/events", "https")]
        async with started(words) as process:
            assert process.stdout is not None
            assert await process.stdout.readuntil(b"\n\n") == b"data: one\n\n"
            here.site.release.set()
            assert await process.stdout.read() == b"data: two\n\n"
            assert await process.wait() == 0
        assert (await here.flow("/events")).response_body.outcome == "complete"


@pytest.mark.parametrize(("scheme", "version"), [("http", "--http1.1"), ("https", "--http1.1"), ("https", "--http2")])
async def test_a_big_download_is_the_same_to_the_last_byte(
    scheme: str, version: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    async with curling(program, tmp_path) as (here, curl):
        file = tmp_path / "got"
        await curl.ok(version, "--cacert", str(here.ca_file), "-o", str(file), here.url("/big?64", scheme))
        with file.open("rb") as got:
            assert hashlib.file_digest(got, "sha256").hexdigest() == pattern_sha256(64)
        flow = await here.flow("/big")
        assert (flow.response_body.size_bytes, flow.response_body.outcome) == (64 * MIB, "complete")


@pytest.mark.parametrize("version", VERSIONS)
async def test_parallel_requests_share_what_they_can(
    version: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    async with curling(program, tmp_path) as (here, curl):
        url = here.url("/hello", "https")
        out = await curl.ok(version, "--cacert", str(here.ca_file), "-Z", "--parallel-max", "8", *[url] * 40)
        assert out == b"0123456789" * 40
        await here.memory.flow(40)
        assert {flow.status for flow in here.memory.done} == {200}


async def test_a_client_without_our_ca_is_told_and_so_are_we(program: Callable[[str], str], tmp_path: Path) -> None:
    async with curling(program, tmp_path) as (here, curl):
        ran = await curl("--cacert", str(here.origin_ca_file), here.url("/hello", "https"))
        assert ran.code == 60 and ran.out == b"", ran
        assert "certificate" in ran.errors
        flow = await here.memory.flow()
        assert (flow.method, flow.event, flow.is_encrypted) == ("CONNECT", "tunnel", True)
        assert flow.tls is not None and flow.tls.sni == "localhost"
        assert (flow.tls.problem or "").startswith("tls_client_rejected") and "UNKNOWN_CA" in (flow.tls.problem or "")
        assert flow.error == flow.tls.problem
        assert here.engine.pinned_hosts == {"localhost"}
        assert here.secure.requests == [] and here.secure.connections == 0


async def test_an_origin_that_is_not_there_is_502_inside_the_tunnel(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    async with curling(program, tmp_path) as (here, curl):
        out = await curl.ok("--cacert", str(here.ca_file), "-w", "[%{http_code}]", "https://localhost:1/")
        assert out.endswith(b"[502]") and b"cannot connect to localhost:1" in out
        assert (await here.memory.flow()).event == "upstream_error"
