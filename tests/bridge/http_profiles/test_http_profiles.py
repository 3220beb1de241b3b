"""HTTP servers as profiles reach them: the whole way from mcp.json through the bridge to a real socket."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.client.test_old_servers import CALLED, INITIALIZED, TOOLS, crewx
from tests.support.mcp_client import DISCOVERED, ROOT, Peer, http_script
from tests.support.ports import reserved_port
from tests.support.remote_user import Person

HELLO = {"content": [{"type": "text", "text": "hello"}]}
LISTED = {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]}


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    monkeypatch.setitem(sys.modules, "keyring", None)
    return Person(tmp_path)


def serve(peer: Peer) -> None:
    """The handshake era, two methods."""
    if peer.method == "GET":
        peer.respond(405)
    elif not peer.initialized():
        peer.reply(LISTED if peer.body["method"] == "tools/list" else HELLO)


@pytest.mark.parametrize("ending", ["", "/", "/mcp", "/mcp/"])
@pytest.mark.parametrize("has_handshake", [True, False])
async def test_a_crewx_server_works_whatever_its_base_url_ends_with(
    person: Person, ending: str, has_handshake: bool
) -> None:
    methods: dict[str, Any] = {"tools/list": TOOLS, "tools/call": CALLED}
    if has_handshake:
        methods["initialize"] = INITIALIZED
    async with http_script(crewx(methods, [])) as url:
        person.write({"id": "old", "baseUrl": url.removesuffix("/mcp") + ending})
        listed = await person.run("list-tools", "--server", "old", "--json")
        assert listed.code == 0 and "crewx_listAgents" in listed.out, listed.err
        called = await person.run("call-tool", "old/crewx_listAgents", "--raw")
        # Fields that MCP does not know stay as they are.
        assert (called.code, json.loads(called.out)) == (0, CALLED), called.err


@asynccontextmanager
async def sdk_sse() -> AsyncIterator[str]:
    with reserved_port() as port:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.mcp.client.sdk_server", str(port), "sse"),
            env={"PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                except OSError:
                    await asyncio.sleep(0.05)  # the server says nothing when it is ready
            yield f"http://127.0.0.1:{port}/sse"
        finally:
            process.kill()
            await process.wait()


async def test_a_server_of_the_old_transport_is_found_without_being_told(person: Person) -> None:
    async with sdk_sse() as url:
        person.write({"id": "old", "url": url})
        for _ in range(2):  # the second time it is remembered
            called = await person.run("call-tool", "old/echo", "--params", '{"text": "hi"}', "--raw")
            assert called.code == 0 and json.loads(called.out)["content"][0]["text"] == "hi", called.err


async def test_keep_alive_off_means_a_connection_for_each_request(person: Person) -> None:
    seen: list[tuple[int, str]] = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            seen.append((peer.number, peer.headers.get("connection", "")))
            serve(peer)

    async with http_script(handler) as url:
        person.write({"id": "it", "url": url, "keepAlive": False})
        assert (await person.run("call-tool", "it/greet")).code == 0
    assert {header for _, header in seen} == {"close"}
    assert len({number for number, _ in seen}) == len(seen) >= 3


async def test_a_forgotten_session_is_renewed_behind_the_call(person: Person) -> None:
    sessions: set[str] = set()
    handshakes = 0

    async def handler(peer: Peer) -> None:
        nonlocal handshakes
        while await peer.request():
            method = peer.body.get("method")
            if method == "server/discover":
                peer.respond(400, b"Bad Request: no session")
            elif method == "initialize":
                handshakes += 1
                sessions.add(f"s{handshakes}")
                peer.initialized(session=f"s{handshakes}")
            elif peer.headers.get("mcp-session-id") not in sessions:
                peer.respond(404, b"Session not found")
            else:
                serve(peer)

    async with http_script(handler) as url, person.bridge() as bridge:
        person.write({"id": "it", "url": url})
        assert (await person.run("call-tool", "it/greet", bridge=bridge)).code == 0
        before = handshakes
        sessions.clear()
        assert (await person.run("call-tool", "it/greet", bridge=bridge)).code == 0
        assert handshakes == before + 1


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (429, {"retry_after": "7"}, "in 7 s"),
        (503, {}, "try again later"),
        (403, {}, "check apiKey"),
        (401, {}, "check apiKey"),
        (302, {"location": "http://elsewhere.example/mcp"}, "use that URL"),
    ],
)
async def test_a_refusal_is_exit_code_2_with_the_next_step(
    person: Person, status: int, headers: dict[str, str], said: str
) -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.body.get("method") == "tools/call":
                peer.respond(status, b"no", **headers)
            elif peer.body.get("method") == "server/discover":
                peer.reply(DISCOVERED | {"capabilities": {"tools": {}}})
            else:
                peer.reply(LISTED | {"resultType": "complete"})

    async with http_script(handler) as url:
        person.write({"id": "it", "url": url, "apiKey": "s3cr3t-k3y"})
        answer = await person.run("--log", "call-tool", "it/greet")
        assert answer.code == 2, answer.err
        assert said in answer.err and "s3cr3t-k3y" not in answer.err + answer.out
