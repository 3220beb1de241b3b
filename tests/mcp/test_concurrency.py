"""Requests run side by side: a slow one holds nobody up, and an id is used by one of them at a time."""

from __future__ import annotations

import pytest

from tests.support.mcp_server import VERSIONS, Rig, ready, request, text_of
from tests.support.wire import Json, call, stateless


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_slow_call_does_not_hold_up_ping(version: str) -> None:
    rig = await ready(version)
    rig.send(call("demo_hang", "slow"))
    await rig.tools.started.wait()
    assert (await rig.ask(request("ping", "fast")))["id"] == "fast"
    rig.tools.release.set()
    assert (await rig.next())["id"] == "slow"


async def test_replies_come_in_the_order_in_which_calls_end() -> None:
    rig = await ready()
    rig.send(call("demo_hang", "slow"))
    rig.send(call("demo_echo", "task", text="a"))
    rig.send(call("demo_quick", "at once", text="a"))
    rig.send(stateless(request("tools/list", "other era")))
    await rig.tools.started.wait()
    first = [(await rig.next())["id"] for _ in range(3)]
    assert sorted(first) == ["at once", "other era", "task"]
    rig.tools.release.set()
    assert (await rig.next())["id"] == "slow"


async def test_many_calls_in_flight_each_get_their_own_reply() -> None:
    rig = await ready()
    for number in range(300):
        rig.send(call("demo_echo", number, text=f"<{number}>"))
    replies = [await rig.next() for _ in range(300)]
    assert {reply["id"]: reply["result"]["structuredContent"]["text"] for reply in replies} == {
        number: f"<{number}>" for number in range(300)
    }
    assert not rig.wire.session.running


@pytest.mark.parametrize("envelope", [False, True])
@pytest.mark.parametrize("message", [call("demo_echo", "same", text="a"), request("tools/list", "same")])
async def test_an_id_in_flight_is_refused_and_the_first_call_goes_on(message: Json, envelope: bool) -> None:
    rig = await ready()
    rig.send(call("demo_hang", "same"))
    await rig.tools.started.wait()
    refused = await rig.ask(stateless(message) if envelope else message)
    assert (refused["id"], refused["error"]["code"]) == ("same", -32600)
    assert "'same'" in refused["error"]["message"]
    rig.tools.release.set()
    assert text_of(await rig.next()) == "released"


async def test_an_id_is_free_again_after_its_reply() -> None:
    rig = await ready()
    for _ in range(3):
        assert (await rig.ask(call("demo_echo", "same", text="a")))["id"] == "same"


async def test_a_number_and_its_text_are_two_ids() -> None:
    rig = await ready()
    rig.send(call("demo_hang", 1))
    await rig.tools.started.wait()
    assert (await rig.ask(call("demo_echo", "1", text="a")))["id"] == "1"
    rig.tools.release.set()
    assert (await rig.next())["id"] == 1


async def test_two_clients_may_use_one_id_at_once() -> None:
    rig = await ready()
    other = Rig(rig.server)
    await other.agree()
    for one in (rig, other):
        one.send(call("demo_hang", 1))
    await rig.tools.started.wait()
    rig.tools.release.set()
    assert text_of(await rig.next()) == text_of(await other.next()) == "released"
