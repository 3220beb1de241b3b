"""A decrypting engine, and a client that speaks HTTP/2 to it frame by frame."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.hooks import NoRules
from dari.proxy.engine.listener import ProxyEngine
from tests.support.origins.h2_peer import H2Peer
from tests.support.proxy_engine import FAST, Memory, proxy, tunnel

OURS = CertificateAuthority.generate()
THEIRS = CertificateAuthority.generate("CA of origins that speak HTTP/1.1 only")
THEIRS.alpn = ["http/1.1"]
MODERN = CertificateAuthority.generate("CA of origins that speak HTTP/2")
MODERN.alpn = ["h2", "http/1.1"]
OLD_TLS = THEIRS.context_for("localhost")
NEW_TLS = MODERN.context_for("localhost")


@asynccontextmanager
async def decrypting(
    tmp_path: Path, memory: Memory | None = None, config: EngineConfig = FAST, **ports: Any
) -> AsyncIterator[ProxyEngine]:
    """An engine that decrypts everything and trusts the origins' CAs."""
    roots = tmp_path / "roots.pem"
    roots.write_bytes(THEIRS.pem + MODERN.pem)
    ports = {"rules": NoRules(True), "authority": OURS, **ports}
    async with proxy(replace(config, ca_file=str(roots)), memory, **ports) as engine:
        yield engine


def trusting(*protocols: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.load_verify_locations(cadata=OURS.pem.decode())
    context.set_alpn_protocols(list(protocols))
    return context


@asynccontextmanager
async def h2_client(engine: ProxyEngine, port: int, name: str = "localhost") -> AsyncIterator[H2Peer]:
    async with tunnel(engine, f"{name}:{port}") as line:
        await line.start_tls(trusting("h2", "http/1.1"), name)
        assert line.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        peer = H2Peer(line.reader, line.writer, is_client=True)
        peer.open()
        try:
            yield peer
        finally:
            await peer.close()
