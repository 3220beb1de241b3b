"""Resources, prompts, completion and news of changes, read by the official SDK's client."""

from __future__ import annotations

from pathlib import Path

import mcp_types as types
import pytest
from mcp import MCPError
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged

from tests.support.real_clients import DOORS, MODES, connected

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", DOORS)
async def test_resources_prompts_and_completions_are_read(name: str, mode: str, tmp_path: Path) -> None:
    async with connected(name, mode, tmp_path) as (client, _):
        resources = (await client.list_resources()).resources
        assert [str(one.uri) for one in resources] == ["demo://note", "demo://blob"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["demo://item/{id}"]
        uris = ("demo://note", "demo://blob", "demo://item/9")
        note, blob, item = [(await client.read_resource(uri)).contents[0] for uri in uris]
        assert isinstance(note, types.TextResourceContents)
        assert (note.text, note.mime_type) == ("a note", "text/plain")
        assert isinstance(blob, types.BlobResourceContents)
        assert blob.blob == "AAE="
        assert isinstance(item, types.TextResourceContents)
        assert item.text == "item 9"
        with pytest.raises(MCPError) as missing:
            await client.read_resource("demo://nothing")
        assert missing.value.code == (-32002 if mode == "legacy" else -32602)

        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["letter"]
        letter = await client.get_prompt("letter", {"to": "Minji"})
        assert letter.messages[0].content.text == "Dear Minji"  # type: ignore[union-attr]
        for reference, argument in (
            (types.PromptReference(type="ref/prompt", name="letter"), "to"),
            (types.ResourceTemplateReference(type="ref/resource", uri="demo://item/{id}"), "id"),
        ):
            completed = await client.complete(reference, {"name": argument, "value": "t"})
            assert completed.completion.values == ["two", "three"]


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
@pytest.mark.parametrize("name", DOORS)
async def test_a_listener_hears_of_changes(name: str, mode: str, tmp_path: Path) -> None:
    async with connected(name, mode, tmp_path) as (client, _):
        before = len((await client.list_tools()).tools)
        async with client.listen(tools_list_changed=True, resource_subscriptions=["demo://note"]) as changes:
            await client.call_tool("work_touch", {"uri": "demo://blob"})
            await client.call_tool("work_touch", {"uri": "demo://note"})
            assert await anext(changes) == ResourceUpdated(uri="demo://note")
            await client.call_tool("work_grow")
            assert await anext(changes) == ToolsListChanged()
            assert len((await client.list_tools()).tools) == before + 1
        await client.call_tool("work_grow")
        assert len((await client.list_tools(cache_mode="bypass")).tools) == before


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
@pytest.mark.parametrize("name", DOORS)
async def test_a_session_hears_of_changes(name: str, tmp_path: Path) -> None:
    async with connected(name, "legacy", tmp_path) as (client, person):

        def updates() -> list[str]:
            return [str(m.params.uri) for m in person.seen if isinstance(m, types.ResourceUpdatedNotification)]

        for uri in ("demo://note", "demo://blob"):
            await client.subscribe_resource(uri)
        # Over HTTP the SDK opens its stream of news some time after it has connected: change until it hears.
        while not any(isinstance(message, types.ToolListChangedNotification) for message in person.seen):
            await client.call_tool("work_grow")
        await client.call_tool("work_touch", {"uri": "demo://item/1"})
        await client.call_tool("work_touch", {"uri": "demo://note"})
        await person.until(lambda: updates() == ["demo://note"])
        await client.unsubscribe_resource("demo://note")
        await client.call_tool("work_touch", {"uri": "demo://note"})
        await client.call_tool("work_touch", {"uri": "demo://blob"})
        await person.until(lambda: "demo://blob" in updates())
        assert updates() == ["demo://note", "demo://blob"]
