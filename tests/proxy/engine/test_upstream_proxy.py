"""Through another proxy, of every kind; and what fails there is said of it, not of the origin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dari.proxy.access import PrivateTargetPolicy, ProxyAccess
from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.hooks import NoRules
from dari.proxy.engine.upstream_proxy import bypasses
from tests.support.origins.certificates import expired
from tests.support.origins.middle import socks
from tests.support.origins.origin import Handler, Line, answering, origin
from tests.support.origins.relay import relay
from tests.support.ports import reserved_port
from tests.support.proxy_engine import FAST, Memory, proxy, tunnel, wire


async def test_plain_http_https_and_tunnels_go_through_socks5(tmp_path: Path) -> None:
    theirs = CertificateAuthority.generate()
    (tmp_path / "roots.pem").write_bytes(theirs.pem)
    async with socks() as middle, origin() as plain, origin(tls=theirs.context_for("localhost")) as secure:
        url = f"socks5://127.0.0.1:{middle.port}"
        config = replace(FAST, upstream_proxy=url, ca_file=str(tmp_path / "roots.pem"))
        async with proxy(config) as engine:
            async with wire(engine) as line:
                assert (await line.get(f"http://localhost:{plain.port}/a")).body == b"ok"
                assert (await line.get(f"https://localhost:{secure.port}/b")).body == b"ok"
            async with tunnel(engine, plain.authority) as line:
                await line.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                assert (await line.reply()).body == b"ok"
        assert plain.requests[0].head.startswith(b"GET /a ")
        assert middle.targets == [
            ("localhost", plain.port),
            ("localhost", secure.port),
            ("127.0.0.1", plain.port),
        ]


async def test_socks5_with_a_login() -> None:
    async with socks((b"me", b"p@ss")) as middle, origin() as there:
        good = replace(FAST, upstream_proxy=f"socks5h://me:p%40ss@127.0.0.1:{middle.port}")
        async with proxy(good) as engine, wire(engine) as line:
            assert (await line.get(there.url())).body == b"ok"


async def test_plain_http_and_https_go_through_an_https_proxy(tmp_path: Path) -> None:
    theirs = CertificateAuthority.generate()
    (tmp_path / "roots.pem").write_bytes(theirs.pem)
    there_tls, middle_tls = theirs.context_for("localhost"), theirs.context_for("127.0.0.1")
    async with origin(tls=there_tls) as there, origin() as plain, proxy() as inner:
        assert inner.address is not None
        async with relay(inner.address[1], tls=middle_tls) as middle:
            url = f"https://127.0.0.1:{middle.port}"
            config = replace(FAST, upstream_proxy=url, ca_file=str(tmp_path / "roots.pem"))
            async with proxy(config) as engine, wire(engine) as line:
                assert (await line.get(f"https://localhost:{there.port}/")).body == b"ok"
                assert middle.has_opened.is_set()
                assert (await line.get(plain.url("/x"))).body == b"ok"
            assert plain.requests[0].head.startswith(b"GET /x ")


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
@pytest.mark.parametrize("target", ["http://origin.example/", "https://origin.example/"])
async def test_a_dead_upstream_proxy_is_named(scheme: str, target: str) -> None:
    memory = Memory()
    with reserved_port() as port:
        config = replace(FAST, upstream_proxy=f"{scheme}://me:secret@127.0.0.1:{port}")
        async with proxy(config, memory) as engine, wire(engine) as line:
            reply = await line.get(target)
            assert reply.status == 502 and b"refused" in reply.body.lower()
            assert f"upstream proxy {scheme}://127.0.0.1:{port}".encode() in reply.body
            assert b"secret" not in reply.body and b"cannot connect to origin.example" not in reply.body
            assert "upstream proxy" in ((await memory.flow()).error or "")


async def test_an_upstream_proxy_that_no_resolver_knows_is_named() -> None:
    config = replace(FAST, upstream_proxy="http://no-such-proxy.invalid:3128")
    async with proxy(config) as engine, wire(engine) as line:
        reply = await line.get("http://origin.example/")
        assert reply.status == 502 and b"upstream proxy http://no-such-proxy.invalid:3128" in reply.body


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
async def test_an_upstream_proxy_that_never_answers_is_named(scheme: str) -> None:
    async def silent(line: Line) -> None:
        await line.reader.read()

    async with origin(silent) as middle:
        url = f"{scheme}://127.0.0.1:{middle.port}"
        config = replace(FAST, upstream_proxy=url, connect_timeout_s=0.3)
        async with proxy(config) as engine, wire(engine) as line:
            reply = await line.get("https://origin.example/")
            assert reply.status == 504 and f"upstream proxy {url}".encode() in reply.body


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
async def test_an_upstream_proxy_that_hangs_up_is_named(scheme: str) -> None:
    async with relay(1, refuses=lambda first: b"") as middle:
        url = f"{scheme}://127.0.0.1:{middle.port}"
        async with proxy(replace(FAST, upstream_proxy=url)) as engine, wire(engine) as line:
            reply = await line.get("https://origin.example/")
            assert reply.status == 502 and f"upstream proxy {url}".encode() in reply.body


@pytest.mark.parametrize("target", ["http://origin.example/", "https://origin.example/"])
@pytest.mark.parametrize("login", ["", "me:wrong@"])
async def test_an_upstream_proxy_that_wants_a_login_says_how_to_give_it(target: str, login: str) -> None:
    refusing = answering(b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
    async with origin(refusing) as middle:
        config = replace(FAST, upstream_proxy=f"http://{login}127.0.0.1:{middle.port}")
        async with proxy(config) as engine, wire(engine) as line:
            reply = await line.get(target)
            assert reply.status == 502 and b"407" in reply.body and b"http://USER:PASSWORD@" in reply.body
            assert b"wrong" not in reply.body and reply.header("proxy-authenticate") is None


@pytest.mark.parametrize("url", ["socks5://127.0.0.1:{}", "socks5://me:wrong@127.0.0.1:{}"])
async def test_a_socks_proxy_that_wants_another_login_says_so(url: str) -> None:
    async with socks((b"me", b"right")) as middle:
        config = replace(FAST, upstream_proxy=url.format(middle.port))
        async with proxy(config) as engine, wire(engine) as line:
            reply = await line.get("http://origin.example/")
            assert reply.status == 502 and b"socks5://USER:PASSWORD@" in reply.body and b"wrong" not in reply.body


async def test_what_a_socks_proxy_says_about_the_origin_is_passed_on() -> None:
    async with socks(refusal=4) as middle:
        config = replace(FAST, upstream_proxy=f"socks5://127.0.0.1:{middle.port}")
        async with proxy(config) as engine, wire(engine) as line:
            reply = await line.get("http://origin.example/")
            assert reply.status == 502 and b"cannot reach origin.example:80: host unreachable" in reply.body


async def test_the_certificate_of_an_https_proxy_is_checked_and_blamed_on_it(tmp_path: Path) -> None:
    theirs = CertificateAuthority.generate()
    (tmp_path / "roots.pem").write_bytes(theirs.pem)
    async with origin(tls=expired(theirs)) as middle:
        url = f"https://localhost:{middle.port}"
        config = replace(FAST, upstream_proxy=url, ca_file=str(tmp_path / "roots.pem"))
        async with proxy(config) as engine, wire(engine) as line:
            reply = await line.get("https://origin.example/")
            assert reply.status == 502 and f"certificate of the upstream proxy {url}".encode() in reply.body
            assert b"expired" in reply.body


async def test_bypassed_hosts_are_reached_without_it() -> None:
    with reserved_port() as port:
        config = replace(FAST, upstream_proxy=f"http://127.0.0.1:{port}", upstream_bypass=("127.0.0.0/8",))
        async with origin() as there, proxy(config) as engine, wire(engine) as line:
            assert (await line.get(there.url())).body == b"ok"
            assert (await line.get("http://origin.example/")).status == 502


async def test_private_targets_stay_blocked_behind_an_upstream_proxy() -> None:
    async with origin() as middle:
        gate = ProxyAccess(targets=PrivateTargetPolicy(True))
        config = replace(FAST, upstream_proxy=f"http://127.0.0.1:{middle.port}")
        async with proxy(config, gate=gate) as engine, wire(engine) as line:
            assert (await line.get("http://10.0.0.1/")).status == 403
            assert (await line.get("http://localhost:1/")).status == 403
            assert (await line.get("http://origin.example/")).status == 200


@pytest.mark.parametrize(
    ("host", "port", "patterns", "expected"),
    [
        ("a.example", 80, ("*",), True),
        ("a.example", 80, ("example",), True),
        ("a.example", 80, (".example",), True),
        ("example", 80, (".example",), True),
        ("a.example", 80, ("*.example",), True),
        ("a-example", 80, ("example",), False),
        ("a.example", 80, ("a.example:443",), False),
        ("a.example", 443, ("a.example:443",), True),
        ("10.1.2.3", 80, ("10.0.0.0/8",), True),
        ("11.1.2.3", 80, ("10.0.0.0/8",), False),
        ("::1", 80, ("[::1]",), True),
        ("::1", 80, ("::1",), True),
        ("a.example", 80, ("", " "), False),
    ],
)
def test_bypasses_are_read_as_no_proxy_is(host: str, port: int, patterns: tuple[str, ...], expected: bool) -> None:
    assert bypasses(host, port, patterns) is expected


def tunnelling(*answers: bytes) -> Handler:
    """A proxy that answers CONNECT with these, each in a write of its own, and echoes what is sent into the tunnel."""

    async def handle(line: Line) -> None:
        await line.head()
        for answer in answers:
            await line.say(answer)
        while data := await line.reader.read(1000):
            await line.say(data)

    return handle


ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
GREETING = b"SSH-2.0-somebody\r\n"


@pytest.mark.parametrize("decrypts", [False, True])
@pytest.mark.parametrize("answers", [(ESTABLISHED + GREETING,), (ESTABLISHED, GREETING)], ids=["together", "apart"])
async def test_a_greeting_that_comes_with_the_tunnel_is_passed_on(answers: tuple[bytes, ...], decrypts: bool) -> None:
    async with origin(tunnelling(*answers)) as middle:
        config = replace(FAST, upstream_proxy=f"http://127.0.0.1:{middle.port}", sniff_s=0.01)
        rules, authority = NoRules(decrypts), CertificateAuthority.generate()
        async with proxy(config, rules=rules, authority=authority) as engine:
            for _ in range(10):
                async with tunnel(engine, "host.example:22") as line:
                    assert await line.reader.readexactly(len(GREETING)) == GREETING
                    await line.send(b"\x01hello")
                    assert await line.reader.readexactly(6) == b"\x01hello"


async def test_what_comes_with_the_tunnel_is_no_answer_of_an_origin_behind_tls() -> None:
    split = ESTABLISHED + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    async with origin(tunnelling(split)) as middle:
        config = replace(FAST, upstream_proxy=f"http://127.0.0.1:{middle.port}")
        async with proxy(config) as engine, wire(engine) as line:
            reply = await line.get("https://origin.example/")
            assert reply.status == 502 and b"evil" not in reply.body


async def test_what_a_socks_proxy_sends_before_it_is_asked_is_no_answer_of_the_origin() -> None:
    """Plain requests go through tunnels of SOCKS only, and nothing else would notice."""

    async def handle(line: Line) -> None:
        await line.reader.readexactly(3)
        await line.say(b"\x05\x00")
        await line.reader.readexactly(10)
        await line.say(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        await line.reader.read()

    async with origin(handle) as middle:
        config = replace(FAST, upstream_proxy=f"socks5://127.0.0.1:{middle.port}")
        async with proxy(config) as engine, wire(engine) as line:
            reply = await line.get("http://10.0.0.1/")
            assert reply.status == 502 and b"evil" not in reply.body


@pytest.mark.parametrize("rest", [b"", GREETING], ids=["silent", "greeting"])
async def test_a_tunnel_that_ends_as_it_opens_ends_for_the_client(rest: bytes) -> None:
    async def handle(line: Line) -> None:
        await line.head()
        await line.say(ESTABLISHED + rest)
        line.writer.close()

    async with origin(handle) as middle:
        config = replace(FAST, upstream_proxy=f"http://127.0.0.1:{middle.port}")
        async with proxy(config) as engine, wire(engine) as line:
            await line.send(b"CONNECT host.example:22 HTTP/1.1\r\nHost: host.example:22\r\n\r\n")
            reply = await line.head()
            assert reply.status in (200, 502)
            assert (await line.rest()).endswith(rest if reply.status == 200 else b"")
