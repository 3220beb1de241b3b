"""Every row of the handshake's table, over a real socket."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from dari.daemon.peer import PeerCredentials
from dari.daemon.server import DaemonLimits
from dari.daemon.tokens import MCP, make_token, read_token
from tests.support.daemons import code, demo_daemon, session, wire


async def test_a_welcome_names_the_principal_and_its_scopes(run_dir: Path) -> None:
    async with demo_daemon(run_dir), wire(run_dir) as connection:
        welcome = (await connection.shake_hands(run_dir, "mcp"))["result"]
    assert uuid.UUID(welcome.pop("session_id")).version == 4
    assert welcome == {
        "protocol_version": 1,
        "principal": "mcp",
        "scopes": ["read", "rules.write", "control"],
        "principal_verified": False,
    }


async def test_a_client_type_is_taken_but_means_nothing(run_dir: Path) -> None:
    async with demo_daemon(run_dir), wire(run_dir) as connection:
        token = read_token(run_dir / "cli.token")
        reply = await connection.call("system.handshake", protocol_version=1, token=token, client_type="app", extra=[1])
    assert reply["result"]["principal"] == "cli"


@pytest.mark.parametrize("version", [0, 2, 99])
async def test_another_protocol_version_is_refused(version: int, run_dir: Path) -> None:
    async with demo_daemon(run_dir), wire(run_dir) as connection:
        reply = await connection.call("system.handshake", protocol_version=version, token="x")
    assert reply["error"] == {"code": 2, "message": f"protocol_version mismatch: expected 1, got {version}"}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"token": "x"},
        {"protocol_version": 1},
        {"protocol_version": "1", "token": "x"},
        {"protocol_version": 1.0, "token": "x"},
        {"protocol_version": True, "token": "x"},
        {"protocol_version": 1, "token": None},
        {"protocol_version": 1, "token": 7},
        {"protocol_version": 1, "token": "x", "client_type": None},
        {"protocol_version": 1, "token": "x", "client_type": 1},
    ],
)
async def test_a_missing_or_mistyped_member_is_code_2(params: dict[str, object], run_dir: Path) -> None:
    async with demo_daemon(run_dir), wire(run_dir) as connection:
        assert code(await connection.call("system.handshake", **params)) == 2


@pytest.mark.parametrize("token", ["", "garbage", make_token(b"k" * 32, MCP)])
async def test_a_bad_or_foreign_token_is_code_1(token: str, run_dir: Path) -> None:
    async with demo_daemon(run_dir), wire(run_dir) as connection:
        reply = await connection.call("system.handshake", protocol_version=1, token=token)
    assert code(reply) == 1
    assert reply["error"]["message"].startswith("token verify failed: ")


async def test_a_peer_that_cannot_be_identified_is_code_1(run_dir: Path) -> None:
    def identify(peer: PeerCredentials) -> str:
        raise LookupError(peer.pid)

    async with demo_daemon(run_dir, identify=identify), wire(run_dir) as connection:
        assert code(await connection.shake_hands(run_dir)) == 1


async def test_a_token_of_another_principal_is_code_8(run_dir: Path) -> None:
    async with demo_daemon(run_dir, identify=lambda peer: "mcp"), wire(run_dir) as connection:
        reply = await connection.shake_hands(run_dir, "app")
    assert reply["error"] == {"code": 8, "message": "token aud 'app' does not match principal 'mcp'"}


async def test_a_principal_that_the_platform_proves_is_reported_as_verified(run_dir: Path) -> None:
    async with demo_daemon(run_dir, identify=lambda peer: "mcp"), wire(run_dir) as connection:
        assert (await connection.shake_hands(run_dir, "mcp"))["result"]["principal_verified"] is True


@pytest.mark.parametrize("method", ["system.ping", "demo.echo", "no.such.method"])
async def test_nothing_is_allowed_or_revealed_before_the_handshake(method: str, run_dir: Path) -> None:
    async with demo_daemon(run_dir), wire(run_dir) as connection:
        reply = await connection.call(method)
    assert reply["error"] == {"code": 1, "message": "session not established"}


async def test_a_handshake_may_be_repeated_and_a_failed_one_ends_the_session(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir, "mcp") as connection:
        assert (await connection.shake_hands(run_dir, "app"))["result"]["principal"] == "app"
        assert code(await connection.call("system.handshake", protocol_version=1, token="bad")) == 1
        assert code(await connection.call("system.ping")) == 1


async def test_a_caller_that_says_nothing_is_dropped(run_dir: Path) -> None:
    limits = DaemonLimits(handshake_timeout_s=0.3)
    async with demo_daemon(run_dir, limits=limits), wire(run_dir) as silent, wire(run_dir) as chatty:
        chatty.send(b"", b" ")
        assert code(await chatty.ask({"jsonrpc": "2.0", "method": "system.ping"})) == 1
        assert await silent.ended()
        assert await chatty.ended()


async def test_a_session_may_be_idle_for_longer_than_a_handshake(run_dir: Path) -> None:
    limits = DaemonLimits(handshake_timeout_s=0.3)
    async with demo_daemon(run_dir, limits=limits), session(run_dir) as patient, wire(run_dir) as silent:
        assert await silent.ended()  # opened last, dropped first: the limit has passed for both
        assert (await patient.call("system.ping"))["result"] == {"pong": True}
