"""A call to a real server, and everything that can stand in its way."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dari.bridge.upstream import calls
from dari.bridge.upstream.caller import Caller
from dari.core.audit.query import query
from dari.core.context import LoggingMessage, Progress
from dari.errors import Denied, InvalidInput, NotFound, TimedOut, Unavailable
from dari.mcp.client.errors import RemoteError
from tests.support.bridge import LAB, ME, Place, lab, text_of
from tests.support.waiting import until

pytestmark = pytest.mark.local_mcp


async def test_a_result_comes_back_as_the_server_wrote_it(tmp_path: Path) -> None:
    async with Place(tmp_path).upstream() as server:
        result = await server.call_tool("add", b'{"a":1,"b":2}', ME)
    assert json.loads(bytes(result)) == {"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}}


async def test_a_tool_that_fails_is_a_result_and_a_server_that_refuses_is_an_error(tmp_path: Path) -> None:
    async with Place(tmp_path).upstream() as server:
        assert json.loads(bytes(await server.call_tool("fail", b"{}", ME)))["isError"] is True
        with pytest.raises(RemoteError) as refused:
            await server.call_tool("refuse", b"{}", ME)
    assert (refused.value.remote_code, refused.value.message, refused.value.data) == (-32123, "not today", {"x": 1})


async def test_arguments_that_do_not_fit_the_schema_are_never_sent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.upstream() as server:
        with pytest.raises(InvalidInput, match="'add'") as refused:
            await server.call_tool("add", b'{"a":"one"}', ME)
        with pytest.raises(InvalidInput):
            await server.call_tool("add", b"[1]", ME)
    assert "a, b" in refused.value.hint
    assert "call add" not in place.noted()


async def test_an_unknown_tool_gets_a_suggestion(tmp_path: Path) -> None:
    async with Place(tmp_path).upstream() as server:
        with pytest.raises(NotFound, match="'gret'") as refused:
            await server.call_tool("gret", b"{}", ME)
    assert "'greet'" in refused.value.hint


async def test_filters_and_new_names_hold_for_lists_and_calls(tmp_path: Path) -> None:
    rules = {"allow": ["g*", "pid", "add"], "deny": ["pid"], "rename": {"greet": "hello"}, "describe": {"add": "Sums"}}
    async with Place(tmp_path, lab(tmp_path, tools=rules)).upstream() as server:
        tools = {tool.name: tool for tool in await server.tools()}
        assert sorted(tools) == ["add", "hello"]
        assert tools["add"].shown["description"] == "Sums"
        assert text_of(await server.call_tool("hello", b"{}", ME)) == "hello"
        with pytest.raises(Denied, match="'pid'"):
            await server.call_tool("pid", b"{}", ME)


async def test_progress_and_log_messages_reach_the_caller(tmp_path: Path) -> None:
    told: list[Progress] = []
    logged: list[LoggingMessage] = []
    caller = Caller("tester", on_progress=told.append, on_log=logged.append, log_level="debug")
    async with Place(tmp_path).upstream() as server:
        await server.call_tool("wait", b'{"steps":2}', caller)
        await server.call_tool("log", b"{}", caller)
    assert [(one.progress, one.total, one.message) for one in told] == [(1, 2, "on it"), (2, 2, "on it")]
    assert [(one.level, one.data, one.logger) for one in logged] == [("warning", "careful", "lab")]


async def test_what_a_server_logs_during_a_call_is_not_shown_to_other_clients(tmp_path: Path) -> None:
    async with Place(tmp_path).upstream() as server:
        shown: list[LoggingMessage] = []
        server.logs.subscribe(shown.append)
        callers = (Caller("a", session="a"), Caller("b", session="b"))
        await asyncio.gather(*(server.call_tool("log", b"{}", caller) for caller in callers))
        assert shown == []
        assert sum("careful" in line.text for line in server.journal.lines(100)) == 2


async def test_a_caller_who_leaves_cancels_the_call_on_the_server(tmp_path: Path) -> None:
    place = Place(tmp_path)
    arrived = asyncio.Event()
    caller = Caller("tester", on_progress=lambda _: arrived.set())
    async with place.upstream() as server:
        call = asyncio.create_task(server.call_tool("wait", b'{"steps":1,"until":"/nowhere"}', caller))
        await arrived.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: any(line.startswith("cancelled") for line in place.noted()))
        assert text_of(await server.call_tool("greet", b"{}", ME)) == "hello"


async def test_a_call_has_the_time_of_its_profile(tmp_path: Path) -> None:
    async with Place(tmp_path, lab(tmp_path, timeoutMs=50)).upstream() as server:
        await server.tools()
        with pytest.raises(TimedOut):
            await server.call_tool("wait", b'{"steps":1,"until":"/nowhere"}', ME)


async def test_a_server_that_dies_in_a_call_says_why_and_works_again_afterwards(tmp_path: Path) -> None:
    restart = {"policy": "on-failure", "maxRestarts": 3, "backoffMs": 1}
    async with Place(tmp_path, lab(tmp_path, restart=restart)).upstream() as server:
        with pytest.raises(Unavailable, match="exit status 7") as died:
            await server.call_tool("die", b"{}", ME)
        assert "I cannot go on" in died.value.hint
        assert text_of(await server.call_tool("greet", b"{}", ME)) == "hello"
        assert server.status().restarts == 1


async def test_a_call_that_may_be_repeated_is_made_again_when_the_server_died(tmp_path: Path) -> None:
    restart = {"policy": "on-failure", "maxRestarts": 3, "backoffMs": 1}
    place = Place(tmp_path, lab(tmp_path, restart=restart))
    async with place.upstream() as server:
        marker = json.dumps({"marker": str(tmp_path / "died")}).encode()
        assert text_of(await server.call_tool("die_once", marker, ME)) == "alive"
    assert place.noted().count("call die_once") == 2


async def test_a_large_result_is_cut_where_the_profile_says_so_and_whole_elsewhere(tmp_path: Path) -> None:
    entry = lab(tmp_path, limits={"maxResultBytes": 2000})
    async with Place(tmp_path, entry).upstream() as server:
        cut = await server.call_tool("big", b'{"bytes":5000}', ME)
    assert len(bytes(cut)) <= 2000 and "Left out" in str(json.loads(bytes(cut)))
    async with Place(tmp_path).upstream() as server:
        assert len(text_of(await server.call_tool("big", b'{"bytes":5000000}', ME))) == 5_000_000
        model = Caller("m", for_model=True)
        assert len(text_of(await server.call_tool("big", b'{"bytes":5000000}', model))) == 5_000_000


async def test_what_a_model_would_not_see_is_taken_out_for_it_only(tmp_path: Path) -> None:
    async with Place(tmp_path).upstream() as server:
        assert text_of(await server.call_tool("hidden", b"{}", ME)) == "plain\u200b\u202etext\x1b[2J"
        cleaned = text_of(await server.call_tool("hidden", b"{}", Caller("model", for_model=True)))
    assert "\u202e" not in cleaned and "\x1b" not in cleaned and cleaned.startswith("plain")


async def test_every_call_is_in_the_audit_log_with_its_outcome_and_without_secrets(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.bridge() as bridge:
        server = bridge.view(place.around()).upstream("lab")
        await server.call_tool("greet", b'{"api_key":"sk-aaaaaaaaaaaaaaaaaaaaaaaa"}', ME)
        await server.call_tool("fail", b"{}", ME)
        for name, error in (("refuse", RemoteError), ("nope", NotFound)):
            with pytest.raises(error):
                await server.call_tool(name, b"{}", ME)
        assert bridge.audit is not None and bridge.audit.flush()
    calls = [record for record in query(tmp_path / "state/audit") if record.kind == "call"]
    shown = [(record.server, record.tool, record.outcome, record.who) for record in calls]
    outcomes = [("greet", "ok"), ("fail", "tool_error"), ("refuse", "error"), ("nope", "error")]
    assert sorted(shown) == sorted(("lab", tool, outcome, "tester") for tool, outcome in outcomes)
    assert all("sk-aaaa" not in str(record.shown_arguments) for record in calls)


async def test_secrets_of_the_environment_do_not_come_back_in_errors(tmp_path: Path) -> None:
    entry = lab(tmp_path, args=["-c", "import os,sys; sys.exit('bad key ' + os.environ['API_KEY'])"])
    entry["env"]["API_KEY"] = "hunter2-hunter2"
    async with Place(tmp_path, entry).upstream() as server:
        with pytest.raises(Unavailable) as refused:
            await server.call_tool("greet", b"{}", ME)
    assert "bad key <secret>" in refused.value.hint
    assert "hunter2" not in refused.value.message + refused.value.hint


async def test_resources_and_prompts_pass_through_with_fields_that_nobody_knows(tmp_path: Path) -> None:
    async with Place(tmp_path).upstream() as server:
        assert [one["uri"] for one in await server.resources()] == ["lab://one"]
        assert [one["uriTemplate"] for one in await server.templates()] == ["lab://item/{id}"]
        assert [one["name"] for one in await server.prompts()] == ["hi"]
        read = json.loads(bytes(await server.read_resource("lab://one", ME)))
        assert read == {"contents": [{"uri": "lab://one", "text": "contents", "odd": True}], "more": 1}
        prompt = json.loads(bytes(await server.get_prompt("hi", {"who": "Ada"}, ME)))
        assert prompt["messages"][0]["content"]["text"] == "hi Ada"
        with pytest.raises(NotFound):
            await server.get_prompt("nope", {}, ME)


async def test_a_subscription_tells_of_updates(tmp_path: Path) -> None:
    updated: asyncio.Queue[str] = asyncio.Queue()
    async with Place(tmp_path).upstream() as server:
        server.resource_updates.subscribe(updated.put_nowait)
        await server.subscribe("lab://one")
        assert await updated.get() == "lab://one"
        await server.unsubscribe("lab://one")


async def test_a_server_that_does_not_answer_for_its_log_level_answers_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "SET_LEVEL_S", 0.05)
    source = f"import runpy, sys\nlab = runpy.run_path({str(LAB)!r})\nsend = lab['send']\n"
    source += "lab['serve'].__globals__['send'] = lambda one: None if 'error' in one else send(one)\nlab['serve']()"
    place = Place(tmp_path, lab(tmp_path, args=["-c", source], timeoutMs=20_000))
    async with place.upstream() as server:
        caller = Caller("tester", on_log=lambda record: None, log_level="info")
        assert text_of(await server.call_tool("greet", b"{}", caller)) == "hello"
