"""The tools behind the Servers page: list, form, save, switch, remove and undo, start and stop, over real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dari.core.scopes import ADMIN
from dari.core.tool import tools_of
from dari.errors import Conflict, DariError, Denied, InvalidInput, NotFound, Unavailable
from tests.support.bridge import ME, Place, lab
from tests.support.console_servers import server_toolkits, servers_page


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    return Place(tmp_path, lab(tmp_path))


def entry(place: Place, name: str = "lab") -> dict[str, Any]:
    servers = json.loads(place.file.read_text())["servers"]
    return dict(next(one for one in servers if one["id"] == name))


async def test_every_tool_is_for_a_person(place: Place) -> None:
    async with servers_page(place) as page:
        scopes = {tool.scope for kit in server_toolkits(page.backends) for tool in tools_of(kit)}
    assert scopes == {ADMIN}


async def test_a_card_tells_state_transport_tools_and_file(place: Place) -> None:
    place.write(lab(place.root), lab(place.root, id="off", disabled=True), {"id": "bad", "command": "x", "comand": "y"})
    async with servers_page(place) as page:
        assert (await page.card("lab"))["state"] == "idle"
        assert (await page.card("off"))["state"] == "disabled"
        broken = await page.card("bad")
        assert broken["state"] == "broken" and "comand" in broken["last_error"]
        await page.call("start", name="lab")
        card = await page.card("lab")
        assert (card["state"], card["transport"], card["file"]) == ("ready", "stdio", str(place.file))
        assert card["tools"] == 15 and card["pid"] and card["address"].endswith("lab.py")


async def test_a_card_hides_the_secrets_of_its_command_line(place: Place) -> None:
    place.write({"id": "lab", "command": "x", "args": ["--api-key", "hunter2hunter2", "https://me:pw@h/?k=v"]})
    async with servers_page(place) as page:
        address = (await page.card("lab"))["address"]
    assert (
        address.startswith("x --api-key") and "hunter2" not in address and "pw" not in address and "k=v" not in address
    )


async def test_a_server_that_fails_shows_its_last_error(place: Place) -> None:
    place.write(lab(place.root, command="no-such-program", args=[]))
    async with servers_page(place) as page:
        with pytest.raises(Unavailable):
            await page.call("start", name="lab")
        card = await page.card("lab")
        assert card["state"] in ("failed", "backoff") and "no-such-program" in card["last_error"]


async def test_start_and_stop(place: Place) -> None:
    async with servers_page(place) as page:
        assert (await page.call("start", name="lab"))["server"]["state"] == "ready"
        assert (await page.call("stop", name="lab"))["server"]["state"] == "idle"
        with pytest.raises(NotFound, match="unknown server 'lob'"):
            await page.call("stop", name="lob")


async def test_a_new_server_is_saved_and_runs(place: Place) -> None:
    async with servers_page(place) as page:
        edit = await page.call("form")
        form = {
            **edit["form"],
            "name": "second",
            "command": lab(place.root)["command"],
            "args": lab(place.root)["args"],
        }
        saved = await page.call("save", form=form)
        assert saved["file"] == str(place.file) == edit["file"] and saved["notes"] == []
        assert (await page.call("start", name="second"))["server"]["tools"] == 15
        with pytest.raises(Conflict):
            await page.call("save", form=form)


async def test_a_saved_change_keeps_secrets_and_ends_the_old_process(place: Place) -> None:
    place.write(lab(place.root, env={"API_TOKEN": "hunter2hunter2", "LAB_SAYS": "hello"}))
    async with servers_page(place) as page:
        await page.call("start", name="lab")
        pid = (await page.card("lab"))["pid"]
        form = (await page.call("form", name="lab"))["form"]
        assert "hunter2" not in json.dumps(form)
        env = [{**one, "value": "changed"} if one["name"] == "LAB_SAYS" else one for one in form["env"]]
        saved = await page.call("save", form={**form, "name": "renamed", "env": env}, was="lab")
        assert saved["server"]["name"] == "renamed"
        assert "hunter2" not in json.dumps(saved)
        assert entry(place, "renamed")["env"]["API_TOKEN"] == "hunter2hunter2"
        upstream = page.view.upstream("renamed")
        assert b"changed" in bytes(await upstream.call_tool("greet", b"{}", ME))
        assert (await page.card("renamed"))["pid"] != pid


async def test_a_save_over_somebody_elses_change_is_refused_unless_it_is_meant(place: Place) -> None:
    async with servers_page(place) as page:
        first, second = await page.call("form", name="lab"), await page.call("form", name="lab")
        await page.call("save", form={**first["form"], "description": "mine"}, was="lab", digest=first["digest"])
        theirs = {"form": {**second["form"], "description": "theirs"}, "was": "lab"}
        with pytest.raises(Conflict, match="since you opened it"):
            await page.call("save", **theirs, digest=second["digest"])
        assert entry(place)["description"] == "mine"
        await page.call("save", **theirs)
        assert entry(place)["description"] == "theirs"


async def test_a_switch_that_was_used_while_a_form_was_open_stays_as_it_is(place: Place) -> None:
    async with servers_page(place) as page:
        edit = await page.call("form", name="lab")
        await page.call("switch", name="lab", enabled=False)
        await page.call("save", form={**edit["form"], "description": "new"}, was="lab", digest=edit["digest"])
        assert entry(place)["description"] == "new" and entry(place)["disabled"] is True


async def test_a_name_that_is_taken_or_impossible_is_refused_and_nothing_changes(place: Place) -> None:
    place.write(lab(place.root), lab(place.root, id="other"))
    before = place.file.read_bytes()
    async with servers_page(place) as page:
        form = (await page.call("form", name="lab"))["form"]
        for name in ("other", "a/b", "", "<script>alert(1)</script>", "pay\u200bload", "safe\u202egpj"):
            with pytest.raises(DariError):
                await page.call("save", form={**form, "name": name}, was="lab")
    assert place.file.read_bytes() == before


async def test_a_switch_ends_a_server_and_lets_it_run_again(place: Place) -> None:
    async with servers_page(place) as page:
        await page.call("start", name="lab")
        off = await page.call("switch", name="lab", enabled=False)
        assert off["server"]["state"] == "disabled" and off["server"]["enabled"] is False
        assert not page.bridge.is_active and entry(place)["disabled"] is True
        assert (await page.call("switch", name="lab", enabled=True))["server"]["state"] in ("idle", "ready")


async def test_a_removal_says_first_what_will_break(place: Place) -> None:
    place.write(lab(place.root, default=True), profiles={"work": {"servers": ["lab"]}})
    async with servers_page(place) as page:
        await page.call("start", name="lab")
        told = await page.call("removal", name="lab")
    assert told == {
        "file": str(place.file),
        "tools": 15,
        "calls": 0,
        "sets": ["work"],
        "is_default": True,
        "next_source": "",
        "pins": 18,
    }


async def test_a_removed_server_comes_back_as_it_was(place: Place) -> None:
    place.write(lab(place.root, env={"API_TOKEN": "hunter2hunter2"}), profiles={"work": {"servers": ["lab", "x"]}})
    before = json.loads(place.file.read_text())
    async with servers_page(place) as page:
        await page.call("start", name="lab")
        reply = await page.call("remove", name="lab")
        assert "hunter2" not in json.dumps(reply) and not page.bridge.is_active
        assert json.loads(place.file.read_text())["profiles"] == {"work": {"servers": ["x"]}}
        with pytest.raises(NotFound):
            await page.call("form", name="lab")
        await page.call("restore", name="lab")
        after = json.loads(place.file.read_text())
        assert after["servers"] == before["servers"] and set(after["profiles"]["work"]["servers"]) == {"lab", "x"}
        with pytest.raises(NotFound, match="was removed here"):
            await page.call("restore", name="lab")


async def test_a_file_of_another_program_is_not_changed(place: Place) -> None:
    cursor = place.home / ".cursor/mcp.json"
    cursor.parent.mkdir()
    cursor.write_text('{"mcpServers": {"theirs": {"command": "x"}}}')
    place.write(lab(place.root), imports=["cursor"])
    async with servers_page(place) as page:
        assert (await page.card("theirs"))["is_writable"] is False
        for call, given in (("remove", {}), ("switch", {"enabled": False})):
            with pytest.raises(InvalidInput, match="file of cursor"):
                await page.call(call, name="theirs", **given)
    assert "theirs" in cursor.read_text()


async def test_a_built_in_server_is_no_server_of_a_file(place: Place) -> None:
    async with servers_page(place) as page:
        for call in ("form", "removal", "stop", "tools", "held"):
            with pytest.raises(NotFound, match="built in"):
                await page.call(call, name="crewx-tools")


async def test_a_file_that_nobody_trusts_runs_nothing(place: Place) -> None:
    project = place.root / ".crewx/mcp.json"
    project.parent.mkdir()
    project.write_text(json.dumps({"servers": [lab(place.root, id="theirs")]}))
    async with servers_page(place) as page:
        card = await page.card("theirs")
        assert card["state"] == "untrusted" and "not trusted" in card["last_error"] and card["layer"] == "project"
        with pytest.raises(Denied):
            await page.call("start", name="theirs")
        report = await page.call("test", name="theirs")
        assert [(step["name"], step["status"]) for step in report["steps"]] == [("profile", "failed")]
        form = (await page.call("form", name="theirs"))["form"]
        with pytest.raises(Denied):
            await page.call("test", form=form, was="theirs")
    assert not place.noted()


async def test_paths_are_checked_as_a_person_types_them(place: Place) -> None:
    (place.home / "notes").mkdir()
    (place.home / "link").symlink_to("/usr/share")
    (place.home / "file.txt").write_text("x")
    paths = [
        "~/notes",
        str(place.home / "link"),
        str(place.home / "file.txt"),
        "/no/such",
        "notes",
        "/a/../b",
        "${PWD}/x",
        "~",
        "/",
    ]
    async with servers_page(place) as page:
        told = (await page.call("check_paths", paths=paths))["paths"]
    assert [one["state"] for one in told] == [
        *("folder", "folder", "file", "missing", "invalid", "invalid", "reference", "folder", "folder"),
    ]
    assert (
        told[1]["resolved"].startswith("/usr/") and "whole home" in told[7]["note"] and "every file" in told[8]["note"]
    )
