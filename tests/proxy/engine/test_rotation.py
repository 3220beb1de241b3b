"""The authority is changed, and taken away, while clients are connected: new handshakes see it, old ones live on."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.hooks import NoRules
from tests.support.origins.origin import origin
from tests.support.proxy_engine import Memory, Wire, request, tunnel, wire
from tests.support.proxy_engine_h2 import OLD_TLS, OURS, THEIRS, decrypting, trusting

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def trusting_only(authority: CertificateAuthority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.pem.decode())


async def asks(line: Wire) -> bytes:
    await line.send(GET)
    return (await line.reply()).body


async def test_a_new_authority_signs_at_once_and_running_connections_are_kept(tmp_path: Path) -> None:
    fresh = CertificateAuthority.generate("the next one")
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with tunnel(engine, f"localhost:{there.port}") as old:
            await old.start_tls(trusting("http/1.1"), "localhost")
            assert await asks(old) == b"ok"
            engine.use(authority=fresh)
            async with tunnel(engine, f"localhost:{there.port}") as new:
                await new.start_tls(trusting_only(fresh), "localhost")
                assert await asks(new) == b"ok"
            async with tunnel(engine, f"localhost:{there.port}") as late:
                with pytest.raises(ssl.SSLCertVerificationError):
                    await late.start_tls(trusting("http/1.1"), "localhost")
            assert await asks(old) == b"ok"
            async with wire(engine) as line:
                await line.send(request("http://crab-proxy.local/ca.pem"))
                assert (await line.reply()).body == fresh.pem


async def test_without_an_authority_new_tunnels_are_passed_on_unread(tmp_path: Path) -> None:
    memory = Memory()
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path, memory) as engine:
        async with tunnel(engine, f"localhost:{there.port}") as old:
            await old.start_tls(trusting("http/1.1"), "localhost")
            assert await asks(old) == b"ok"
            engine.use(authority=None)
            async with tunnel(engine, f"localhost:{there.port}") as new:
                await new.start_tls(trusting_only(THEIRS), "localhost")
                assert await asks(new) == b"ok"
            assert await asks(old) == b"ok"
        flow = next(flow for flow in memory.flows if flow.method == "CONNECT")
        assert flow.tls is not None and flow.tls.problem == "no CA is loaded"
        async with wire(engine) as line:
            await line.send(request("http://crab-proxy.local/ca.pem"))
            assert (await line.reply()).status == 503


async def test_other_parts_are_swapped_without_touching_the_authority(tmp_path: Path) -> None:
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        engine.use(rules=NoRules(True))
        async with tunnel(engine, f"localhost:{there.port}") as line:
            await line.start_tls(trusting_only(OURS), "localhost")
            assert await asks(line) == b"ok"
