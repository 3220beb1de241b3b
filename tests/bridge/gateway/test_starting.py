"""Servers start in turns; what is known is listed meanwhile; one that hangs costs nobody anything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from dari.bridge.children.start_queue import StartQueue
from dari.bridge.service import Bridge
from tests.bridge.children.heavy import heavy, most_at_once, starts
from tests.support.bridge import ME
from tests.support.child_servers import server
from tests.support.gateway import House, called, house, lab, replied, seen, silent, text_of
from tests.support.mcp_server import request

pytestmark = pytest.mark.local_mcp

WAITS_S = 60.0
MANY = 10


@pytest.fixture(autouse=True)
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bridge, "start_queue", property(_queue))


def _queue(bridge: Bridge) -> StartQueue:
    queue: StartQueue = vars(bridge).setdefault("two_at_once", StartQueue(2))
    return queue


def greets_only(id: str = "mute") -> dict[str, Any]:
    """One that agrees on a protocol and never lists anything."""
    words = server().command
    return {"id": id, "kind": "stdio", "command": words[0], "args": list(words[1:]), "timeoutMs": 60_000}


def held_up(id: str, gate: Path) -> dict[str, Any]:
    """One that answers nothing before the gate is there."""
    source = f"import os, time, runpy\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
    source += f"runpy.run_path({lab()['args'][0]!r}, run_name='__main__')"
    return {"id": id, "kind": "stdio", "command": sys.executable, "args": ["-c", source], "initTimeoutMs": 60_000}


async def everybody_is_listed(home: House, count: int) -> None:
    await home.until(lambda: sum(name.endswith("__add") for name in home.server.registry.tools) == count)


async def test_the_hub_starts_its_servers_in_turns(tmp_path: Path) -> None:
    many = [heavy(f"heavy{number}", tmp_path) for number in range(MANY)]
    async with house(tmp_path, *many) as home:
        await everybody_is_listed(home, MANY)
    assert len(starts(tmp_path)) == 2 * MANY
    assert most_at_once(tmp_path) == 2


async def test_a_server_in_the_queue_is_shown_as_queued_and_its_time_has_not_begun(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slow = [held_up(f"slow{number}", gate) for number in range(2)]
    async with house(tmp_path, *slow, lab(initTimeoutMs=5000)) as home:
        states = {one.id: one.state for one in home.bridge.statuses()}
        await seen(lambda: home.bridge.start_queue.waiting == ("lab",))
        states = {one.id: one.state for one in home.bridge.statuses()}
        assert states == {"slow0": "starting", "slow1": "starting", "lab": "queued"}
        gate.touch()
        await everybody_is_listed(home, 3)


async def test_a_call_goes_before_the_servers_that_wait_in_the_background(tmp_path: Path) -> None:
    many = [heavy(f"heavy{number}", tmp_path, 3_000_000) for number in range(6)]
    async with house(tmp_path, *many) as home:
        await seen(lambda: len(home.bridge.start_queue.waiting) == 4)
        last = home.bridge.view(home.place.around()).upstream("heavy5")
        await last.call_tool("add", b'{"a":1,"b":2}', ME)
        begun = [id for word, id in starts(tmp_path) if word == "begin"]
        assert begun.index("heavy5") <= 2, "only the two whose turn it was may be before it"
        await everybody_is_listed(home, 6)


async def test_servers_that_only_wait_do_not_keep_others_from_starting(tmp_path: Path) -> None:
    hanging = [silent(f"silent{number}") for number in range(4)]
    async with house(tmp_path, *hanging, lab()) as home:
        await everybody_is_listed(home, 1)
        assert {one.state for one in home.bridge.statuses() if one.id.startswith("silent")} == {"starting"}


@pytest.mark.parametrize("hanging", [silent, greets_only], ids=["never answers", "greets and lists nothing"])
async def test_one_that_hung_before_costs_a_new_client_nothing(tmp_path: Path, hanging: Any) -> None:
    others = [lab(f"lab{number}") for number in range(3)]
    async with house(tmp_path, *others, hanging()) as home:
        await everybody_is_listed(home, 3)
        await seen(lambda: not home.bridge.start_queue.waiting)
    # Without the others nothing is known: still nobody waits.
    for servers in ([*others, hanging()], [hanging()]):
        async with house(tmp_path, *servers) as home:
            home.front.gateway.settling.limit_s = WAITS_S
            settle = home.server.registry.settle
            assert settle is not None and settle("tools") is None
            assert len([name for name in await home.names() if name.endswith("__add")]) == len(servers) - 1


async def test_one_that_is_new_and_hangs_costs_nothing_where_others_are_known(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
    async with house(tmp_path, lab(), silent()) as home:
        home.front.gateway.settling.limit_s = WAITS_S
        assert "lab__add" in await home.names()


async def test_a_client_that_comes_while_a_server_hangs_in_its_start_does_not_wait(tmp_path: Path) -> None:
    async with house(tmp_path, silent()) as home:
        (mount,) = home.front.gateway.mounts
        await seen(lambda: mount.upstream.status().state == "starting")
        mount.upstream._first_try_s -= 10.0  # type: ignore[operator]
        home.front.gateway.settling.limit_s = WAITS_S
        assert await home.names() == []


async def test_a_call_is_answered_while_many_others_start(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
    many = [heavy(f"heavy{number}", tmp_path, 100_000) for number in range(12)]
    async with house(tmp_path, *many, lab()) as home:
        assert "lab__add" in await home.names(), "from memory"
        await home.agree()
        assert text_of(await replied(home.wire, called("lab__add", a=1, b=2))) == "3"


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
async def test_a_tool_is_known_in_the_turn_of_the_loop_in_which_its_list_comes(tmp_path: Path, method: str) -> None:
    async with house(tmp_path, lab()) as home:
        await home.agree()
        home.front.gateway.settling.close()  # as in a hub that has run for a while
        (mount,) = home.front.gateway.mounts
        asks = called("lab__greet") if method == "tools/call" else request(method, 1)
        mount.upstream.changes.subscribe(lambda kind: home.send(asks) if kind == "tools" else None)
        while "method" in (reply := await home.next()):
            pass
        assert "error" not in reply
        assert method == "tools/call" or "lab__greet" in [one["name"] for one in reply["result"]["tools"]]
