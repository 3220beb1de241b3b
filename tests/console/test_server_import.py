"""Pasted JSON and servers of other programs: reviewed first, then renamed, overwritten or left out as a person says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dari.errors import Conflict, InvalidInput, NotFound
from tests.support.bridge import Place
from tests.support.console_servers import servers_page

PASTED = """{
  // as a README has it
  "mcpServers": {
    "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]},
    "time": {"command": "uvx", "args": ["mcp-server-time"]},
    "mine": {"command": "other"},
    "bad": {"comand": "x"},
    "keys": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer abcdefgh"}},
  }
}"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    servers = {"id": "mine", "command": "x"}, {"id": "clock", "command": "uvx", "args": ["mcp-server-time"]}
    return Place(tmp_path, *servers)


def written(place: Place) -> dict[str, Any]:
    return {one["id"]: one for one in json.loads(place.file.read_text())["servers"]}


async def test_a_paste_is_reviewed_before_anything_is_written(place: Place) -> None:
    before = place.file.read_bytes()
    async with servers_page(place) as page:
        review = await page.call("review_json", text=PASTED)
    found = {one["name"]: one for one in review["candidates"]}
    assert {name: one["status"] for name, one in found.items()} == {
        "memory": "new",
        "time": "duplicate",
        "mine": "conflict",
        "bad": "broken",
        "keys": "new",
    }
    assert found["mine"]["free_name"] == "mine-2" and found["keys"]["in_clear"] == ["headers.Authorization"]
    assert "did you mean 'command'" in found["bad"]["reason"] and "abcdefgh" not in json.dumps(review)
    assert place.file.read_bytes() == before


async def test_what_was_chosen_is_added_under_the_names_that_were_chosen(place: Place) -> None:
    async with servers_page(place) as page:
        found = {one["name"]: one["ref"] for one in (await page.call("review_json", text=PASTED))["candidates"]}
        choices = [{"ref": found["memory"], "name": "memory"}, {"ref": found["mine"], "name": "mine-2"}]
        reply = await page.call("add_json", text=PASTED, choices=choices)
        assert reply["names"] == ["memory", "mine-2"]
        assert written(place)["mine"]["command"] == "x" and written(place)["mine-2"]["command"] == "other"
        over = [{"ref": found["mine"], "name": "mine", "overwrites": True}]
        await page.call("add_json", text=PASTED, choices=over)
        assert written(place)["mine"]["command"] == "other"


async def test_an_entry_that_cannot_be_read_is_overwritten_only_by_choice(place: Place) -> None:
    place.write({"id": "broken", "comand": "x"})
    text = '{"broken": {"command": "y"}}'
    async with servers_page(place) as page:
        (found,) = (await page.call("review_json", text=text))["candidates"]
        assert found["status"] == "conflict" and "cannot be read" in found["reason"]
        choice = {"ref": found["ref"], "name": "broken", "overwrites": True}
        await page.call("add_json", text=text, choices=[choice])
        assert (await page.card("broken"))["state"] == "idle"


async def test_nothing_is_overwritten_unless_that_was_chosen(place: Place) -> None:
    before = place.file.read_bytes()
    async with servers_page(place) as page:
        found = {one["name"]: one["ref"] for one in (await page.call("review_json", text=PASTED))["candidates"]}
        with pytest.raises(Conflict):
            await page.call("add_json", text=PASTED, choices=[{"ref": found["mine"], "name": "mine"}])
        with pytest.raises(Conflict):
            both = [{"ref": found["mine"], "name": "new"}, {"ref": found["memory"], "name": "new"}]
            await page.call("add_json", text=PASTED, choices=both)
        with pytest.raises(InvalidInput):
            await page.call("add_json", text=PASTED, choices=[{"ref": found["bad"], "name": "bad"}])
        with pytest.raises(NotFound):
            await page.call("add_json", text=PASTED, choices=[{"ref": "paste::zzz", "name": "zzz"}])
    assert place.file.read_bytes() == before


@pytest.mark.parametrize("text", ["", "not json", '{"mcpServers": []', "[]"])
async def test_a_paste_that_is_no_json_is_told_so(place: Place, text: str) -> None:
    async with servers_page(place) as page:
        with pytest.raises(InvalidInput) as refusal:
            await page.call("review_json", text=text)
    assert refusal.value.message.startswith("the text must be")


async def test_servers_of_other_programs_are_copied_with_their_conflicts_decided(place: Place) -> None:
    for path, text in (
        (".cursor/mcp.json", '{"mcpServers": {"mine": {"command": "theirs"}, "docs": {"url": "https://d/mcp"}}}'),
        (
            ".claude.json",
            '{"mcpServers": {"docs": {"url": "https://other/mcp"}, "git": {"command": "uvx", "args": ["git"]}}}',
        ),
        (".codex/config.toml", '[mcp_servers.search]\ncommand = "search-mcp"\nenv = {SEARCH_KEY = "abcdefgh"}\n'),
        (".gemini/settings.json", '{"mcpServers": {"g": {"httpUrl": "https://g/mcp"}}}'),
    ):
        (place.home / path).parent.mkdir(exist_ok=True)
        (place.home / path).write_text(text)
    async with servers_page(place) as page:
        review = await page.call("review_import")
        found = {(one["program"], one["name"]): one for one in review["candidates"]}
        assert {key: one["status"] for key, one in found.items()} == {
            ("claude-code", "docs"): "new",
            ("claude-code", "git"): "new",
            ("cursor", "mine"): "conflict",
            ("cursor", "docs"): "conflict",
            ("codex", "search"): "new",
            ("gemini", "g"): "new",
        }
        assert "abcdefgh" not in json.dumps(review) and found["codex", "search"]["in_clear"] == ["env.SEARCH_KEY"]
        only = await page.call("review_import", programs=["codex"])
        assert [one["name"] for one in only["candidates"]] == ["search"]
        reply = await page.call(
            "import_servers",
            choices=[
                {"ref": found["codex", "search"]["ref"], "name": "search"},
                {"ref": found["cursor", "mine"]["ref"], "name": found["cursor", "mine"]["free_name"]},
                {"ref": found["claude-code", "docs"]["ref"], "name": "docs"},
            ],
        )
    assert set(reply["names"]) == {"search", "mine-cursor", "docs"} == set(written(place)) - {"mine", "clock"}
    assert any("in the clear" in note for note in reply["notes"])
    assert written(place)["search"]["env"] == {"SEARCH_KEY": "abcdefgh"}


async def test_somebody_who_works_in_their_home_finds_each_server_once(place: Place) -> None:
    (place.home / ".cursor").mkdir()
    (place.home / ".cursor/mcp.json").write_text('{"mcpServers": {"docs": {"command": "docs-mcp"}}}')
    place.root = place.home
    async with servers_page(place) as page:
        (found,) = (await page.call("review_import"))["candidates"]
        assert (found["name"], found["status"]) == ("docs", "new")
        await page.call("import_servers", choices=[{"ref": found["ref"], "name": "docs"}])
    assert written(place)["docs"] == {"id": "docs", "command": "docs-mcp"}
