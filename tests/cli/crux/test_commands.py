"""The commands against a real server with real shells."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from dari.terminal.engine.keys import parse_keys, spell_keys, type_text
from dari.terminal.paths import CruxPaths
from tests.support.crux_command import Crux


def test_split_pane_prints_the_id_of_the_new_pane(crux: Crux) -> None:
    first = crux.ok("split-pane")
    second = crux.ok("split-pane", "--pane-id", first, "--name", "right one")
    panes = {pane["id"]: pane for pane in crux.json("list")["panes"]}
    assert list(panes) == [first, second]
    assert panes[second]["name"] == "right one"
    assert panes[second]["left"] > panes[first]["left"]
    assert panes[second]["is_focused"]


@pytest.mark.parametrize(
    ("direction", "side"),
    [
        ("right", "left"),
        ("horizontal", "left"),
        ("left", "left"),
        ("bottom", "top"),
        ("vertical", "top"),
        ("top", "top"),
    ],
)
def test_a_pane_is_put_on_the_side_that_was_named(crux: Crux, direction: str, side: str) -> None:
    first = crux.ok("split-pane")
    second = crux.ok("split-pane", "--direction", direction, "--no-focus")
    panes = {pane["id"]: pane for pane in crux.json("list")["panes"]}
    is_before = direction in ("left", "top")
    assert (panes[second][side] < panes[first][side]) == is_before
    assert panes[first][side] != panes[second][side]
    assert crux.json("list")["focused"] == first


def test_percent_is_the_share_of_the_pane_that_is_split(crux: Crux) -> None:
    crux.ok("new-window")
    low = crux.ok("split-pane", "--direction", "bottom", "--percent", "30")
    pane = next(pane for pane in crux.json("list")["panes"] if pane["id"] == low)
    assert pane["rows"] == 50 * 30 // 100


def test_a_command_after_two_dashes_runs_instead_of_a_shell(crux: Crux, tmp_path: Path) -> None:
    pane = crux.ok("split-pane", "--cwd", str(tmp_path), "--env", "A=b c", "--", "sh", "-c", 'echo "<$A>"; pwd; cat')
    assert crux.ok("wait", "-t", pane, "--seen", "--text", str(tmp_path)) == str(tmp_path)
    assert crux.ok("get-text", "-t", pane).splitlines() == ["<b c>", str(tmp_path)]


def test_exec_prints_the_commands_own_output_and_exits_as_it_does(crux: Crux) -> None:
    said = crux("exec", "echo one; echo two; false")
    assert (said.code, said.out) == (1, "one\ntwo\n")
    assert crux("exec", "--", "sh", "-c", "exit 42").code == 42
    assert crux.ok("exec", "printf", "%s|", "a  b", "$HOME") == "a  b|$HOME|"
    done = crux.json("exec", "echo hi")
    assert (done["status"], done["exit_code"], done["stdout"]) == ("done", 0, "hi")


def test_exec_says_124_while_the_command_still_runs_and_125_when_it_cannot_run(crux: Crux) -> None:
    pane = crux.ok("split-pane")
    said = crux("exec", "-t", pane, "--timeout", "0.2", "sleep 60")
    assert said.code == 124
    assert f"still running in pane {pane}" in said.err
    assert crux("exec", "-t", pane, "--timeout", "0.2", "echo hi").code == 125
    crux.ok("send-keys", "-t", pane, "C-c")
    assert crux("exec", "-t", "nobody", "true").code == 125
    assert crux("exec").code == 125


def test_text_is_pasted_unless_it_is_to_be_typed(crux: Crux) -> None:
    pane = crux.ok("split-pane", "--", "cat")
    crux.ok("send-text", "-t", pane, "--no-paste", "typed\n")
    crux.ok("wait", "-t", pane, "--seen", "typed")
    crux.ok("send-text", "-t", pane, "--enter", stdin="from stdin")
    crux.ok("wait", "-t", pane, "--seen", "from stdin")
    assert crux.ok("get-text", "-t", pane).splitlines() == ["typed", "typed", "from stdin", "from stdin"]


def test_keys_are_pressed_by_name_and_text_between_them_is_typed(crux: Crux) -> None:
    pane = crux.ok("split-pane", "--", "cat", "-v")
    crux.ok("send-keys", "-t", pane, "a <b> C-x", "Up", "Enter", "C-v", "C-c", "Enter")
    crux.ok("send-keys", "-t", pane, "--literal", "C-x")
    crux.ok("wait", "-t", pane, "--seen", "C-x")
    assert "a <b> C-x^[[A" in crux.ok("get-text", "-t", pane).splitlines()


@pytest.mark.parametrize(
    "words",
    [
        ["y", "Enter"],
        ["y", " ", "Enter"],
        ["E", "nter"],
        ["Up Up Enter"],
        ["<", "lt", ">"],
        ["a<b", "C-c"],
        [":wq<Enter>"],
    ],
)
def test_keys_of_several_words_are_the_same_keys_when_sent_as_one(words: list[str]) -> None:
    text, is_literal = spell_keys(parse_keys(*words))
    assert (type_text(text) if is_literal else parse_keys(text)) == parse_keys(*words)


def test_rows_of_the_scrollback_have_negative_numbers(crux: Crux) -> None:
    pane = crux.ok("new-window", "--", "sh", "-c", "seq 1 100; cat")
    crux.ok("wait", "-t", pane, "--seen", "--text", "100")
    assert crux.ok("get-text", "-t", pane, "--start-line", "-2", "--end-line", "0").splitlines() == ["50", "51", "52"]
    assert crux.ok("get-text", "-t", pane, "--start-line", "-").splitlines()[0] == "1"
    assert crux.ok("get-text", "-t", pane).splitlines()[-1] == "100"
    assert crux("get-text", "-t", pane, "--start-line", "x").code == 1


def test_escapes_carry_colours_and_no_other_sequence(crux: Crux) -> None:
    pane = crux.ok("split-pane", "--", "sh", "-c", r"printf '\033[31mred\033[0m\n'; cat")
    crux.ok("wait", "-t", pane, "--seen", "red")
    text = crux.ok("get-text", "-t", pane, "--escapes")
    assert "red" in text
    assert "\x1b[" in text
    assert crux.ok("get-text", "-t", pane) == "red"


def test_a_wrapped_line_can_be_joined(crux: Crux) -> None:
    pane = crux.ok("new-window", "--", "sh", "-c", "printf '%0250d\\n' 7; cat")
    crux.ok("wait", "-t", pane, "--seen", "7")
    assert len(crux.ok("get-text", "-t", pane).splitlines()) == 2
    assert len(crux.ok("get-text", "-t", pane, "--join").splitlines()) == 1


def test_wait_tells_apart_what_came_what_did_not_and_a_program_that_ended(crux: Crux) -> None:
    pane = crux.ok("split-pane", "--", "sh", "-c", "read a; echo port 80$a; read b; exit 7")
    assert crux("wait", "-t", pane, "--timeout", "0.1", "port").code == 124
    crux.ok("send-text", "-t", pane, "--enter", "80")
    found = crux.json("wait", "-t", pane, "--seen", r"port (\d+)")
    assert found["groups"] == ["8080"]
    crux.ok("send-text", "-t", pane, "--enter", "")
    assert crux("wait", "-t", pane, "--exit").code == 7
    assert crux("wait", "-t", pane, "never").code == 3
    assert crux("wait", "-t", pane).code == 1


def test_an_unknown_pane_is_exit_code_2_and_names_the_command_that_lists_them(crux: Crux) -> None:
    crux.ok("split-pane")
    for words in (["close-pane", "-t", "99"], ["get-text", "-t", "99"], ["activate-pane", "-t", "99"]):
        said = crux(*words)
        assert said.code == 2
        assert "crux list" in said.err
        assert "crux_list" not in said.err


def test_a_busy_pane_is_closed_with_force_only(crux: Crux) -> None:
    pane = crux.ok("split-pane")
    assert crux("exec", "-t", pane, "--timeout", "0.2", "cat").code == 124
    assert crux("close-pane", "-t", pane).code == 1
    crux.ok("close-pane", "-t", pane, "--force")
    assert crux.json("list")["panes"] == []


def test_the_pane_that_a_command_runs_in_is_its_default(crux: Crux) -> None:
    first = crux.ok("split-pane")
    crux.ok("split-pane")
    with patch.dict(os.environ, {"CRUX_PANE": first}):
        assert crux.json("exec", "true")["pane_id"] == first
        crux.ok("activate-pane")
    assert crux.json("list")["focused"] == first


def test_a_pane_reaches_its_own_server_by_its_environment(crux: Crux) -> None:
    pane = crux.ok("split-pane")
    crux.ok("split-pane")
    script = f"env -u DARI_HOME {sys.executable} -m dari.cli.crux.main rename-pane inside"
    assert crux("exec", "-t", pane, "--timeout", "20", script).code == 0
    names = {pane["id"]: pane["name"] for pane in crux.json("list")["panes"]}
    assert names[pane] == "inside"


def test_sizes_zoom_names_and_layouts_are_changed(crux: Crux) -> None:
    first = crux.ok("new-window")
    second = crux.ok("split-pane")
    assert crux.ok("resize", "-t", second, "--cols", "60") == "60x50"
    assert crux("resize", "-t", second).code == 1
    crux.ok("rename-pane", "-t", second, "two")
    assert crux.json("zoom", "-t", "two")["cols"] == 200
    assert crux.json("zoom", "-t", "two", "--off")["cols"] == 60
    crux.ok("select-layout", "even-vertical")
    panes = {pane["id"]: pane for pane in crux.json("list")["panes"]}
    assert (panes[first]["left"], panes[second]["left"]) == (0, 0)
    said = crux("select-layout", "evn-vertical")
    assert said.code == 1
    assert "did you mean even-vertical?" in said.err


def test_the_table_shows_a_line_for_each_pane(crux: Crux) -> None:
    pane = crux.ok("split-pane", "--name", "서버", "--", "cat")
    head, line = crux.ok("list").splitlines()
    assert head.split()[:3] == ["ID", "NAME", "WINDOW"]
    assert line.split()[:2] == [f"{pane}*", "서버"]
    assert crux.ok("list", "--format", "json") == crux.ok("--json", "list")


def test_a_screenshot_and_a_buffer_never_follow_a_link(crux: Crux, tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link.png"
    victim.write_text("precious")
    link.symlink_to(victim)
    crux("split-pane")
    assert crux("screenshot", "-o", str(link)).code != 0
    crux("tmux", "set-buffer", "words")
    assert crux("tmux", "save-buffer", str(link)).code != 0
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "made")
    assert crux("screenshot", "-o", str(dangling)).code != 0
    assert (victim.read_text(), (tmp_path / "made").exists()) == ("precious", False)


def test_a_screenshot_is_a_png_file(crux: Crux, tmp_path: Path) -> None:
    crux.ok("split-pane")
    path = tmp_path / "pane.png"
    told = crux.json("screenshot", "-o", str(path))
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (told["width"], told["height"])
    assert crux("screenshot", "-o", str(tmp_path / "no" / "x.png")).code == 3


def test_a_session_is_saved_listed_and_restored(crux: Crux) -> None:
    crux.ok("split-pane", "--name", "kept")
    saved = crux.ok("save-session", "friday")
    assert saved in crux.ok("list-sessions")
    restored = crux.ok("restore-session", saved, "--replace").split()
    panes = crux.json("list")["panes"]
    assert [pane["id"] for pane in panes] == restored
    assert panes[0]["name"] == "kept"
    assert crux("restore-session", "nothing").code == 2


def test_a_workspace_opens_its_panes(crux: Crux) -> None:
    names = [each["name"] for each in crux.json("load-workspace", "--list")["workspaces"]]
    assert {"debug-session", "full-stack", "agent-team-3", "monitoring"} <= set(names)
    lines = crux.ok("load-workspace", "agent-team-3", "--no-run").splitlines()
    listed = {pane["name"]: pane["id"] for pane in crux.json("list")["panes"]}
    assert dict(line.split() for line in lines) == listed
    assert crux("load-workspace").code == 1


def test_a_dangerous_command_is_refused_with_its_reason(crux: Crux) -> None:
    crux.ok("split-pane")
    said = crux("send-text", "--no-paste", "rm -rf /\n")
    assert said.code == 1
    assert "rm -rf /" in said.err


def test_kill_server_ends_programs_and_the_socket(tmp_path: Path) -> None:
    from tests.support.crux_command import crux_in

    with crux_in(tmp_path) as crux:
        pid = crux.json("split-pane", "--", "cat")["pid"]
        assert crux.json("kill-server") == {"success": True, "was_running": True}
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert not Path(CruxPaths.of_environment().socket).exists()
        assert crux("kill-server").out == "no server runs\n"
        assert crux.json("info")["running"] is False


def test_the_module_runs_as_a_command(crux: Crux) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dari.cli.crux.main", "list", "--json"], capture_output=True, timeout=30, check=True
    )
    assert json.loads(done.stdout) == crux.json("list")
