"""`DARI_CLIENT_TOKEN` of `dari mcp`: the token names the client that is served over stdio, and takes it away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dari.bridge.config.locations import ClientEnvironment
from dari.core.scopes import READ
from dari.mcp.server import Server
from dari.transport.client_tokens import TokenStore, tokens_path
from tests.support.demo_server import DemoTools, demo_server
from tests.support.hub_socket import calling, connected, hello, open_socket
from tests.support.wire import call, initialize


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TokenStore:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    return TokenStore(tokens_path())


async def test_the_session_has_the_name_and_the_scopes_of_the_token(run_dir: Path, store: TokenStore) -> None:
    made = store.create("desktop", [READ])
    servers: list[Server] = []

    @asynccontextmanager
    async def keep(around: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
        servers.append(demo_server())
        yield servers[-1]

    environment = {"HOME": str(run_dir), "DARI_CLIENT_TOKEN": made.secret}
    async with open_socket(run_dir, make_server=keep), calling(run_dir, purpose="mcp", env=environment) as caller:
        caller.writer.write(json.dumps(initialize()).encode() + b"\n")
        await caller.reader.readline()
        (session,) = servers[0].sessions
        assert (session.grant.holder, session.grant.scopes) == ("mcp@desktop", {READ})
    assert store.last_uses()["desktop"] > 0


async def test_a_token_that_does_not_count_is_refused_and_not_taken_for_nobody(
    run_dir: Path, store: TokenStore
) -> None:
    async with open_socket(run_dir), connected(run_dir) as caller:
        greeting = hello(run_dir, purpose="mcp", env={"HOME": str(run_dir), "DARI_CLIENT_TOKEN": "dtk_wrong"})
        caller.writer.write(json.dumps(greeting).encode() + b"\n")
        refusal = await caller.refusal()
        assert "DARI_CLIENT_TOKEN" in refusal["message"]
        assert "dtk_wrong" not in str(refusal)


async def test_a_revoked_token_ends_the_connection_and_its_calls(run_dir: Path, store: TokenStore) -> None:
    tools = DemoTools()

    @asynccontextmanager
    async def slow(around: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
        yield demo_server(tools)

    environment = {"HOME": str(run_dir), "DARI_CLIENT_TOKEN": store.create("desktop").secret}
    async with (
        open_socket(run_dir, make_server=slow),
        calling(run_dir, purpose="mcp", env=environment) as caller,
        asyncio.timeout(30),
    ):
        for message in (initialize(), call("demo_hang")):
            caller.writer.write(json.dumps(message).encode() + b"\n")
        await tools.started.wait()
        store.revoke("desktop")
        await tools.cancelled.wait()
