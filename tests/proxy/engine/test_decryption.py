"""HTTPS decrypted: real clients that trust our CA and nothing else, origins whose certificates are checked."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.hooks import NoRules
from dari.proxy.engine.listener import ProxyEngine
from tests.support.origins.certificates import expired, self_signed, wrong_name
from tests.support.origins.origin import Line, answering, origin
from tests.support.origins.relay import relay
from tests.support.proxy_engine import FAST, Memory, Wire, proxy, tunnel

OURS = CertificateAuthority.generate()
THEIRS = CertificateAuthority.generate("the origin's CA")
# Its origins speak HTTP/1.1 only, and say so.
THEIRS.alpn = ["http/1.1"]
CURL = shutil.which("curl")
GET = b"GET /secret HTTP/1.1\r\nHost: localhost\r\n\r\n"


def trusting(authority: CertificateAuthority) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.load_verify_locations(cadata=authority.pem.decode())
    return context


@asynccontextmanager
async def decrypting(
    tmp_path: Path, memory: Memory | None = None, config: EngineConfig = FAST, **ports: Any
) -> AsyncIterator[ProxyEngine]:
    """An engine that decrypts everything and trusts the origins' CA."""
    roots = tmp_path / "roots.pem"
    roots.write_bytes(THEIRS.pem)
    ports = {"rules": NoRules(True), "authority": OURS, **ports}
    async with proxy(replace(config, ca_file=str(roots)), memory, **ports) as engine:
        yield engine


async def curl(engine: ProxyEngine, url: str, *options: str) -> bytes:
    """Its output and the status at the end."""
    assert CURL is not None and engine.address is not None
    process = await asyncio.create_subprocess_exec(
        CURL, "-sS", "--max-time", "10", "-x", f"http://127.0.0.1:{engine.address[1]}", "--noproxy", "",
        "-w", "%{http_code}", *options, url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    return (await process.communicate())[0]


async def secured(line: Wire, name: str = "localhost") -> None:
    await line.start_tls(trusting(OURS), name)


async def test_a_decrypted_request_is_seen_and_answered(tmp_path: Path) -> None:
    memory = Memory()
    async with origin(tls=THEIRS.context_for("localhost")) as there, decrypting(tmp_path, memory) as engine:
        async with tunnel(engine, f"localhost:{there.port}") as line:
            await secured(line)
            for _ in range(3):
                await line.send(GET)
                assert (await line.reply()).body == b"ok"
        assert there.connections == 1
        flow = await memory.flow(3)
        assert flow.url == "https://localhost/secret"
        assert flow.tls is not None and flow.tls.sni == "localhost"
        assert flow.tls.client_version == flow.tls.upstream_version == "TLSv1.3"


async def test_a_client_that_is_slow_to_begin_is_decrypted_all_the_same(tmp_path: Path) -> None:
    """After a silence the origin is dialled, since it may speak first; it does not, so nothing is decided yet."""
    memory = Memory()
    config = replace(FAST, sniff_s=0.01)
    async with origin(tls=THEIRS.context_for("localhost")) as there, relay(there.port) as door:
        async with decrypting(tmp_path, memory, config) as engine:
            async with tunnel(engine, f"localhost:{door.port}") as line:
                await door.has_opened.wait()
                await secured(line)
                await line.send(GET)
                assert (await line.reply()).body == b"ok"
            assert (await memory.flow()).url == "https://localhost/secret"


async def test_the_next_connection_to_an_origin_resumes_its_tls_session(tmp_path: Path) -> None:
    resumed: list[bool] = []

    async def handle(line: Line) -> None:
        resumed.append(line.writer.get_extra_info("ssl_object").session_reused)
        await answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", closes=True)(line)

    memory = Memory()
    async with origin(handle, THEIRS.context_for("localhost")) as there, decrypting(tmp_path, memory) as engine:
        for count in range(1, 4):
            async with tunnel(engine, f"localhost:{there.port}") as line:
                await secured(line)
                await line.send(GET)
                assert (await line.reply()).body == b"ok"
            flow = await memory.flow(count)
            assert flow.tls is not None
            assert (flow.tls.upstream_version, flow.tls.upstream_subject) == ("TLSv1.3", "localhost")
        assert resumed == [False, True, True]
        await engine.apply(replace(engine._config, response_timeout_s=29.0))
        async with tunnel(engine, f"localhost:{there.port}") as line:
            await secured(line)
            await line.send(GET)
            await line.reply()
        assert resumed[-1] is False  # other settings, other trust


async def test_large_bodies_pass_both_ways(tmp_path: Path) -> None:
    body = bytes(range(256)) * 8000
    data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    tls = THEIRS.context_for("localhost")
    async with origin(answering(data), tls) as there, decrypting(tmp_path) as engine:
        async with tunnel(engine, f"localhost:{there.port}") as line:
            await secured(line)
            head = b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
            sending = asyncio.create_task(line.send(head, body))
            assert (await line.reply()).body == body
            await sending
            assert there.requests[0].body == body


async def test_a_client_that_does_not_read_is_bounded_under_tls(tmp_path: Path) -> None:
    sent = 0

    async def handle(line: Line) -> None:
        nonlocal sent
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (100 << 20))
        for _ in range(100):
            await line.say(bytes(1 << 20))
            sent += 1

    tls = THEIRS.context_for("localhost")
    async with origin(handle, tls) as there, origin() as other, decrypting(tmp_path) as engine:
        async with tunnel(engine, f"localhost:{there.port}") as line, tunnel(engine, other.authority) as clock:
            await secured(line)
            line.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await line.send(GET)
            for _ in range(100):
                await clock.send(GET)
                assert (await clock.reply()).status == 200
            assert sent < 40
            line.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await line.head()
            left = 100 << 20
            while left:
                left -= len(await line.reader.read(4 << 20))


@pytest.mark.parametrize(
    ("make", "reason"), [(self_signed, "self-signed"), (expired, "expired"), (wrong_name, "Hostname mismatch")]
)
async def test_a_certificate_that_cannot_be_trusted_is_502_with_the_reason(
    make: Any, reason: str, tmp_path: Path
) -> None:
    memory = Memory()
    async with origin(tls=make(THEIRS)) as there, decrypting(tmp_path, memory) as engine:
        async with tunnel(engine, f"localhost:{there.port}") as line:
            await secured(line)
            await line.send(GET)
            reply = await line.reply()
            assert reply.status == 502 and reason in reply.body.decode()
        flow = await memory.flow()
        assert flow.event == "upstream_error" and flow.tls is not None and reason in (flow.tls.problem or "")
        assert there.requests == []


async def test_a_host_named_insecure_is_not_verified(tmp_path: Path) -> None:
    config = replace(FAST, insecure_hosts=frozenset(("localhost",)))
    async with origin(tls=self_signed(THEIRS)) as there, decrypting(tmp_path, config=config) as engine:
        async with tunnel(engine, f"localhost:{there.port}") as line:
            await secured(line)
            await line.send(GET)
            assert (await line.reply()).status == 200


async def test_an_origin_without_tls_is_502(tmp_path: Path) -> None:
    async def handle(line: Line) -> None:
        await line.reader.readexactly(1)
        await line.say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    async with origin(handle) as there, decrypting(tmp_path) as engine:
        async with tunnel(engine, f"localhost:{there.port}") as line:
            await secured(line)
            await line.send(GET)
            assert (await line.reply()).status == 502


async def test_the_leaf_is_for_the_sni_and_the_connection_for_connect(tmp_path: Path) -> None:
    memory = Memory()
    async with origin(tls=THEIRS.context_for("virtual.example")) as there, decrypting(tmp_path, memory) as engine:
        async with tunnel(engine, there.authority) as line:
            await secured(line, "virtual.example")
            await line.send(GET.replace(b"localhost", b"virtual.example"))
            assert (await line.reply()).status == 200
        flow = await memory.flow()
        assert flow.tls is not None and flow.tls.sni == "virtual.example"
        assert flow.authority == "virtual.example"


async def test_an_address_without_sni_gets_a_leaf_for_the_address(tmp_path: Path) -> None:
    async with origin(tls=THEIRS.context_for("127.0.0.1")) as there, decrypting(tmp_path) as engine:
        async with tunnel(engine, there.authority) as line:
            await secured(line, "127.0.0.1")
            await line.send(GET.replace(b"localhost", b"127.0.0.1"))
            assert (await line.reply()).status == 200


@pytest.mark.skipif(CURL is None, reason="curl is not installed")
async def test_a_client_that_refuses_our_certificate_is_recorded_and_can_pass_through(tmp_path: Path) -> None:
    memory = Memory()
    config = replace(FAST, passes_through_pinned=True)
    (tmp_path / "theirs.pem").write_bytes(THEIRS.pem)
    async with origin(tls=THEIRS.context_for("localhost")) as there, decrypting(tmp_path, memory, config) as engine:
        url, trusted = f"https://localhost:{there.port}/", ["--cacert", str(tmp_path / "theirs.pem")]
        assert not (await curl(engine, url, *trusted)).endswith(b"200")
        flow = await memory.flow()
        assert flow.event == "tunnel" and flow.tls is not None
        assert flow.tls.problem == "tls_client_rejected: TLSV1_ALERT_UNKNOWN_CA"
        assert engine.pinned_hosts == {"localhost"}
        # Untouched this time: their certificate, not ours.
        assert (await curl(engine, url, *trusted)).endswith(b"200")
        # It may trust the next authority.
        engine.use(authority=CertificateAuthority.generate())
        assert engine.pinned_hosts == frozenset()


async def test_a_client_that_hangs_up_in_the_handshake_is_recorded(tmp_path: Path) -> None:
    memory = Memory()
    async with origin() as there, decrypting(tmp_path, memory) as engine:
        async with tunnel(engine, f"localhost:{there.port}") as line:
            with pytest.raises(ssl.SSLCertVerificationError):
                await line.start_tls(trusting(THEIRS), "localhost")
        flow = await memory.flow()
        assert flow.tls is not None and "closed during the TLS handshake" in (flow.tls.problem or "")
        assert engine.pinned_hosts == frozenset()


async def test_without_a_ca_https_is_tunnelled_and_the_flow_says_why(tmp_path: Path) -> None:
    memory = Memory()
    async with origin(tls=THEIRS.context_for("localhost")) as there:
        async with proxy(recorder=memory, rules=NoRules(True)) as engine:
            async with tunnel(engine, f"localhost:{there.port}") as line:
                await line.start_tls(trusting(THEIRS), "localhost")
                await line.send(GET)
                assert (await line.reply()).body == b"ok"
            flow = await memory.flow()
            assert flow.tls is not None and flow.tls.problem == "no CA is loaded"


async def test_garbage_behind_the_first_tls_byte_ends_quietly(tmp_path: Path) -> None:
    async with origin() as there, decrypting(tmp_path) as engine, tunnel(engine, there.authority) as line:
        await line.send(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00" + b"\xff" * 40)
        await line.rest()
        assert there.connections == 0


async def test_a_client_certificate_is_shown_to_the_host_that_asks(tmp_path: Path) -> None:
    mine = CertificateAuthority.generate("clients")
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    mine.save(certificate, key)
    tls = THEIRS._make_context("localhost")
    tls.load_verify_locations(cadata=mine.pem.decode())
    tls.verify_mode = ssl.CERT_REQUIRED
    for given, status in (({"localhost": (str(certificate), str(key))}, 200), ({}, 502)):
        config = replace(FAST, client_certificates=given)
        async with origin(tls=tls) as there, decrypting(tmp_path, config=config) as engine:
            async with tunnel(engine, f"localhost:{there.port}") as line:
                await secured(line)
                await line.send(GET)
                assert (await line.reply()).status == status


@pytest.mark.skipif(CURL is None, reason="curl is not installed")
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--http1.0"],
        ["--raw"],
        ["--proxytunnel"],
        ["-H", "Transfer-Encoding: chunked", "-d", "@BODY"],
        ["-H", "Expect: 100-continue", "-d", "@BODY"],
        ["-I"],
        ["--tls-max", "1.2"],
    ],
    ids=lambda options: " ".join(options) or "plain",
)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_curl_gets_through(scheme: str, options: list[str], tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"a=" + b"x" * 100_000)
    (tmp_path / "ca.pem").write_bytes(OURS.pem)
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    tls = THEIRS.context_for("localhost") if scheme == "https" else None
    async with origin(answering(head if "-I" in options else data), tls) as there:
        async with decrypting(tmp_path, config=replace(FAST, continue_s=0.02)) as engine:
            given = [option.replace("BODY", str(body)) for option in options]
            url = f"{scheme}://localhost:{there.port}/"
            out = await curl(engine, url, "--cacert", str(tmp_path / "ca.pem"), *given)
            assert out.endswith(b"200"), out
            if "-I" not in options:
                assert b"hello" in out
            if "@BODY" in options:
                assert b"x" * 1000 in there.requests[0].body


async def test_an_origin_that_closes_after_each_response_gets_new_connections(tmp_path: Path) -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    tls = THEIRS.context_for("localhost")
    async with origin(answering(closing, closes=True), tls) as there, decrypting(tmp_path) as engine:
        async with tunnel(engine, f"localhost:{there.port}") as line:
            await secured(line)
            for _ in range(3):
                await line.send(GET)
                assert (await line.reply()).body == b"ok"
        assert there.connections == 3


async def test_a_handshake_that_stalls_has_a_deadline_and_ends_with_the_engine(tmp_path: Path) -> None:
    hello = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"
    memory = Memory()
    async with origin() as there, decrypting(tmp_path, memory, replace(FAST, connect_timeout_s=0.05)) as engine:
        async with tunnel(engine, there.authority) as line:
            await line.send(hello[:-1])
            await line.rest()
        await memory.flow()
        assert engine.connection_count == 0


async def test_a_tunnel_that_is_never_used_is_recorded_when_it_ends(tmp_path: Path) -> None:
    memory = Memory()
    async with origin() as there, decrypting(tmp_path, memory, replace(FAST, sniff_s=10)) as engine:
        async with tunnel(engine, there.authority):
            pass
        flow = await memory.flow()
        assert flow.error is not None and memory.flows == memory.done


async def test_httpx_gets_through(tmp_path: Path) -> None:
    import httpx

    tls = THEIRS.context_for("localhost")
    async with origin(tls=tls) as secure, origin() as plain, decrypting(tmp_path) as engine:
        assert engine.address is not None
        through = f"http://127.0.0.1:{engine.address[1]}"
        async with httpx.AsyncClient(proxy=through, verify=trusting(OURS), trust_env=False) as client:
            for _ in range(2):
                assert (await client.get(plain.url())).text == "ok"
                assert (await client.post(f"https://localhost:{secure.port}/", content=b"x" * 100_000)).text == "ok"
        assert (plain.connections, secure.connections) == (1, 1)
        assert len(secure.requests[1].body) == 100_000


async def test_an_early_response_without_a_length_ends_under_tls_while_the_upload_goes_on(tmp_path: Path) -> None:
    async def handle(line: Line) -> None:
        await line.head()
        await line.say(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")

    config = replace(FAST, linger_s=3600)
    async with origin(handle, THEIRS.context_for("localhost")) as there:
        async with decrypting(tmp_path, config=config) as engine:
            async with tunnel(engine, f"localhost:{there.port}") as line:
                await secured(line)
                await line.send(b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + bytes(1000))
                assert (await line.reply()).body == b"until the end"
