"""Resources with their updates, prompts, and the limit of calls."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from dari.terminal.daemon import cruxd_client
from dari.terminal.multiplexer import PaneChanged
from dari.terminal.panes.events import OutputShown
from dari.terminal.paths import CruxPaths
from dari.terminal.service import remote_service
from dari.terminal.tools.toolkit import TerminalTools, build_server
from tests.support.terminal_service import house_in
from tests.support.terminal_tools import Client, client_in


async def test_each_pane_has_two_resources_while_it_is_open(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        assert (await client.ask("resources/list"))["result"]["resources"] == []
        templates = (await client.ask("resources/templates/list"))["result"]["resourceTemplates"]
        assert [each["uriTemplate"] for each in templates] == [
            "crux://pane/{id}/scrollback",
            "crux://pane/{id}/state",
        ]
        await client.call("crux_execute_command", command="echo in the scrollback")
        await client.noted("notifications/resources/list_changed")
        listed = (await client.ask("resources/list"))["result"]["resources"]
        assert [(each["uri"], each["mimeType"]) for each in listed] == [
            ("crux://pane/1/scrollback", "text/plain"),
            ("crux://pane/1/state", "application/json"),
        ]
        text = await client.ask("resources/read", uri="crux://pane/1/scrollback")
        assert "in the scrollback" in text["result"]["contents"][0]["text"]
        state = await client.ask("resources/read", uri="crux://pane/1/state")
        assert json.loads(state["result"]["contents"][0]["text"])["cols"] == 200
        await client.call("crux_close_pane", pane_id="1")
        assert (await client.ask("resources/list"))["result"]["resources"] == []
        assert "error" in await client.ask("resources/read", uri="crux://pane/1/state")


async def test_a_subscriber_hears_of_output_once_for_many_pieces(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="true")
        await client.ask("resources/subscribe", uri="crux://pane/1/scrollback")
        await client.call("crux_execute_command", command="seq 1 20000")
        note = await asyncio.wait_for(client.noted("notifications/resources/updated"), 30)
        assert note["params"]["uri"] == "crux://pane/1/scrollback"
        await client.call("crux_wait_for_output", pattern="never", timeout_ms=300)
        more = [each for each in client.notes if each["method"] == "notifications/resources/updated"]
        assert len(more) <= 3
        await client.ask("resources/unsubscribe", uri="crux://pane/1/scrollback")
        client.notes.clear()
        await client.call("crux_execute_command", command="echo unheard")
        await client.call("crux_wait_for_output", pattern="never", timeout_ms=300)
        assert client.notes == []


async def test_pieces_of_output_that_come_together_are_told_of_together(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        client = Client(build_server(house.service, house.multiplexer, 0))
        try:
            await client.start()
            await client.call("crux_execute_command", command="true")
            await client.ask("resources/subscribe", uri="crux://pane/1/state")
            for _ in range(200):
                house.multiplexer.changes.publish(PaneChanged("1", OutputShown(1, 1)))
                await asyncio.sleep(0)
            await client.noted("notifications/resources/updated")
            assert [note for note in client.notes if note["method"] == "notifications/resources/updated"] == []
        finally:
            await client.close()


async def test_the_prompts_of_the_design(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        listed = {prompt["name"]: prompt for prompt in (await client.ask("prompts/list"))["result"]["prompts"]}
        assert set(listed) == {"debug-session", "terminal-debug", "pane-overview", "command-workflow"}
        (argument,) = listed["debug-session"]["arguments"]
        assert (argument["name"], argument["required"]) == ("project_dir", True)
        await client.call("crux_create_pane", name="server")
        texts = {}
        for name, given in (
            ("debug-session", {"project_dir": "/srv/app"}),
            ("terminal-debug", {"command": "make test", "pane_id": "1"}),
            ("pane-overview", {}),
            ("command-workflow", {"steps": "build\n\ntest"}),
        ):
            (message,) = (await client.ask("prompts/get", name=name, arguments=given))["result"]["messages"]
            texts[name] = message["content"]["text"]
        assert "/srv/app" in texts["debug-session"]
        assert "make test" in texts["terminal-debug"] and "'1'" in texts["terminal-debug"]
        assert "1 (server): bash" in texts["pane-overview"]
        assert "1. build\n2. test" in texts["command-workflow"]
        assert "error" in await client.ask("prompts/get", name="debug-session", arguments={})


async def test_a_client_that_calls_too_often_is_told_to_wait(tmp_path: Path) -> None:
    async with client_in(tmp_path, rate=1) as client:
        results = [await client.call("crux_list_panes") for _ in range(4)]
        assert "error" not in results[0] and "error" not in results[1]
        assert results[3]["error"]["name"] == "unavailable"
        assert "try again in" in results[3]["error"]["hint"]


def test_every_parameter_says_what_it_is(tmp_path: Path) -> None:
    tools = TerminalTools(remote_service(cruxd_client(CruxPaths(tmp_path / "mcp.sock"), "mcp", starts=False))).tools()
    silent = []
    count = 0
    for tool in tools:
        nested = (schema.get("properties", {}) for schema in tool.input_schema.get("$defs", {}).values())
        for properties in (tool.input_schema["properties"], *nested):
            count += len(properties)
            silent += [f"{tool.name}.{name}" for name, schema in properties.items() if not schema.get("description")]
            too_long = [name for name, schema in properties.items() if len(schema.get("description", "")) > 100]
            assert not too_long, tool.name
    assert count >= 130
    assert silent == []
