"""Many clients, many servers, large results, servers that die: no reply is lost or crossed, and nothing grows."""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import pytest

from dari.bridge.upstream.caller import Caller
from dari.errors import DariError
from tests.support.bridge import ME, Place, lab, text_of

pytestmark = pytest.mark.local_mcp

SERVERS, CLIENTS, CALLS = 10, 100, 20


@pytest.fixture(autouse=True)
def private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def many(root: Path, **fields: Any) -> Place:
    return Place(root, *(lab(root, **fields) | {"id": f"lab{number}"} for number in range(SERVERS)))


async def test_a_hundred_clients_over_ten_servers_get_their_own_replies(tmp_path: Path) -> None:
    place = many(tmp_path, initTimeoutMs=60_000)
    async with place.bridge() as bridge:
        view = bridge.view(place.around())

        async def client(number: int) -> int:
            caller = Caller(f"client{number}", f"s{number}")
            good = 0
            for turn in range(CALLS):
                server = view.upstream(f"lab{(number + turn) % SERVERS}")
                given = json.dumps({"a": number * 1000, "b": turn}).encode()
                good += text_of(await server.call_tool("add", given, caller)) == str(number * 1000 + turn)
            return good

        assert await asyncio.gather(*map(client, range(CLIENTS))) == [CALLS] * CLIENTS
        assert sorted(status.sessions for status in bridge.statuses()) == [1] * SERVERS
        assert all(status.calls == 0 for status in bridge.statuses())
        assert bridge.audit is not None and bridge.audit.flush()
    starts = [line for line in place.noted() if line.startswith("start")]
    assert len(starts) == SERVERS


async def test_servers_that_die_under_load_cost_their_own_calls_and_no_others(tmp_path: Path) -> None:
    restart = {"policy": "on-failure", "maxRestarts": 1000, "backoffMs": 1}
    place = Place(
        tmp_path, *(lab(tmp_path, restart=restart, circuit={"failures": 0}) | {"id": f"lab{n}"} for n in range(2))
    )
    async with place.bridge() as bridge:
        frail, steady = (bridge.view(place.around()).upstream(f"lab{n}") for n in range(2))
        outcomes: list[str] = []

        async def on_frail(number: int) -> None:
            try:
                if number % 10 == 0:
                    await frail.call_tool("die", b"{}", ME)
                given = json.dumps({"a": number, "b": 1}).encode()
                assert text_of(await frail.call_tool("add", given, ME)) == str(number + 1)
                outcomes.append("ok")
            except DariError as error:
                outcomes.append(error.name)

        async def on_steady(number: int) -> bool:
            given = json.dumps({"a": number, "b": 1}).encode()
            return text_of(await steady.call_tool("add", given, ME)) == str(number + 1)

        waits = [on_frail(number) for number in range(50)]
        results = await asyncio.gather(*map(on_steady, range(200)), *waits)
        assert all(results[:200])
        assert len(outcomes) == 50 and set(outcomes) <= {"ok", "unavailable"}
        assert text_of(await frail.call_tool("greet", b"{}", ME)) == "hello"


async def test_fifty_megabytes_come_whole_and_leave_nothing_behind(tmp_path: Path) -> None:
    async with Place(tmp_path, lab(tmp_path, timeoutMs=60_000)).upstream() as server:
        await server.tools()
        before = _resident_kb()
        for _ in range(2):
            result = await server.call_tool("big", b'{"bytes":50000000}', ME)
            assert len(bytes(result)) > 50_000_000
            del result
            result = await server.call_tool("big", b'{"bytes":50000000}', Caller("model", for_model=True))
            assert len(bytes(result)) > 50_000_000
            del result
        gc.collect()
        assert _resident_kb() - before < 150_000  # one result may still be in the allocator's hands, more may not
        assert text_of(await server.call_tool("greet", b"{}", ME)) == "hello"


async def test_a_flood_of_calls_does_not_grow(tmp_path: Path) -> None:
    async with Place(tmp_path).upstream() as server:
        tasks = len(asyncio.all_tasks())

        async def some(count: int) -> None:
            for _ in range(count):
                await server.call_tool("greet", b"{}", ME)

        await some(50)
        steady = len(asyncio.all_tasks())
        before = _resident_kb()
        await asyncio.gather(*(some(50) for _ in range(20)))
        assert len(asyncio.all_tasks()) <= max(tasks, steady)
        assert _resident_kb() - before < 20_000
        assert server.status().calls == 0


def _resident_kb() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0
