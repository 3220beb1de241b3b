"""`dari_knowledge_*`: what a person sees of the folders, and an ingest as a program of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dari.console.backends import ConsoleBackends
from dari.console.tools.knowledge import KnowledgeFolderTools
from dari.core.registry import Registry
from dari.core.scopes import ALL_SCOPES, MCP_GRANT, Grant
from dari.mcp.server import Info, Server
from dari.process.children import Children
from tests.support.knowledge_base import NOTES, write_config, write_notes
from tests.support.wire import Json, MemoryWire, call, initialize

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    return tmp_path


@asynccontextmanager
async def connected(grant: Grant = Grant("app", ALL_SCOPES)) -> AsyncIterator[MemoryWire]:  # noqa: B008
    registry = Registry()
    async with Children() as children:
        registry.add_toolkit(KnowledgeFolderTools(cast(ConsoleBackends, SimpleNamespace(children=children))))
        server = Server(registry, Info(name="test", version="1"))
        wire = MemoryWire(server)
        wire.grant = grant
        await wire.ask(initialize())
        try:
            yield wire
        finally:
            server.close()
            registry.close()


async def reply_to(wire: MemoryWire, name: str, **arguments: Any) -> tuple[Json, list[Json]]:
    """The reply, and the progress before it."""
    message = call(name, **arguments)
    message["params"]["_meta"] = {"progressToken": "p"}
    wire.send(message)
    notes: list[Json] = []
    while "id" not in (heard := await wire.messages.get()):
        notes.append(heard["params"])
    return heard["result"], notes


async def test_without_a_configuration_there_are_no_folders(home: Path) -> None:
    async with connected() as wire:
        result, _ = await reply_to(wire, "dari_knowledge_folders")
    told = result["structuredContent"]
    assert told["folders"] == [] and not told["is_configured"]
    assert told["config_path"] == str(home / "dari" / "kebab" / "config.toml")


async def test_a_folder_is_configured_indexed_with_progress_and_counted(home: Path) -> None:
    notes = write_notes(home / "notes")
    async with connected() as wire:
        made, _ = await reply_to(wire, "dari_knowledge_init", folder=str(notes))
        assert [one["path"] for one in made["structuredContent"]["folders"]] == [str(notes)]
        first, progress = await reply_to(wire, "dari_knowledge_ingest")
        again, _ = await reply_to(wire, "dari_knowledge_ingest")
    assert first["structuredContent"]["new"] == len(NOTES), first
    assert again["structuredContent"] | {"duration_ms": 0} == {
        **dict.fromkeys(("new", "updated", "removed", "renamed", "skipped", "errors", "duration_ms"), 0),
        "scanned": len(NOTES),
        "unchanged": len(NOTES),
        "aborted": False,
    }
    assert any("backups.md" in one.get("message", "") for one in progress), progress


@pytest.mark.parametrize("folder", ["notes", "/no/such/folder"])
@pytest.mark.parametrize("name", ["dari_knowledge_init", "dari_knowledge_ingest"])
async def test_a_folder_must_be_absolute_and_there(name: str, folder: str) -> None:
    async with connected() as wire:
        result, _ = await reply_to(wire, name, folder=folder)
    assert result["isError"]
    assert repr(folder) in result["_meta"]["dari/error"]["message"]


async def test_a_configuration_that_is_there_is_not_replaced(home: Path) -> None:
    notes = write_notes(home / "notes")
    config = write_config(home / "dari" / "kebab" / "config.toml", notes, home / "data")
    before = config.read_text()
    async with connected() as wire:
        result, _ = await reply_to(wire, "dari_knowledge_init", folder=str(notes))
    assert result["_meta"]["dari/error"]["name"] == "conflict"
    assert config.read_text() == before


async def test_the_commands_own_error_is_the_tools(home: Path) -> None:
    path = home / "dari" / "kebab" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("config_version = 99\n")
    async with connected() as wire:
        result, _ = await reply_to(wire, "dari_knowledge_ingest")
    assert "99" in result["_meta"]["dari/error"]["message"]


async def test_a_call_that_is_cancelled_ends_the_program(home: Path) -> None:
    notes = home / "notes"
    notes.mkdir()
    for number in range(3000):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\n" + "words of a note " * 40)
    write_config(home / "dari" / "kebab" / "config.toml", notes, home / "data")
    registry = Registry()
    async with Children() as children:
        tools = KnowledgeFolderTools(cast(ConsoleBackends, SimpleNamespace(children=children)))
        heard = asyncio.Event()
        context = cast(Any, SimpleNamespace(report=lambda *_: heard.set()))
        running = asyncio.create_task(tools.ingest(context))
        await heard.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not children.running
    registry.close()


async def test_an_agent_has_none_of_these_tools() -> None:
    async with connected(MCP_GRANT) as wire:
        result = await wire.ask(call("dari_knowledge_folders"))
    assert "error" in result or result["result"].get("isError")
