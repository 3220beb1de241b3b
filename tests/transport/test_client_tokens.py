"""Tokens of single clients: as good as the shared one, named in records, and taken away alone."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dari.core.scopes import ADMIN, CONTROL, MCP_GRANT, MCP_SCOPES, READ
from dari.core.tool import tool
from dari.errors import Conflict, Failed, InvalidInput, NotFound
from dari.transport.client_tokens import ClientTokens, TokenStore
from tests.support.demo_server import DemoTools
from tests.support.transports import Rig, logged, open_events, running
from tests.support.waiting import until
from tests.support.wire import HttpWire, Json, call, envelope_headers, initialize, stateless


class Changing(DemoTools):
    @tool(scope=CONTROL)
    async def change(self) -> str:
        """Need more than to read."""
        return "changed"


PING: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@asynccontextmanager
async def with_tokens(folder: Path, **settings: Any) -> AsyncIterator[tuple[Rig, TokenStore]]:
    store = TokenStore(folder / "tokens.json")
    async with running(token_path=folder / "mcp.token", client_tokens_path=store.path, **settings) as rig:
        yield rig, store


async def opened_with(rig: Rig, secret: str) -> HttpWire:
    """A session that was begun with this token."""
    wire = await rig.http()
    wire.headers["Authorization"] = f"Bearer {secret}"
    assert (await wire.ask(initialize()))["result"]
    return wire


async def left(rig: Rig, sessions: int) -> None:
    """Wait until so many sessions are left."""
    await until(lambda: len(rig.hub.sessions) == len(rig.server.sessions) == sessions)


# The file


def test_a_token_is_made_for_its_owner_alone_and_is_read_back(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "deep" / "tokens.json")
    made = store.create("claude-code")
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    assert store.get("claude-code") == made
    assert made.secret.startswith("dtk_") and len(made.secret) >= 47
    assert frozenset(made.scopes) == MCP_SCOPES
    assert made.secret not in repr(made)


@pytest.mark.parametrize("name", ["", "Claude", "a b", "-x", "x-", "a/b", "a@b", "a:b", "é", "x" * 41, "shared"])
def test_a_name_that_records_could_not_show_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        TokenStore(tmp_path / "tokens.json").create(name)


def test_a_name_has_one_token(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    store.create("cursor")
    with pytest.raises(Conflict):
        store.create("cursor")


@pytest.mark.parametrize("scopes", [[], [ADMIN], [READ, ADMIN], ["everything"]])
def test_no_token_can_be_given_more_than_agents_may(tmp_path: Path, scopes: list[str]) -> None:
    with pytest.raises(InvalidInput):
        TokenStore(tmp_path / "tokens.json").create("agent", scopes)


def test_a_file_that_was_edited_gives_no_token_the_admin_scope(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    forged = {"name": "sly", "secret": "s" * 40, "scopes": ["read", "admin"], "created_unix": 1.0}
    path.touch(mode=0o600)
    path.write_bytes(msgspec.json.encode({"tokens": [forged]}))
    grant = ClientTokens(TokenStore(path), MCP_GRANT).find(b"Bearer " + b"s" * 40, 1.0)
    assert grant is not None
    assert grant.scopes == {READ}


@pytest.mark.parametrize(
    ("name", "secret"), [("sly", ""), ("sly", "short"), ("app:ann", "s" * 40), ("a\nb", "s" * 40), ("shared", "s" * 40)]
)
def test_an_edited_token_that_could_be_guessed_or_forges_a_name_opens_nothing(
    tmp_path: Path, name: str, secret: str
) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    good = store.create("good").secret
    entries = msgspec.json.decode(store.path.read_bytes())["tokens"]
    entries.append({"name": name, "secret": secret, "scopes": ["read"], "created_unix": 1.0})
    store.path.write_bytes(msgspec.json.encode({"tokens": entries}))
    tokens = ClientTokens(store, MCP_GRANT)
    for given in (secret, good):
        assert tokens.find(b"Bearer " + given.encode(), 1.0) is None
    assert tokens.find(b"Bearer", 1.0) is None
    with pytest.raises(Failed) as caught:
        store.read()
    assert repr(name) in caught.value.message


def test_a_missing_token_names_those_that_there_are(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    store.create("cursor")
    with pytest.raises(NotFound) as caught:
        store.revoke("codex")
    assert "cursor" in caught.value.hint


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"tokens":[1]}', b"\xff"])
def test_an_unreadable_file_opens_nothing_and_says_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokens.json"
    path.touch(mode=0o600)
    path.write_bytes(content)
    with pytest.raises(Failed):
        TokenStore(path).read()
    with logged() as lines:
        tokens = ClientTokens(TokenStore(path), MCP_GRANT)
        assert [tokens.find(b"Bearer x", float(at)) for at in range(3)] == [None] * 3
    assert len([line for line in lines if "tokens.json" in line]) == 1


def test_a_file_that_others_can_read_opens_nothing(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    secret = store.create("cursor").secret.encode()
    store.path.chmod(0o644)
    assert ClientTokens(store, MCP_GRANT).find(b"Bearer " + secret, 1.0) is None


@pytest.mark.parametrize("scheme", [b"Bearer ", b"bearer ", b"BEARER   "])
def test_the_scheme_may_be_written_in_any_case(tmp_path: Path, scheme: bytes) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    secret = store.create("cursor").secret.encode()
    tokens = ClientTokens(store, MCP_GRANT)
    found = tokens.find(scheme + secret, 1.0)
    assert found is not None and found.holder == "mcp@cursor"
    for wrong in (secret, b"Basic " + secret, scheme + secret[:-1], scheme + secret + b"x", b"", scheme):
        assert tokens.find(wrong, 1.0) is None


def test_a_token_that_did_not_change_keeps_its_grant_when_the_file_does(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    secret = b"Bearer " + store.create("one").secret.encode()
    tokens = ClientTokens(store, MCP_GRANT)
    before = tokens.find(secret, 1.0)
    store.create("two")
    tokens.refresh()
    assert tokens.find(secret, 2.0) is before is not None


def test_uses_are_kept_of_tokens_that_there_are_and_the_later_time_counts(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    store.create("one")
    store.write_last_uses({"one": 5.0, "gone": 6.0, "shared": 7.0})
    store.write_last_uses({"one": 4.0})
    assert store.last_uses() == {"one": 5.0, "shared": 7.0}
    assert stat.S_IMODE(store.used_path.stat().st_mode) == 0o600


# The endpoint


async def test_a_client_is_let_in_with_its_own_token_and_named_by_it(tmp_path: Path) -> None:
    async with with_tokens(tmp_path) as (rig, store):
        one, two = store.create("one"), store.create("two", [READ])
        await opened_with(rig, one.secret)
        await opened_with(rig, two.secret)
        await opened_with(rig, rig.token)
        grants = {session.grant.holder: session.grant for session in rig.server.sessions}
        assert set(grants) == {"mcp@one", "mcp@two", "mcp"}
        assert grants["mcp@one"].scopes == MCP_SCOPES
        assert grants["mcp@two"].scopes == {READ}
        assert not any(grant.may_relay_person for grant in grants.values())


async def test_a_read_only_token_may_not_control(tmp_path: Path) -> None:
    async with with_tokens(tmp_path, tools=Changing()) as (rig, store):
        wire = await opened_with(rig, store.create("reader", [READ]).secret)
        assert "error" not in await wire.ask(call("demo_echo", text="x"))
        refused = str(await wire.ask(call("demo_change")))
        assert "insufficient scope" in refused
        assert "mcp@reader" in refused


async def test_a_session_is_unknown_to_every_other_token(tmp_path: Path) -> None:
    async with with_tokens(tmp_path) as (rig, store):
        one, two = store.create("one").secret, store.create("two").secret
        wire = await opened_with(rig, one)
        for other in (two, rig.token):
            stranger = await rig.again(wire)
            stranger.headers["Authorization"] = f"Bearer {other}"
            assert (await stranger.post(PING)).status == 404
            assert (await stranger.request("DELETE", "/mcp")).status == 404
        assert (await wire.post(PING)).status == 200


async def test_a_session_of_a_client_cannot_be_used_on_the_unix_socket(tmp_path: Path) -> None:
    async with with_tokens(tmp_path, socket_path=tmp_path / "mcp.sock") as (rig, store):
        wire = await opened_with(rig, store.create("one").secret)
        inside = await rig.http_on_unix()
        inside.headers["Mcp-Session-Id"] = wire.headers["Mcp-Session-Id"]
        assert (await inside.post(PING)).status == 404


async def test_a_revoked_token_ends_its_sessions_and_nobody_elses(tmp_path: Path) -> None:
    async with with_tokens(tmp_path) as (rig, store):
        one, two = store.create("one").secret, store.create("two").secret
        gone, other = await opened_with(rig, one), await opened_with(rig, two)
        store.revoke("one")
        await left(rig, 1)
        assert (await gone.post(PING)).status == 401
        assert (await other.post(PING)).status == 200


@pytest.mark.parametrize("message", [dict, stateless])
async def test_a_revoked_token_ends_a_running_call_and_its_response(
    tmp_path: Path, message: Callable[[Json], Json]
) -> None:
    async with with_tokens(tmp_path) as (rig, store):
        wire = await opened_with(rig, store.create("one").secret)
        asked = message(call("demo_hang"))
        wire.send("POST", "/mcp", json.dumps(asked).encode(), envelope_headers(asked))
        await rig.tools.started.wait()
        store.revoke("one")
        async with asyncio.timeout(10):
            assert (await wire.receive()).status == 401
            await rig.tools.cancelled.wait()
        await until(lambda: not len(rig.server.calls))


async def test_a_revoked_token_ends_the_stream_of_its_session(tmp_path: Path) -> None:
    async with with_tokens(tmp_path) as (rig, store):
        wire = await opened_with(rig, store.create("one").secret)
        events = await open_events(await rig.again(wire))
        store.revoke("one")
        async with asyncio.timeout(10):
            while await events.block():
                pass


async def test_a_rotated_token_ends_what_the_old_secret_opened(tmp_path: Path) -> None:
    async with with_tokens(tmp_path) as (rig, store):
        old = store.create("one").secret
        wire = await opened_with(rig, old)
        new = store.rotate("one").secret
        await left(rig, 0)
        assert (await wire.post(PING)).status == 401
        await opened_with(rig, new)


async def test_a_rotated_shared_token_ends_its_sessions_and_leaves_those_of_clients(tmp_path: Path) -> None:
    async with with_tokens(tmp_path) as (rig, store):
        await opened_with(rig, rig.token)
        kept = await opened_with(rig, store.create("one").secret)
        (tmp_path / "mcp.token").write_text("another\n")
        await left(rig, 1)
        assert (await kept.post(PING)).status == 200


@pytest.mark.parametrize("change", ["revoked", "rotated", "shared"])
async def test_a_server_hears_that_a_token_counts_no_more(tmp_path: Path, change: str) -> None:
    """A client of the stateless era has no session that would end."""
    async with with_tokens(tmp_path) as (rig, store):
        store.create("one")
        store.create("two")
        ended: list[str] = []
        rig.server.on_access_end.append(lambda grant: ended.append(grant.holder))
        await opened_with(rig, store.get("two").secret)  # the file is read by now
        if change == "shared":
            (tmp_path / "mcp.token").write_text("another\n")
        else:
            (store.revoke if change == "revoked" else store.rotate)("one")
        await until(lambda: ended)
        assert ended == ["mcp" if change == "shared" else "mcp@one"]


async def test_the_last_use_is_on_the_disk_after_a_stop(tmp_path: Path) -> None:
    async with with_tokens(tmp_path) as (rig, store):
        await opened_with(rig, store.create("one").secret)
        store.create("unused")
    assert set(store.last_uses()) == {"one"}


async def test_a_full_disk_does_not_stop_a_listener_from_stopping(tmp_path: Path) -> None:
    async with with_tokens(tmp_path) as (rig, store):
        await opened_with(rig, store.create("one").secret)
        store.used_path.mkdir()
        os.chmod(store.used_path, 0o700)
    assert store.last_uses() == {}


async def test_a_revoked_token_ends_a_stream_of_the_stateless_era(tmp_path: Path) -> None:
    listen = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
    message = stateless({**listen, "params": {"notifications": {"toolsListChanged": True}}})
    async with with_tokens(tmp_path) as (rig, store):
        wire = await rig.http()
        wire.headers["Authorization"] = f"Bearer {store.create('one').secret}"
        wire.send("POST", "/mcp", json.dumps(message).encode(), envelope_headers(message))
        assert (await wire.head())[0] == 200
        await until(lambda: len(rig.server.listening) == 1)
        store.revoke("one")
        async with asyncio.timeout(10):
            while await wire.chunk():
                pass
        assert len(rig.server.listening) == 0
