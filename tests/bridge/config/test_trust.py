"""A project's file runs nothing until a person pinned its content."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dari.bridge.config.trust import TrustStore
from dari.errors import Denied, InvalidInput, NotFound
from tests.support.bridge_config import World, put

FIRST = {"mcpServers": {"a": {"command": "x", "args": ["-y"]}, "b": {"url": "http://h?key=hunter2"}}}


def test_nothing_of_a_project_is_usable_before_it_is_trusted(world: World) -> None:
    world.project(FIRST)
    assert world.states() == {"a": "untrusted", "b": "untrusted"}
    assert world.load().ready() == ()
    with pytest.raises(Denied) as caught:
        world.resolve("a")
    assert caught.value.hint == f"look at the file, then: dari remote trust {world.project_file}"
    world.book.trust()
    assert world.states() == {"a": "ready", "b": "ready"}


def test_the_users_own_files_need_no_trust(world: World) -> None:
    world.user(FIRST)
    world.environ["CREWX_MCP_JSON"] = str(put(world.home / "x.json", {"mcpServers": {"c": {"command": "x"}}}))
    assert set(world.states().values()) == {"ready"}


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ('{"mcpServers": {"a": {"command": "evil"}}}', "~ a: args removed, command x → evil"),
        ('{"mcpServers": {"a": {"command": "x", "args": ["-z"]}}}', "~ a: args changed"),
        ('{"mcpServers": {"a": {"command": "x"}, "new": {"command": "rm"}}}', "+ new: new, rm"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"LD_PRELOAD": "hunter2"}}}}', "~ a: args removed, env added"),
        ('{"mcpServers": {}}', "- a: removed"),
        ('{"mcpServers": {"a": {"command": "x", "args": ["-y"]}, "b": {"url": "http://evil?key=hunter2"}}}',
         "~ b: url http://h → http://evil"),
        ('{"servers": [{"id": "c", "command": "ls"}]}', "+ c: new, ls"),
        ("not json", "- a: removed"),
    ],
)  # fmt: skip
def test_a_change_takes_the_trust_away_and_tells_what_changed(world: World, text: str, change: str) -> None:
    world.project(FIRST)
    world.book.trust()
    world.project(text)
    (file,) = world.load().files
    assert not file.is_trusted
    assert change in file.changes
    assert "hunter2" not in repr(file)
    _, _, state = world.book.trust_state()
    assert state.state == "changed" and change in state.changes


def test_one_changed_byte_is_enough(world: World) -> None:
    world.project(FIRST)
    world.book.trust()
    world.project_file.write_text(world.project_file.read_text() + " ")
    assert set(world.states().values()) == {"untrusted"}
    assert world.load().files[0].changes == ("the servers are the same; something else in the file changed",)
    world.book.trust()
    assert set(world.states().values()) == {"ready"}


def test_the_old_content_is_trusted_again_when_it_comes_back(world: World) -> None:
    old = world.project(FIRST).read_text()
    world.book.trust()
    world.project({"mcpServers": {}})
    world.project_file.write_text(old)
    assert set(world.states().values()) == {"ready"}


def test_only_what_was_shown_is_pinned(world: World) -> None:
    world.project(FIRST)
    _, shown, _ = world.book.trust_state()
    world.project({"mcpServers": {"a": {"command": "evil"}}})
    with pytest.raises(InvalidInput):
        world.book.trust(sha256=shown)
    assert world.states() == {"a": "untrusted"}


def test_trust_can_be_taken_back(world: World) -> None:
    world.project(FIRST)
    world.book.trust()
    assert world.book.distrust()
    assert not world.book.distrust()
    assert set(world.states().values()) == {"untrusted"}


def test_a_copy_of_a_trusted_project_is_not_trusted(world: World, tmp_path: Path) -> None:
    world.project(FIRST)
    world.book.trust()
    other = put(tmp_path / "other/.crewx/mcp.json", world.project_file.read_text())
    assert world.store.state(other, other.read_bytes()).state == "unknown"


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_link_to_a_trusted_file_has_to_be_trusted_itself(world: World, tmp_path: Path, linked: str) -> None:
    """Its commands would run in another folder, where `./tool` is somebody else's."""
    world.project(FIRST)
    world.book.trust()
    folder = tmp_path / "cloned" / ".crewx"
    if linked == "folder":
        folder.parent.mkdir()
        folder.symlink_to(world.project_file.parent)
    else:
        folder.mkdir(parents=True)
        (folder / "mcp.json").symlink_to(world.project_file)
    link = folder / "mcp.json"
    assert world.store.state(link, link.read_bytes()).state == "unknown"
    world.store.trust(link, link.read_bytes())
    assert world.store.state(link, link.read_bytes()).state == "trusted"


def test_a_project_reached_by_a_link_is_the_same_project(world: World, tmp_path: Path) -> None:
    world.project(FIRST)
    world.book.trust()
    (tmp_path / "short").symlink_to(world.project_file.parent.parent)
    link = tmp_path / "short" / ".crewx" / "mcp.json"
    assert world.store.state(link, link.read_bytes()).state == "trusted"


def test_trust_can_be_taken_back_while_the_file_cannot_be_read(world: World) -> None:
    world.project(FIRST)
    world.book.trust()
    kept = world.book.load()
    world.project("{")
    assert {one.state for one in world.book.load(kept).listed} == {"ready"}
    world.book.distrust(world.project_file)
    assert {one.state for one in world.book.load(kept).listed} == {"untrusted"}


@pytest.mark.parametrize("kind", ["device", "fifo"])
def test_a_project_file_without_an_end_is_not_read(world: World, kind: str) -> None:
    world.project(FIRST)
    world.project_file.unlink()
    if kind == "device":
        world.project_file.symlink_to("/dev/zero")
    else:
        os.mkfifo(world.project_file)
    assert world.book.load().listed == ()


def test_the_pins_are_for_their_owner_alone_and_hold_no_secret(world: World) -> None:
    world.project({"mcpServers": {"a": {"command": "x", "env": {"K": "hunter2"}, "url": None, "args": ["hunter2"]}}})
    world.book.trust()
    assert stat.S_IMODE(world.store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(world.store.path.parent.stat().st_mode) == 0o700
    assert "hunter2" not in world.store.path.read_text()


def test_pins_that_cannot_be_read_trust_nothing(world: World) -> None:
    world.project(FIRST)
    world.book.trust()
    world.store.path.write_text("{")
    assert set(world.states().values()) == {"untrusted"}
    world.book.trust()
    assert set(world.states().values()) == {"ready"}


def test_a_file_that_is_missing_or_broken_cannot_be_trusted(world: World) -> None:
    with pytest.raises(NotFound):
        world.book.trust()
    world.project("{")
    with pytest.raises(InvalidInput):
        world.book.trust()


def test_what_its_owner_adds_to_a_trusted_project_keeps_the_trust(world: World) -> None:
    world.project(FIRST)
    world.book.add("late", {"command": "x"}, "project")
    assert set(world.states().values()) == {"untrusted"}
    world.book.trust()
    world.book.add("later", {"command": "x"}, "project")
    assert set(world.states().values()) == {"ready"}


def test_an_edit_does_not_bless_what_somebody_else_wrote(world: World) -> None:
    world.project(FIRST)
    world.book.trust()
    world.project({"mcpServers": {"a": {"command": "evil"}}})
    world.book.disable("a")
    assert set(world.states().values()) == {"untrusted"}


def test_trust_of_a_yaml_project_counts_alike(world: World) -> None:
    text = "mcp:\n  endpoints:\n    - name: y\n      stdio_config: {command: x}\n"
    path = put(world.cwd / ".crewx/mcp.yaml", text)
    assert world.states() == {"y": "untrusted"}
    world.book.trust()
    assert world.states() == {"y": "ready"}
    path.write_text(text.replace("command: x", "command: z"))
    assert world.load().files[0].changes == ("~ y: command x → z",)


def test_the_store_lies_in_daris_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    assert TrustStore().path == tmp_path / "bridge/trust.json"
    assert not os.path.exists(tmp_path / "bridge")


def test_an_untrusted_profile_is_not_even_filled_in(world: World) -> None:
    world.project(FIRST)
    with pytest.raises(Denied):
        world.book.resolve(world.load().find("a"))
