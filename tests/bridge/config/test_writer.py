"""Profiles written to files: atomic, locked, nothing lost."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dari.bridge.config.writer import ProfileFile, folder_lock
from dari.errors import Conflict, Failed, InvalidInput, NotFound, TimedOut
from tests.support.bridge_config import World, contents, put
from tests.support.requirements import require_root

LIST = '{\n  "servers": [\n    { "id": "a", "baseUrl": "http://a", "x-note": "kept" }\n  ]\n}\n'
MAP = '{\n  "mcpServers": {\n    "a": { "command": "x" }\n  },\n  "other": [1,2]\n}\n'
BOTH = pytest.mark.parametrize("text", [LIST, MAP], ids=["list", "object"])


@pytest.fixture
def file(tmp_path: Path) -> ProfileFile:
    return ProfileFile(tmp_path / "crewx" / "mcp.json")


def test_a_new_file_is_for_its_owner_alone(file: ProfileFile) -> None:
    file.add("a", {"command": "x"})
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert json.loads(file.path.read_text()) == {"version": "1", "servers": [{"id": "a", "command": "x"}]}


def test_a_file_that_root_edits_stays_its_owners(file: ProfileFile) -> None:
    require_root()
    put(file.path, LIST)
    os.chown(file.path, 12345, 12346)
    file.add("b", {"command": "y"})
    assert (file.path.stat().st_uid, file.path.stat().st_gid) == (12345, 12346)


@BOTH
def test_a_server_is_added_where_the_others_stand(file: ProfileFile, text: str) -> None:
    put(file.path, text)
    file.add("b", {"command": "y", "args": ["1"]})
    assert file.ids() == ("a", "b")
    written = json.loads(file.path.read_text())
    assert ("servers" in written) == ("servers" in json.loads(text))


@BOTH
def test_a_name_that_is_taken_is_refused_unless_it_replaces(file: ProfileFile, text: str) -> None:
    put(file.path, text)
    with pytest.raises(Conflict):
        file.add("a", {"command": "new"})
    assert file.path.read_text() == text
    file.add("a", {"command": "new"}, replaces=True)
    (found,) = contents(file.path.read_text()).profiles
    assert found.address == "new"


@BOTH
def test_disable_and_enable_restore_the_text(file: ProfileFile, text: str) -> None:
    put(file.path, text)
    file.disable("a")
    assert not contents(file.path.read_text()).profiles[0].is_enabled
    file.disable("a")
    file.enable("a")
    assert file.path.read_text() == text
    file.enable("a")
    assert file.path.read_text() == text


def test_a_file_that_says_enabled_keeps_saying_it(file: ProfileFile) -> None:
    put(file.path, '{"mcpServers": {"a": {"command": "x", "enabled": true}}}')
    file.disable("a")
    assert json.loads(file.path.read_text())["mcpServers"]["a"] == {"command": "x", "enabled": False}


@BOTH
def test_a_renamed_server_keeps_its_fields_and_sets_follow(file: ProfileFile, text: str) -> None:
    document = json.loads(text) | {"profiles": {"dev": {"servers": ["a", "z", "a"]}}}
    put(file.path, document)
    file.rename("a", "new name")
    written = json.loads(file.path.read_text())
    assert file.ids() == ("new name",)
    assert written["profiles"]["dev"]["servers"] == ["new name", "z", "new name"]
    file.remove("new name")
    assert json.loads(file.path.read_text())["profiles"]["dev"]["servers"] == ["z"]
    assert file.ids() == ()


def test_a_new_name_must_be_free_and_good(file: ProfileFile) -> None:
    put(file.path, '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}')
    with pytest.raises(Conflict):
        file.rename("a", "b")
    for bad in ("", "a/b", "-x", "a\nb", " a", "x" * 129):
        with pytest.raises(InvalidInput):
            file.rename("a", bad)
        with pytest.raises(InvalidInput):
            file.add(bad, {"command": "x"})


@pytest.mark.parametrize("change", ["remove", "enable", "disable"])
def test_an_unknown_server_changes_nothing(file: ProfileFile, change: str) -> None:
    put(file.path, MAP)
    with pytest.raises(NotFound):
        getattr(file, change)("none")
    assert file.path.read_text() == MAP


def test_a_file_that_is_not_there_is_told(file: ProfileFile) -> None:
    file.path.parent.mkdir()
    with pytest.raises(NotFound):
        file.remove("a")


def test_what_could_not_be_read_again_is_not_written(file: ProfileFile) -> None:
    with pytest.raises(InvalidInput, match=r"^a\.comand:") as caught:
        file.add("a", {"comand": "x"})
    assert caught.value.hint == "did you mean 'command'?"
    assert not file.path.exists()


def test_a_broken_file_is_never_overwritten(file: ProfileFile) -> None:
    put(file.path, '{"servers": [')
    with pytest.raises(InvalidInput):
        file.add("a", {"command": "x"})
    assert file.path.read_text() == '{"servers": ['


def test_yaml_is_not_written(tmp_path: Path) -> None:
    file = ProfileFile(put(tmp_path / "mcp.yaml", "mcp: {}"))
    with pytest.raises(InvalidInput, match="YAML"):
        file.add("a", {"command": "x"})


def test_mode_and_link_of_a_file_stay(tmp_path: Path) -> None:
    real = put(tmp_path / "dotfiles" / "mcp.json", MAP)
    real.chmod(0o640)
    link = tmp_path / "crewx" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    ProfileFile(link).disable("a")
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert not contents(real.read_text()).profiles[0].is_enabled
    assert os.listdir(real.parent) == ["mcp.json"]


def test_a_write_that_fails_leaves_the_old_file(file: ProfileFile, monkeypatch: pytest.MonkeyPatch) -> None:
    put(file.path, MAP)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(Failed):
        file.disable("a")
    assert os.listdir(file.path.parent) == ["mcp.json"]
    assert file.path.read_text() == MAP


names = st.text("abcdefgh -_.é", min_size=1, max_size=8).filter(
    lambda name: name == name.strip() and name[0] not in "-."
)
fields = st.fixed_dictionaries(
    {"command": st.sampled_from(["npx", "uvx"])},
    optional={
        "args": st.lists(st.text(max_size=5).filter(lambda text: "\0" not in text), max_size=3),
        "env": st.dictionaries(st.text("ABC_", min_size=1, max_size=4), st.text(max_size=5), max_size=2),
        "timeoutMs": st.integers(1, 99999),
        "x-unknown": st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    },
)
steps = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "rename", "disable", "enable"]), names, names, fields), max_size=8
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(start=st.sampled_from([LIST, MAP, "{}", '{"servers": {}}']), steps=steps)
def test_any_series_of_changes_does_what_a_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, start: str, steps: list[Any]
) -> None:
    file = ProfileFile(put(tmp_path_factory.mktemp("p") / "mcp.json", start))
    model = _servers(file.path)
    for action, name, other, entry in steps:
        known = list(model)
        chosen = known[len(name) % len(known)] if known else name
        if action == "add" and name not in model:
            file.add(name, entry)
            model[name] = entry
        elif action == "remove" and known:
            file.remove(chosen)
            del model[chosen]
        elif action == "rename" and known and other not in model:
            file.rename(chosen, other)
            model = {other if id == chosen else id: fields for id, fields in model.items()}
        elif action == "disable" and known:
            file.disable(chosen)
            model[chosen] = {**model[chosen], "disabled": True}
        elif action == "enable" and known:
            file.enable(chosen)
            model[chosen] = {key: value for key, value in model[chosen].items() if key != "disabled"}
    assert _servers(file.path) == model
    assert list(_servers(file.path)) == list(model)


def _servers(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text())
    found: dict[str, Any] = {}
    for section in (document.get("servers", {}), document.get("mcpServers", {})):
        items = section.items() if isinstance(section, dict) else [(one["id"], one) for one in section]
        found.update({id: {k: v for k, v in fields.items() if k != "id"} for id, fields in items})
    return found


def test_writers_in_several_processes_lose_nothing(file: ProfileFile) -> None:
    put(file.path, LIST)
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from dari.bridge.config.writer import ProfileFile
        file, me = ProfileFile(Path(sys.argv[1])), sys.argv[2]
        for number in range(12):
            file.add(f"{me}-{number}", {"command": "x"})
            file.disable(f"{me}-{number}")
        """
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(file.path), str(one)]) for one in range(3)]
    assert [writer.wait(timeout=50) for writer in writers] == [0, 0, 0]
    assert set(file.ids()) == {"a", *(f"{one}-{number}" for one in range(3) for number in range(12))}


def test_a_lock_that_is_held_too_long_is_told(tmp_path: Path) -> None:
    with folder_lock(tmp_path), pytest.raises(TimedOut), folder_lock(tmp_path, wait_s=0.01):
        pass


@pytest.mark.parametrize("target", ["fifo", "/dev/zero"])
def test_what_is_no_regular_file_is_not_read_to_be_written(file: ProfileFile, tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    file.path.parent.mkdir()
    file.path.symlink_to(tmp_path / target)
    with pytest.raises(Failed, match=f"{re.escape(str(file.path))}: not a regular file"):
        file.add("a", {"command": "x"})


def test_the_book_writes_to_the_layer_where_a_server_stands(world: World) -> None:
    world.book.add("mine", {"command": "x"})
    world.book.add("ours", {"command": "x"}, "project")
    assert stat.S_IMODE(world.project_file.stat().st_mode) == 0o644
    assert world.states() == {"ours": "ready", "mine": "ready"}
    assert world.book.disable("ours") == world.project_file
    assert world.book.rename("mine", "my") == world.user_file
    assert world.states() == {"ours": "disabled", "my": "ready"}
    assert world.book.enable("ours") == world.project_file
    assert world.book.remove("my") == world.user_file
    assert world.states() == {"ours": "ready"}


def test_the_file_of_the_variable_is_written_when_it_is_named(world: World) -> None:
    with pytest.raises(InvalidInput, match="CREWX_MCP_JSON"):
        world.book.add("a", {"command": "x"}, "env")
    world.environ["CREWX_MCP_JSON"] = str(world.home / "x.json")
    assert world.book.add("a", {"command": "x"}, "env") == world.home / "x.json"
    assert world.states() == {"a": "ready"}


def test_a_file_of_another_program_is_never_written(world: World) -> None:
    other = put(world.home / ".cursor/mcp.json", '{"mcpServers": {"fs": {"command": "a"}}}')
    world.user({"imports": ["cursor"]})
    with pytest.raises(InvalidInput, match="cursor"):
        world.book.disable("fs")
    assert other.read_text() == '{"mcpServers": {"fs": {"command": "a"}}}'
