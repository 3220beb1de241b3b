"""The HTTP clients that Python programs use, each with its own idea of a proxy: httpx, requests, urllib."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import requests

from tests.support.proxy_lab import Lab, lab
from tests.support.proxy_site import MIB, pattern, pattern_sha256

SCHEMES = ["http", "https"]
BODY = b"".join(map(pattern, range(2)))
DIGEST = hashlib.sha256(BODY).hexdigest()


def trusting(file: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(file))


def httpx_client(here: Lab) -> httpx.AsyncClient:
    return httpx.AsyncClient(proxy=here.proxy_url, verify=trusting(here.ca_file), trust_env=False, timeout=20)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_httpx_sends_streams_and_keeps_its_connection(scheme: str, tmp_path: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(BODY), 50_000):
            yield BODY[start : start + 50_000]

    async with lab(tmp_path) as here:
        async with httpx_client(here) as client:
            assert (await client.get(here.url("/hello", scheme))).text == "0123456789"
            seen = (await client.post(here.url("/echo", scheme), content=pieces())).json()
            assert (seen["size"], seen["sha256"]) == (len(BODY), DIGEST)
            assert ["transfer-encoding", "chunked"] in seen["headers"]
            assert (await client.get(here.url("/chunked", scheme))).text == "three chunks"
            assert (await client.head(here.url("/hello", scheme))).headers["content-length"] == "10"
        assert here.there(scheme).connections == 1
        await here.memory.flow(4)
        assert [flow.target for flow in here.memory.done] == ["/hello", "/echo", "/chunked", "/hello"]
        assert {flow.scheme for flow in here.memory.done} == {scheme}


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_httpx_reads_an_event_before_the_stream_ends(scheme: str, tmp_path: Path) -> None:
    async with lab(tmp_path) as here, httpx_client(here) as client:
        async with client.stream("GET", here.url("/events", scheme)) as response:
            lines = response.aiter_lines()
            assert await anext(lines) == "data: one"
            assert here.memory.done == []
            here.site.release.set()
            assert [line async for line in lines] == ["", "data: two", ""]
        await here.flow("/events")


async def test_httpx_over_http2_sends_its_requests_side_by_side(tmp_path: Path) -> None:
    options = {"proxy": "", "http2": True, "http1": False, "trust_env": False, "timeout": 20}
    async with lab(tmp_path) as here:
        options |= {"proxy": here.proxy_url, "verify": trusting(here.ca_file)}
        async with httpx.AsyncClient(**options) as client:  # type: ignore[arg-type]
            # The first request opens the connection that all others find.
            url = here.url("/echo", "https")
            await client.get(url)
            replies = await asyncio.gather(*(client.post(url, content=BODY[: n * 10_000]) for n in range(20)))
            assert {reply.http_version for reply in replies} == {"HTTP/2"}
            assert [reply.json()["size"] for reply in replies] == [n * 10_000 for n in range(20)]
            async with client.stream("GET", here.url("/events", "https")) as events:
                lines = events.aiter_lines()
                assert await anext(lines) == "data: one"
                assert (await client.get(here.url("/hello", "https"))).text == "0123456789"
                here.site.release.set()
                assert [line async for line in lines] == ["", "data: two", ""]
        await here.memory.flow(23)
        assert {(flow.http_version, flow.status, flow.error) for flow in here.memory.done} == {("2", 200, None)}
        assert len({flow.peer for flow in here.memory.done}) == 1


async def test_httpx_that_does_not_trust_our_ca_says_so(tmp_path: Path) -> None:
    async with lab(tmp_path) as here:
        async with httpx.AsyncClient(proxy=here.proxy_url, trust_env=False, timeout=20) as client:
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await client.get(here.url("/hello", "https"))
        flow = await here.memory.flow()
        assert flow.tls is not None and "tls_client_rejected" in (flow.tls.problem or "")
        assert here.secure.connections == 0


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_requests_uploads_and_downloads(scheme: str, tmp_path: Path) -> None:
    def talk(here: Lab) -> None:
        def pieces() -> Iterator[bytes]:
            yield BODY[:MIB]
            yield BODY[MIB:]

        with requests.Session() as session:
            session.trust_env = False
            session.proxies = {"http": here.proxy_url, "https": here.proxy_url}
            session.verify = str(here.ca_file)
            assert session.get(here.url("/hello", scheme), timeout=20).text == "0123456789"
            for body in (BODY, io.BytesIO(BODY), pieces()):
                seen = session.post(here.url("/echo", scheme), data=body, timeout=20).json()
                assert (seen["size"], seen["sha256"]) == (len(BODY), DIGEST)
            with session.get(here.url("/big?8", scheme), stream=True, timeout=20) as response:
                total = hashlib.sha256()
                for block in response.iter_content(65536):
                    total.update(block)
            assert total.hexdigest() == pattern_sha256(8)

    async with lab(tmp_path) as here:
        await asyncio.to_thread(talk, here)
        assert here.there(scheme).connections == 1
        assert (await here.flow("/big")).response_body.size_bytes == 8 * MIB
        assert [flow.status for flow in here.memory.done] == [200] * 5


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_urllib_opens_a_connection_per_request(scheme: str, tmp_path: Path) -> None:
    def talk(here: Lab) -> None:
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"http": here.proxy_url, "https": here.proxy_url}),
            urllib.request.HTTPSHandler(context=trusting(here.ca_file)),
        )
        for _ in range(2):
            with opener.open(here.url("/chunked", scheme), timeout=20) as response:
                assert response.read() == b"three chunks"
        with opener.open(here.url("/echo", scheme), data=BODY, timeout=20) as response:
            assert json.loads(response.read())["sha256"] == DIGEST
        with pytest.raises(urllib.error.HTTPError) as missing:
            opener.open(here.url("/nothing", scheme), timeout=20)
        missing.value.close()
        assert missing.value.code == 404

    async with lab(tmp_path) as here:
        await asyncio.to_thread(talk, here)
        await here.memory.flow(4)
        assert [flow.status for flow in here.memory.done] == [200, 200, 200, 404]
        assert len({flow.peer for flow in here.memory.done}) == 4
