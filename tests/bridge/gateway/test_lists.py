"""What the gateway lists: at once from memory, completed behind the scenes, never held up by a dead server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dari.bridge.gateway import gateway
from dari.bridge.gateway.selection import ServerSelection
from dari.core.events import ListChanged
from tests.support.gateway import dead, demo, house, is_gone, lab, replied, seen, silent, text_of, written
from tests.support.mcp_server import request
from tests.support.wire import stateless

pytestmark = pytest.mark.local_mcp

WAITS_S = 60.0


async def test_every_server_is_shown_under_its_name(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), demo()) as home:
        names = await home.names()
        assert {"lab__add", "lab__greet", "demo__demo_echo"} <= set(names)
        assert names.index("lab__add") < names.index("demo__demo_echo"), "in the order of the file"
        assert await home.names("prompts") == ["lab__hi", "demo__letter"]


async def test_a_tool_is_listed_with_every_field_its_server_gave(tmp_path: Path) -> None:
    shown = {
        "name": "x",
        "title": "X",
        "description": "Does x",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "desctructiveHint": 1},
        "icons": [{"src": "data:,"}],
        "execution": {"taskSupport": "optional"},
        "_meta": {"a/b": [1]},
        "odd": {"kept": True},
    }
    written(tmp_path / "tools.json", [shown])
    async with house(tmp_path, lab(env={"LAB_TOOLS": str(tmp_path / "tools.json")})) as home:
        (listed,) = (await home.ask(stateless(request("tools/list"))))["result"]["tools"]
        assert listed == {**shown, "name": "lab__x"}
        assert home.server.registry.tools["lab__x"].mirrored == {"A": ("a",)}


async def test_known_servers_are_listed_before_they_are_started(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
    async with house(tmp_path, lab(), starts=False) as home:
        home.front.gateway.reload()
        assert "lab__add" in home.server.registry.tools
        assert home.bridge.statuses()[0].pid is None


async def test_the_first_list_waits_for_servers_that_were_never_seen(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        home.front.gateway.settling.limit_s = WAITS_S
        assert "lab__add" in await home.names()


async def test_one_that_does_not_answer_holds_the_first_list_up_for_a_bounded_time(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), silent(), starts=False) as home:
        home.front.gateway.settling.limit_s = 0.3
        home.front.start()
        await home.until(lambda: "lab__add" in home.server.registry.tools)
        assert "lab__add" in await home.names()
        assert home.front.gateway.settling.is_over
        # From now on lists wait for nobody.
        assert home.server.registry.settle is not None
        assert home.server.registry.settle("tools") is None


async def test_a_dead_server_among_ten_takes_nothing_from_the_others(tmp_path: Path) -> None:
    others = [lab(f"lab{number}") for number in range(9)]
    async with house(tmp_path, *others[:5], dead(), *others[5:]) as home:
        home.front.gateway.settling.limit_s = WAITS_S
        names = await home.names()
        assert [name for name in names if name.endswith("__add")] == [f"lab{number}__add" for number in range(9)]
        assert not [name for name in names if name.startswith("dead")]


async def test_nobody_waits_for_a_server_whose_last_start_failed_even_in_an_earlier_run(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), silent(initTimeoutMs=100)) as home:
        home.front.gateway.settling.limit_s = WAITS_S
        await home.names()
    async with house(tmp_path, lab(), silent()) as home:
        home.front.gateway.settling.limit_s = WAITS_S
        assert "lab__add" in await home.names()
        assert home.front.gateway.settling.is_over


async def test_clients_are_told_when_a_server_comes_later(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    waiting = f"import os, time, runpy\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
    late = lab("late", args=["-c", waiting + f"runpy.run_path({lab()['args'][0]!r}, run_name='__main__')"])
    async with house(tmp_path, late, lab(), starts=False) as home:
        home.front.gateway.settling.limit_s = 0.05
        home.front.start()
        await home.agree()
        await home.ask(request("tools/list"))
        assert "late__add" not in home.server.registry.tools
        while not home.wire.messages.empty():
            await home.next()
        gate.touch()
        methods = []
        while "late__add" not in home.server.registry.tools:
            methods.append((await home.next()).get("method"))  # a reply to the list above may come late
        assert "notifications/tools/list_changed" in methods


async def test_a_change_of_a_list_is_told_once_and_only_for_its_kind(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    written(tools, [{"name": "change", "inputSchema": {"type": "object"}}])
    async with house(tmp_path, lab(env={"LAB_TOOLS": str(tools)}, tools={"pin": "off"})) as home:
        assert await home.names() == ["lab__change"]
        home.events.clear()
        written(tools, [{"name": name, "inputSchema": {"type": "object"}} for name in ("change", "greet")])
        await home.ask(request("tools/call", name="lab__change", **stateless({"params": {}})["params"]))
        await home.until(lambda: "lab__greet" in home.server.registry.tools)
        assert home.events == [ListChanged("tools")]


async def test_a_list_that_did_not_change_is_not_told(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        home.events.clear()
        (mount,) = home.front.gateway.mounts
        await mount.upstream.start()
        home.front.gateway.reload()
        assert home.events == []


async def test_filters_and_new_names_of_the_profile_count(tmp_path: Path) -> None:
    rules = {
        "allow": ["a*", "greet", "fail"],
        "deny": ["fail"],
        "rename": {"greet": "hello"},
        "describe": {"add": "Sum"},
    }
    async with house(tmp_path, lab(tools=rules)) as home:
        assert await home.names() == ["lab__hello", "lab__add"]
        assert home.server.registry.tools["lab__add"].listing()["description"] == "Sum"


@pytest.mark.parametrize(
    ("gateway", "servers", "expected"),
    [
        ({}, ["lab"], "lab__add"),
        ({"prefix": "multi"}, ["lab"], "add"),
        ({"prefix": "multi"}, ["lab", "two"], "lab__add"),
        ({"prefix": "never"}, ["lab", "two"], "add"),
        ({"separator": "-"}, ["lab"], "lab-add"),
    ],
)
async def test_the_rule_for_prefixes_is_the_files(
    tmp_path: Path, gateway: dict[str, str], servers: list[str], expected: str
) -> None:
    async with house(tmp_path, *(lab(id) for id in servers), gateway=gateway) as home:
        names = await home.names()
        assert expected in names
        assert len(names) == len(set(names)) == 15 * len(servers)


async def test_our_own_names_win(tmp_path: Path) -> None:
    async with house(tmp_path, demo(), own_tools=True, gateway={"prefix": "never"}) as home:
        names = await home.names()
        assert names.count("demo_echo") == 1
        assert "demo__demo_echo" in names
        assert home.server.registry.tools["demo_echo"].shown is None


async def test_one_server_alone_has_its_own_names(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), demo(), choice=ServerSelection(server="lab")) as home:
        assert {"add", "greet"} <= set(await home.names())
        assert await home.names("prompts") == ["hi"]


async def test_a_set_of_servers_is_all_that_its_front_shows(tmp_path: Path) -> None:
    top: dict[str, Any] = {"profiles": {"few": {"servers": ["l*"]}, "own": {"servers": ["dari", "lab"]}}}
    async with house(tmp_path, lab(), demo(), choice=ServerSelection(profile="few"), own_tools=True, **top) as home:
        assert {name.partition("__")[0] for name in await home.names()} == {"lab"}
    async with house(tmp_path, lab(), demo(), choice=ServerSelection(profile="own"), own_tools=True, **top) as home:
        assert {"demo_echo", "lab__add"} <= set(await home.names())


async def test_a_tool_is_called_by_a_client_that_never_listed(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        home.front.gateway.settling.limit_s = WAITS_S
        reply = await home.ask(stateless(request("tools/call", name="lab__add", arguments={"a": 1, "b": 2})))
        assert reply["result"]["structuredContent"] == {"sum": 3}


async def test_an_unknown_name_is_refused_after_the_wait(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        reply = await home.ask(stateless(request("tools/call", name="lab__no", arguments={})))
        assert reply["error"]["code"] == -32602


async def test_instructions_tell_of_the_servers_in_a_bounded_text(tmp_path: Path) -> None:
    async with house(tmp_path, lab(description="The\u202e lab"), demo()) as home:
        await home.names()
        said = (await home.agree())["instructions"]
        assert "- lab: The[1 hidden" in said
        assert "15 tools, named lab__…" in said
        assert "## lab\nBe kind to the lab." in said
        assert len(said) < 9000


async def test_resources_and_prompts_are_announced_before_they_are_known(tmp_path: Path) -> None:
    async with house(tmp_path, silent()) as home:
        assert {"resources", "prompts", "completions", "tools"} <= set((await home.agree())["capabilities"])


async def test_files_that_change_add_replace_and_remove_servers(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), lab("two")) as home:
        await home.names()
        await home.agree()
        pid = (await home.ask(stateless(request("tools/call", name="two__pid"))))["result"]["content"][0]["text"]
        home.place.write(lab(env={"LAB_SAYS": "new"}), lab("three"))
        await home.until(lambda: "three__add" in home.server.registry.tools)
        assert not [name for name in home.server.registry.tools if name.startswith("two__")]
        await home.until(lambda: "lab__greet" in home.server.registry.tools)
        methods = [home.wire.messages.get_nowait()["method"] for _ in range(home.wire.messages.qsize())]
        assert "notifications/tools/list_changed" in methods
        assert text_of(await replied(home.wire, request("tools/call", name="lab__greet"))) == "new"
        await seen(lambda: is_gone(pid))


async def test_a_server_may_be_called_as_soon_as_it_stands_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "POLL_INTERVAL_S", 600.0)
    async with house(tmp_path, lab()) as home:
        await home.names()
        home.place.write(lab(), lab("two", env={"LAB_SAYS": "so soon"}))
        assert text_of(await home.ask(stateless(request("tools/call", name="two__greet")))) == "so soon"
        home.place.write(lab())
        reply = await home.ask(stateless(request("tools/call", name="three__greet")))
        assert reply["error"]["code"] == -32602
        assert not [name for name in home.server.registry.tools if name.startswith("two__")]


async def test_a_set_or_a_rule_that_changes_counts_at_once_and_ends_no_server(tmp_path: Path) -> None:
    sets: dict[str, Any] = {"profiles": {"few": {"servers": ["lab"]}}}
    async with house(tmp_path, lab(), lab("two"), choice=ServerSelection(profile="few"), **sets) as home:
        await home.names()
        pid = text_of(await replied(home.wire, stateless(request("tools/call", name="lab__pid"))))
        home.place.write(lab(), lab("two"), profiles={"few": {"servers": ["two"]}}, gateway={"separator": "-"})
        await home.until(lambda: "two-add" in home.server.registry.tools)
        assert {name.partition("-")[0] for name in await home.names()} == {"two"}
        assert not is_gone(pid)
