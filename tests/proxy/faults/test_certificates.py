"""Origins with certificates that nobody should trust, seen by httpx: 502 with the reason, and a way to allow them."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest

from dari.proxy.ca import CertificateAuthority
from tests.proxy.faults.stage import Stage, stage, trusting
from tests.support.origins.certificates import expired, self_signed, wrong_name
from tests.support.origins.origin import Line
from tests.support.proxy_engine import FAST
from tests.support.proxy_lab import THEIRS


def unknown_issuer(_: CertificateAuthority) -> ssl.SSLContext:
    return CertificateAuthority.generate("somebody else's CA").context_for("localhost")


BAD = [
    (self_signed, "self-signed certificate"),
    (expired, "certificate has expired"),
    (wrong_name, "Hostname mismatch"),
    (unknown_issuer, "self-signed certificate in certificate chain"),
]


def client(here: Stage) -> httpx.AsyncClient:
    assert here.engine.address is not None
    proxy = f"http://127.0.0.1:{here.engine.address[1]}"
    return httpx.AsyncClient(proxy=proxy, verify=trusting(), trust_env=False, timeout=20)


@pytest.mark.parametrize(("make", "reason"), BAD)
async def test_a_certificate_that_cannot_be_trusted_is_502_until_its_host_is_named_insecure(
    make: Callable[[CertificateAuthority], ssl.SSLContext], reason: str
) -> None:
    async with stage("https", tls=make(THEIRS)) as here, client(here) as http:
        url = f"https://{here.authority}/"
        refused = await http.get(url)
        assert refused.status_code == 502 and reason in refused.text
        flow = await here.memory.flow()
        assert (flow.status, flow.event) == (502, "upstream_error")
        assert flow.tls is not None and reason in (flow.tls.problem or "") and reason in (flow.error or "")
        assert here.there.requests == []

        await here.engine.apply(replace(here.engine._config, insecure_hosts=frozenset(("elsewhere", "localhost"))))
        assert (await http.get(url)).text == "ok"
        flow = await here.memory.flow(2)
        assert (flow.status, flow.error) == (200, None)

        # What was allowed is closed again with the setting, the pooled connection included.
        await here.engine.apply(replace(here.engine._config, insecure_hosts=frozenset()))
        assert (await http.get(url)).status_code == 502
        assert len(here.there.requests) == 1


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x28"])
async def test_an_origin_that_breaks_the_handshake_is_502(says: bytes) -> None:
    async def handle(line: Line) -> None:
        await line.reader.readexactly(1)
        await line.say(says)

    # The origin speaks no TLS: its stage is plain, the request is for https all the same.
    async with stage("http", handle) as here, client(here) as http:
        reply = await http.get(f"https://{here.authority}/")
        assert reply.status_code == 502, reply.text
        flow = await here.memory.flow()
        assert (flow.scheme, flow.status, flow.event) == ("https", 502, "upstream_error") and flow.error


async def test_an_origin_that_never_answers_the_handshake_is_504() -> None:
    async def handle(line: Line) -> None:
        await line.reader.read()

    async with stage("http", handle, replace(FAST, connect_timeout_s=0.3)) as here, client(here) as http:
        reply = await http.get(f"https://{here.authority}/")
        assert reply.status_code == 504 and "within 0.3 s" in reply.text
        assert (await here.memory.flow()).status == 504
