"""Who shares a server, how it is started, and what becomes of it when nobody needs it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from dari.bridge.upstream import subscriptions
from dari.bridge.upstream.caller import Caller
from dari.errors import TimedOut, Unavailable
from tests.support.bridge import LAB, ME, Place, lab, text_of
from tests.support.waiting import turn_until, until

pytestmark = pytest.mark.local_mcp

HELD = json.dumps({"steps": 1, "until": "/nowhere"}).encode()


def starts(place: Place) -> int:
    return sum(line.startswith("start") for line in place.noted())


async def test_nothing_is_started_before_it_is_used_and_then_once_for_all(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.upstream() as server:
        assert server.status().state == "configured" and starts(place) == 0
        pids = await asyncio.gather(*(server.call_tool("pid", b"{}", Caller(f"c{n}", f"c{n}")) for n in range(20)))
    assert len({text_of(pid) for pid in pids}) == 1
    assert starts(place) == 1


async def test_per_client_keeps_clients_apart_and_ends_with_them(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(tmp_path, isolation="per-client"))
    one, other = Caller("a", "s1"), Caller("b", "s2")
    async with place.upstream() as server:
        await server.tools()
        first = text_of(await server.call_tool("pid", b"{}", one))
        assert text_of(await server.call_tool("pid", b"{}", one)) == first
        assert text_of(await server.call_tool("pid", b"{}", other)) != first
        sessions = server.status().sessions
        await server.end_sessions(lambda session: session == "s1")
        assert server.status().sessions == sessions - 1
        assert text_of(await server.call_tool("pid", b"{}", one)) != first


async def test_per_call_gives_every_call_a_process_of_its_own(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(tmp_path, isolation="per-call"))
    async with place.upstream() as server:
        pids = {text_of(await server.call_tool("pid", b"{}", ME)) for _ in range(3)}
        assert len(pids) == 3
        assert server.status().sessions == 0


async def test_an_idle_server_ends_but_never_during_a_call(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(tmp_path, idleExitMs=50))
    release = tmp_path / "go"
    async with place.upstream() as server:
        arrived = asyncio.Event()
        given = json.dumps({"steps": 1, "until": str(release)}).encode()
        call = asyncio.create_task(server.call_tool("wait", given, Caller("t", on_progress=lambda _: arrived.set())))
        await arrived.wait()
        await asyncio.sleep(0.15)  # three idle times
        assert server.status().state == "ready"
        release.touch()
        assert text_of(await call) == "waited"
        await until(lambda: server.status().state == "idle")
        assert text_of(await server.call_tool("greet", b"{}", ME)) == "hello"
    assert starts(place) == 2


async def test_a_server_that_hangs_at_the_start_is_given_up_with_what_it_wrote(tmp_path: Path) -> None:
    source = (
        "import sys,time; print('waiting for the moon', file=sys.stderr, flush=True); sys.stdin.read(); time.sleep(9)"
    )
    entry = lab(tmp_path, args=["-c", source], initTimeoutMs=300)
    async with Place(tmp_path, entry).upstream() as server:
        with pytest.raises(TimedOut) as late:
            await server.call_tool("greet", b"{}", ME)
    assert "waiting for the moon" in late.value.hint


async def test_a_server_that_keeps_crashing_is_left_alone_and_says_why(tmp_path: Path) -> None:
    entry = lab(tmp_path, args=["-c", "import sys; sys.exit('no licence')"])
    entry["restart"] = {"policy": "on-failure", "maxRestarts": 1, "backoffMs": 1}
    async with Place(tmp_path, entry, circuit={"failures": 0}).upstream() as server:
        for _ in range(3):
            with pytest.raises(Unavailable) as refused:
                await server.tools()
        assert server.status().state == "crash-loop"
        assert "no licence" in refused.value.hint


async def test_one_dead_server_does_not_delay_the_others(tmp_path: Path) -> None:
    hanging = lab(tmp_path, args=["-c", "import sys; sys.stdin.read()"], initTimeoutMs=60_000) | {"id": "dead"}
    place = Place(tmp_path, lab(tmp_path), hanging)
    async with place.bridge() as bridge:
        view = bridge.view(place.around())
        waiting = asyncio.create_task(view.upstream("dead").tools())
        await asyncio.sleep(0)
        assert text_of(await view.upstream("lab").call_tool("greet", b"{}", ME)) == "hello"
        assert not waiting.done()
        waiting.cancel()


async def test_a_question_goes_to_the_one_client_that_uses_the_session(tmp_path: Path) -> None:
    asked: list[tuple[str, Any]] = []

    async def answer(method: str, params: Raw) -> Any:
        asked.append((method, json.loads(bytes(params))))
        return {"action": "accept", "content": {"name": "Ada"}}

    async with Place(tmp_path).upstream() as server:
        result = await server.call_tool("elicit", b"{}", Caller("a", "s1", ask=answer))
    assert json.loads(text_of(result)) == {"action": "accept", "content": {"name": "Ada"}}
    assert asked[0][0] == "elicitation/create" and asked[0][1]["message"] == "Who?"


async def test_a_question_is_not_brought_to_the_wrong_client(tmp_path: Path) -> None:
    async def answer(method: str, params: Raw) -> Any:
        raise AssertionError("nobody may be asked")

    async with Place(tmp_path).upstream() as server:
        arrived = asyncio.Event()
        held = Caller("b", "s2", on_progress=lambda _: arrived.set(), ask=answer)
        other = asyncio.create_task(server.call_tool("wait", HELD, held))
        await arrived.wait()
        refused = json.loads(text_of(await server.call_tool("elicit", b"{}", Caller("a", "s1", ask=answer))))
        other.cancel()
    assert "more than one client" in refused["refused"]["message"]


async def test_the_server_is_told_the_roots_of_its_profile(tmp_path: Path) -> None:
    allowed = [{"path": str(tmp_path / "inside"), "mode": "rw"}]
    entry = lab(tmp_path, allowedPaths=allowed, sandbox="off")
    async with Place(tmp_path, entry).upstream() as server:
        roots = json.loads(text_of(await server.call_tool("roots", b"{}", ME)))
    assert roots == {"roots": [{"uri": (tmp_path / "inside").as_uri()}]}


async def test_a_child_sees_the_callers_environment_as_far_as_it_is_named_and_nothing_else(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(tmp_path, inheritEnv=["EXTRA"], env={"OWN": "${GIVEN}"}))
    async with place.bridge() as bridge:
        server = bridge.view(place.around(EXTRA="1", GIVEN="2", SECRET="3")).upstream("lab")
        seen = json.loads(text_of(await server.call_tool("env", b"{}", ME)))
    assert (seen["EXTRA"], seen["OWN"], seen["HOME"]) == ("1", "2", str(place.home))
    assert "SECRET" not in seen and "DARI_HOME" not in seen


async def test_another_environment_means_another_server_only_where_it_matters(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(tmp_path, env={"LAB_SAYS": "${WORD}"}), lab(tmp_path) | {"id": "plain"})
    async with place.bridge() as bridge:
        one, other = bridge.view(place.around(WORD="one")), bridge.view(place.around(WORD="two", TERM="x"))
        assert text_of(await one.upstream("lab").call_tool("greet", b"{}", ME)) == "one"
        assert text_of(await other.upstream("lab").call_tool("greet", b"{}", ME)) == "two"
        assert one.upstream("plain") is other.upstream("plain")


async def test_the_era_is_remembered(tmp_path: Path) -> None:
    methods = tmp_path / "methods"
    source = f"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    open({str(methods)!r}, "a").write(message["method"] + "\\n")
    if "id" not in message:
        continue
    hello = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}}}}
    results = {{"initialize": hello, "tools/list": {{"tools": []}}}}
    result = results.get(message["method"])
    reply = {{"result": result}} if result else {{"error": {{"code": -32601, "message": "unknown"}}}}
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **reply}}), flush=True)
"""
    place = Place(tmp_path, {"id": "old", "kind": "stdio", "command": sys.executable, "args": ["-c", source]})
    for _ in range(2):
        async with place.upstream("old") as server:
            await server.tools(fresh=True)
    assert methods.read_text().split().count("server/discover") == 1
    assert methods.read_text().split().count("initialize") == 2


async def test_a_person_who_is_asked_has_more_time_than_the_call(tmp_path: Path) -> None:
    async def answer(method: str, params: Raw) -> Any:
        await asyncio.sleep(0.5)  # five times what the call has
        return {"action": "decline"}

    async with Place(tmp_path, lab(tmp_path, timeoutMs=100)).upstream() as server:
        await server.tools()
        result = await server.call_tool("elicit", b"{}", Caller("a", "s1", ask=answer))
    assert json.loads(text_of(result)) == {"action": "decline"}


async def test_a_client_that_does_not_answer_does_not_keep_others_from_being_asked(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def silent(method: str, params: Raw) -> Any:
        asked.set()
        await asyncio.Event().wait()

    async def answer(method: str, params: Raw) -> Any:
        return {"action": "decline"}

    async with Place(tmp_path).upstream() as server:
        absent = asyncio.create_task(server.call_tool("elicit", b"{}", Caller("b", "s2", ask=silent)))
        await asked.wait()
        result = await server.call_tool("elicit", b"{}", Caller("a", "s1", ask=answer))
        absent.cancel()
    assert json.loads(text_of(result)) == {"action": "decline"}


async def test_a_profile_that_changes_ends_the_old_server_after_its_last_call(tmp_path: Path) -> None:
    place = Place(tmp_path)
    release = tmp_path / "go"
    async with place.bridge() as bridge:
        view = bridge.view(place.around())
        old = view.upstream("lab")
        pid = text_of(await old.call_tool("pid", b"{}", ME))
        arrived = asyncio.Event()
        given = json.dumps({"steps": 1, "until": str(release)}).encode()
        call = asyncio.create_task(old.call_tool("wait", given, Caller("t", on_progress=lambda _: arrived.set())))
        await arrived.wait()
        place.write(lab(tmp_path, env={"LAB_SAYS": "new"}))
        new = view.upstream("lab")
        assert new is not old
        assert text_of(await new.call_tool("greet", b"{}", ME)) == "new"
        assert Path(f"/proc/{pid}").exists()
        release.touch()
        assert text_of(await call) == "waited"
        await until(lambda: not Path(f"/proc/{pid}").exists())
        assert [one.id for one in bridge.pool] == ["lab"]


async def test_a_call_during_a_stop_is_made_on_a_new_start(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.upstream() as server:
        pid = text_of(await server.call_tool("pid", b"{}", ME))
        stopping = asyncio.create_task(server.stop())
        await turn_until(lambda: server.status().state != "ready")
        assert not stopping.done()
        assert text_of(await server.call_tool("pid", b"{}", ME)) != pid
        await stopping


async def test_a_call_after_the_end_of_its_server_leaves_no_process_behind(tmp_path: Path) -> None:
    """A gateway may not have heard yet that the profile was changed."""
    place = Place(tmp_path)
    async with place.upstream() as server:
        first = text_of(await server.call_tool("pid", b"{}", ME))
        closing = asyncio.create_task(server.close())
        await turn_until(lambda: server.status().state != "ready")
        assert not closing.done()
        second = text_of(await server.call_tool("pid", b"{}", ME))
        await closing
        assert first != second
        await until(lambda: not Path(f"/proc/{first}").exists() and not Path(f"/proc/{second}").exists())
        assert server.status().sessions == 0


async def test_a_call_that_is_given_up_while_its_own_process_starts_leaves_none(tmp_path: Path) -> None:
    """The second start hangs: the process writes its number and says nothing."""
    gate, pids = tmp_path / "gate", tmp_path / "pids"
    source = (
        f"import os, runpy, sys\nif os.path.exists({str(gate)!r}):\n"
        f"    open({str(pids)!r}, 'a').write(f'{{os.getpid()}} ')\n    sys.stdin.read()\n"
        f"runpy.run_path({str(LAB)!r}, run_name='__main__')"
    )
    place = Place(tmp_path, lab(tmp_path, args=["-c", source], isolation="per-call", initTimeoutMs=60_000))
    async with place.upstream() as server:
        await server.tools()
        gate.touch()
        call = asyncio.create_task(server.call_tool("greet", b"{}", ME))
        await until(lambda: pids.exists() and pids.read_text().endswith(" "))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        pid = pids.read_text().split()[-1]
        await until(lambda: not Path(f"/proc/{pid}").exists())
        assert list(server._sessions) == []


async def test_what_a_server_of_one_process_per_call_is_asked_beside_calls_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "RESUBSCRIBE_DELAY_S", 0.01)
    place = Place(tmp_path, lab(tmp_path, isolation="per-call"))
    updated: asyncio.Queue[str] = asyncio.Queue()
    async with place.upstream() as server:
        assert (await server.about()).name == "lab"
        assert list(server._sessions) == []
        server.resource_updates.subscribe(updated.put_nowait)
        await server.subscribe("lab://one")
        assert await updated.get() == "lab://one"
        await server.unsubscribe("lab://one")
        await server.subscribe("lab://refused")
        begun = starts(place)
        await until(lambda: starts(place) >= begun + 3)
        assert len(list(server._sessions)) <= 1
        await server.unsubscribe("lab://refused")
        assert list(server._sessions) == []
