"""Run by test_redirect.py inside a network namespace of its own; prints what happened as JSON.

An address that exists only here is redirected to the engine, for connections from a few source ports: those of the
client. The engine's own go through.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import uvloop

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.hooks import NoRules
from dari.proxy.engine.listener import ProxyEngine
from tests.support.proxy_engine import FAST, Memory

FAMILY = sys.argv[1]
HOST = "10.9.9.9" if FAMILY == "4" else "fd99::9"
LOOPBACK = "127.0.0.1" if FAMILY == "4" else "::1"
TABLES = "iptables" if FAMILY == "4" else "ip6tables"
# The client's connections come from this port range, and only they are redirected. The kernel takes none of these for
# the engine's own connections, as it would above 32,767: those would come back to the engine.
SOURCE_PORTS = range(20_000, 20_100)


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=30)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    host, port, *_ = writer.get_extra_info("sockname")
    if port == 2525:
        writer.write(b"220 hello\r\n")
        await reader.read()
        writer.close()
        return
    await reader.readuntil(b"\r\n\r\n")
    body = f"{host} {port}".encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    await writer.drain()


async def ask(port: int, source: int, path: str, context: ssl.SSLContext | None) -> list[str]:
    name = "named.example" if context is not None else None
    where = (HOST, source)
    reader, writer = await asyncio.open_connection(HOST, port, ssl=context, server_hostname=name, local_addr=where)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: named.example\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    body = await reader.readexactly(length)
    writer.transport.abort()
    return [head.split(b"\r\n")[0].decode(), body.decode()]


async def main() -> None:
    ours, theirs = CertificateAuthority.generate(), CertificateAuthority.generate("theirs")
    theirs.alpn = ["http/1.1"]
    memory = Memory()
    with tempfile.TemporaryDirectory() as directory:
        roots = Path(directory) / "roots.pem"
        roots.write_bytes(theirs.pem)
        config = replace(
            FAST, host=LOOPBACK, transparent_host=LOOPBACK, transparent_port=0, ca_file=str(roots), sniff_s=0.2
        )
        engine = ProxyEngine(config, rules=NoRules(True), recorder=memory, authority=ours)
        await engine.start()
        assert engine.transparent_address is not None
        to = engine.transparent_address[1]
        ports = f"{SOURCE_PORTS.start}:{SOURCE_PORTS.stop - 1}"
        run(TABLES, "-t", "nat", "-A", "OUTPUT", "-p", "tcp", "-d", HOST, "--sport", ports, "-j", "REDIRECT",
            "--to-ports", str(to))  # fmt: skip
        servers = [
            await asyncio.start_server(serve, HOST, 80),
            await asyncio.start_server(serve, HOST, 443, ssl=theirs.context_for("named.example")),
            await asyncio.start_server(serve, HOST, 2525),
        ]
        trust = ssl.create_default_context(cadata=ours.pem.decode())
        seen: dict[str, list[str]] = {}
        status, where = await ask(80, SOURCE_PORTS[0], "/plain", None)
        seen["plain"] = [status, (await memory.flow(1)).url, where]
        status, where = await ask(443, SOURCE_PORTS[1], "/tls", trust)
        seen["tls"] = [status, (await memory.flow(2)).url, where]
        reader, writer = await asyncio.open_connection(HOST, 2525, local_addr=(HOST, SOURCE_PORTS[2]))
        greeting = (await reader.readline()).decode().strip()
        writer.transport.abort()
        flow = await memory.flow(3)
        seen["tunnel"] = [greeting, flow.authority, f"{HOST} 2525"]
        await engine.stop()
        for server in servers:
            server.close()
    print(json.dumps(seen))


def prepare() -> str | None:
    """Why it cannot be tried here; None when the addresses stand."""
    run("ip", "link", "set", "lo", "up")
    try:
        run("ip", "-" + FAMILY, "addr", "add", HOST + ("/32" if FAMILY == "4" else "/128"), "dev", "lo")
        run(TABLES, "-t", "nat", "-L")
    except subprocess.CalledProcessError as error:
        return str(error.stderr.decode().strip())
    return None


if (problem := prepare()) is not None:
    print(json.dumps({"skip": problem}))
else:
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop if sys.argv[2] == "uvloop" else None)
    with runner:
        runner.run(asyncio.wait_for(main(), 30))
