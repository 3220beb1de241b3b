"""Who may reach the endpoint from a browser: Host, Origin and CORS."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.transports import running
from tests.support.wire import HttpReply, initialize

LOCAL_HOSTS = ["localhost", "localhost:3847", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:3847", "LOCALHOST:80"]
OTHER_HOSTS = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example:80",
    "[::2]",
    "0.0.0.0",
    "::1",
    "",
    ":80",
    "[::1].evil.test",
    "[::1]evil.test:80",
    "[::1]]",
    "[[::1]]",
    "[::1%25lo]",
    "127.0.0.1:evil.test",
    "127.0.0.1:80:80",
    "localhost:80:",
    "[::1]:80:90",
    "localhost:0x50",
    "localhost:-1",
    "localhost:65536",
    "localhost:99999999999999999999",
    "localhost:8\u0660",
    "evil.test@localhost",
    "localhost@evil.test",
    "localhost#evil.test",
    "localhost/evil.test",
    "localhost\\evil.test",
    "localhost, evil.test",
    "localhost evil.test",
    "%6cocalhost",
    "localhost.",
    "http://localhost",
]
LOCAL_ORIGINS = ["http://localhost", "http://localhost:5173", "https://127.0.0.1:8443", "http://[::1]:3000"]
OTHER_ORIGINS = [
    "null",
    "https://evil.example",
    "http://localhost.evil.example",
    "http://evil.example:80/localhost",
    "http://localhost@evil.example",
    "http://127.0.0.1.evil.example",
    "file://",
    "ftp://localhost",
    "localhost",
    "http://[::1",
    "http://loc\xe4lhost",
    "http://evil.test@localhost",
    "http://user:secret@127.0.0.1:3000",
    "http://@localhost",
    "http://localhost:80:80",
    "http://localhost:evil.test",
    "http://localhost:99999",
    "http://[::1].evil.test",
    "http://[::1]evil.test",
    "http://localhost/",
    "http://localhost/evil.test",
    "http://localhost?evil.test",
    "http://localhost#evil.test",
    "http://localhost\\@evil.test",
    "http://localhost, http://evil.test",
    "http://localhost http://evil.test",
    "http:localhost",
    "http:///localhost",
    "http://%6cocalhost",
    "*",
]


def cors(reply: HttpReply) -> dict[str, str]:
    return {name: value for name, value in reply.headers.items() if name.startswith("access-control")}


async def test_a_loopback_name_with_any_port_or_none_is_a_good_host() -> None:
    async with running() as rig:
        wire = await rig.http()
        for host in LOCAL_HOSTS:
            assert (await wire.post(initialize(), Host=host)).status == 200, host


async def test_another_host_is_refused_and_so_is_none() -> None:
    """A page that rebinds its own name to 127.0.0.1 still sends that name."""
    async with running() as rig:
        wire = await rig.http()
        for host in OTHER_HOSTS:
            reply = await wire.post(initialize(), Host=host)
            assert (reply.status, reply.json()) == (403, {"error": "host not allowed"}), host
        assert len(rig.hub.sessions) == 0


async def test_a_host_named_by_option_is_good() -> None:
    async with running(allowed_hosts=("box.lan", "fe80::1")) as rig:
        wire = await rig.http()
        for host in ("box.lan", "BOX.lan:3847", "[fe80::1]:80"):
            assert (await wire.post(initialize(), Host=host)).status == 200, host
        assert (await wire.post(initialize(), Host="boxxlan")).status == 403


async def test_the_address_of_the_listener_is_a_good_host() -> None:
    async with running(http_bind="127.0.0.2") as rig:
        streams = rig.hub.url
        assert streams.startswith("http://127.0.0.2:")
        reply = await (await rig.http("127.0.0.2")).post(initialize(), Host=f"127.0.0.2:{rig.port}")
        assert reply.status == 200


async def test_a_page_of_this_machine_may_call_and_is_reflected_exactly() -> None:
    async with running() as rig:
        wire = await rig.http()
        for origin in LOCAL_ORIGINS:
            reply = await wire.post(initialize(), Origin=origin)
            assert reply.status == 200
            assert reply.headers["access-control-allow-origin"] == origin
            assert reply.headers["vary"] == "Origin"
            assert "mcp-session-id" in reply.headers["access-control-expose-headers"].lower()


@pytest.mark.parametrize("origin", OTHER_ORIGINS)
async def test_any_other_page_is_refused_and_learns_nothing(origin: str) -> None:
    async with running() as rig:
        wire = await rig.http()
        for method in ("POST", "GET", "DELETE", "OPTIONS"):
            reply = await wire.request(method, "/mcp", headers={"Origin": origin})
            assert (reply.status, reply.json()) == (403, {"error": "origin not allowed"}), method
            assert cors(reply) == {}
        assert len(rig.hub.sessions) == 0


async def test_without_an_origin_there_is_no_cors() -> None:
    async with running() as rig:
        reply = await (await rig.http()).post(initialize())
        assert reply.status == 200
        assert cors(reply) == {}


async def test_an_origin_named_by_option_is_good_in_that_spelling_only() -> None:
    async with running(allowed_origins=("https://app.example/",)) as rig:
        wire = await rig.http()
        assert (await wire.post(initialize(), Origin="https://app.example")).status == 200
        for other in ("http://app.example", "https://app.example:444", "https://x.app.example"):
            assert (await wire.post(initialize(), Origin=other)).status == 403, other


async def test_a_preflight_is_answered_without_a_token_and_without_a_wildcard(tmp_path: Path) -> None:
    async with running(token_path=tmp_path / "token") as rig:
        wire = await rig.http()
        asked = {"Authorization": "", "Content-Type": "", "Accept": "", "Origin": "http://localhost:5173"}
        asked["Access-Control-Request-Method"] = "POST"
        asked["Access-Control-Request-Headers"] = "authorization, mcp-param-region, x-other"
        reply = await wire.request("OPTIONS", "/mcp", headers=asked)
        assert (reply.status, reply.body) == (204, b"")
        assert reply.headers["access-control-allow-origin"] == "http://localhost:5173"
        methods = {name.strip() for name in reply.headers["access-control-allow-methods"].split(",")}
        assert methods == {"GET", "POST", "DELETE", "OPTIONS"}
        headers = {name.strip().lower() for name in reply.headers["access-control-allow-headers"].split(",")}
        assert {"authorization", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id"} <= headers
        assert "mcp-param-region" in headers
        assert "x-other" not in headers
        assert "*" not in "".join(cors(reply).values())


async def test_a_page_can_read_why_it_was_refused(tmp_path: Path) -> None:
    async with running(token_path=tmp_path / "token") as rig:
        wire = await rig.http()
        reply = await wire.post(initialize(), Origin="http://localhost", Authorization="")
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (401, "http://localhost")


async def test_a_preflight_without_an_origin_tells_no_origin() -> None:
    async with running() as rig:
        reply = await (await rig.http()).request("OPTIONS", "/mcp")
        assert reply.status == 204
        assert "access-control-allow-origin" not in reply.headers
