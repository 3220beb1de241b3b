"""Who may connect over TCP: a stolen token is worth nothing to another user of this machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dari.errors import InvalidInput
from dari.transport import peer_uids
from dari.transport.peer_uids import PeerCheck, read_uids
from dari.transport.token_file import TokenFile
from tests.support.transports import Rig, logged, running
from tests.support.wire import HttpReply, initialize

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the user of a TCP socket")

REPLAY = """
import encodings.idna, http.client, os, sys
if os.geteuid() == 0:
    os.setuid(int(sys.argv[1]))
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]), timeout=10)
headers = {"Authorization": "Bearer " + sys.argv[3], "Content-Type": "application/json", "Accept": "application/json"}
for _ in range(2):
    connection.request(sys.argv[4], sys.argv[5], sys.argv[6] or None, headers)
    answer = connection.getresponse()
    print(answer.status, answer.read().decode())
"""
INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"thief","version":"1"}}}'
)
# Only root can be somebody else; without root the hub takes itself for another user, and we are the stranger.
STRANGER = 65534 if os.geteuid() == 0 else os.geteuid()
OWNER = 0 if os.geteuid() == 0 else os.geteuid() + 1


async def replay(rig: Rig, uid: int, *request: str) -> str:
    """What another user gets who has the token."""
    words = [sys.executable, "-c", REPLAY, str(uid), str(rig.port), rig.token, *request]
    done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout


async def answer_to_us(rig: Rig, target: str = "/mcp") -> HttpReply:
    wire = await rig.http()
    return await (wire.post(initialize()) if target == "/mcp" else wire.request("GET", target))


def owned_by(rig: Rig, uid: int, *further: int) -> None:
    rig.endpoint.guard.peers = PeerCheck(further, own_uid=uid)


def refuse_us(rig: Rig) -> None:
    """As if somebody else ran the hub: our connections are those of another user then."""
    owned_by(rig, os.geteuid() + 1)


@pytest.mark.parametrize("request_", [("POST", "/mcp", INITIALIZE), ("GET", "/mcp", ""), ("GET", "/healthz", "")])
async def test_another_user_with_the_right_token_is_refused(tmp_path: Path, request_: tuple[str, ...]) -> None:
    async with running(token_path=tmp_path / "token") as rig:
        owned_by(rig, OWNER)
        shown = await replay(rig, STRANGER, *request_)
        assert [line[:3] for line in shown.splitlines()] == ["403", "403"]
        assert f"uid {STRANGER}" in shown and "--allow-uid" in shown
        assert len(rig.hub.sessions) == 0


async def test_a_user_named_by_option_may_connect_and_needs_the_token(tmp_path: Path) -> None:
    async with running(token_path=tmp_path / "token") as rig:
        owned_by(rig, OWNER, STRANGER)
        assert (await replay(rig, STRANGER, "POST", "/mcp", INITIALIZE)).startswith("200 ")
        rig.endpoint.guard.token = TokenFile(tmp_path / "other")
        assert (await replay(rig, STRANGER, "POST", "/mcp", INITIALIZE)).startswith("401 ")


async def test_a_refused_peer_learns_nothing_about_its_token(tmp_path: Path) -> None:
    async with running(token_path=tmp_path / "token") as rig:
        refuse_us(rig)
        right, wrong = await rig.http(), await rig.http()
        answers = [await right.post(initialize()), await wrong.post(initialize(), Authorization="Bearer no")]
        assert answers[0].status == 403
        assert answers[0].body == answers[1].body
        assert len(rig.hub.sessions) == 0


@pytest.mark.parametrize("target", ["/mcp", "/healthz", "/p/any/mcp", "/nowhere"])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
async def test_every_address_and_every_path_asks_whose_the_connection_is(host: str, target: str) -> None:
    async with running(http_bind=host) as rig:
        wire = await rig.http("127.0.0.1" if host.startswith("::ffff") else host)
        assert (await wire.request("GET", "/healthz")).status == 200
        refuse_us(rig)
        wire = await rig.http("127.0.0.1" if host.startswith("::ffff") else host)
        assert (await wire.request("GET", target)).status == 403


async def test_the_user_is_asked_for_once_per_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(peer_uids, "tcp_peer_uid", lambda peer, own: asked.append(peer) or os.geteuid())
    async with running() as rig:
        wire = await rig.http()
        for _ in range(20):
            assert (await wire.request("GET", "/healthz")).status == 200
        assert len(asked) == 1


async def test_a_local_peer_that_nobody_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_uids, "tcp_peer_uid", lambda peer, own: None)
    async with running() as rig:
        assert (await answer_to_us(rig)).status == 403


def test_another_machine_has_no_user_here_and_is_left_to_the_token() -> None:
    assert PeerCheck().refusal(("203.0.113.9", 40000), ("198.51.100.1", 3847)) is None


async def test_a_stranger_that_tries_on_fills_no_log() -> None:
    async with running() as rig:
        refuse_us(rig)
        with logged() as lines:
            for _ in range(5):
                assert (await answer_to_us(rig)).status == 403
        assert len([line for line in lines if "event=refused" in line]) == 1


async def test_any_lets_every_user_connect_and_says_so() -> None:
    with logged() as lines:
        async with running(allowed_uids=None) as rig:
            assert (await answer_to_us(rig)).status == 200
    assert [line for line in lines if "event=unchecked" in line and "--allow-uid any" in line]


def test_users_are_named_by_number_or_by_login_name() -> None:
    assert read_uids(["65534", "root"]) == (65534, 0)
    assert read_uids([]) == ()
    assert read_uids(["any", "0"]) is None


@pytest.mark.parametrize("name", ["", "-1", "4294967295", "no such user", "٣", "1.0"])
def test_what_names_no_user_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="--allow-uid"):
        read_uids([name])


@pytest.mark.parametrize(("host", "is_told"), [("0.0.0.0", True), ("::", True), ("127.0.0.1", False), ("::1", False)])
async def test_a_listener_that_other_machines_reach_is_warned_about(host: str, is_told: bool) -> None:
    with logged() as lines:
        async with running(http_bind=host):
            pass
    assert bool([line for line in lines if "event=exposed" in line and host in line]) is is_told
