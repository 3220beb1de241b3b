"""`crux attach` in a real terminal, with real programs in the panes."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.support.crux_command import Crux, crux_in
from tests.support.terminal_user import Person, person

PREFIX = "\x02"


def _leave(someone: Person) -> None:
    someone.type(PREFIX + "d")
    assert someone.end() == 0


def _script(folder: Path, text: str) -> tuple[str, str]:
    """A program of a test's own: the policy asks a person about a line that changes the modes of the terminal."""
    path = folder / "script.sh"
    path.write_text(text)
    return "sh", str(path)


def _is_given_back(someone: Person) -> bool:
    modes = someone.engine.modes
    return (
        someone.modes == someone.before
        and not modes.alternate
        and not modes.bracketed_paste
        and not modes.application_cursor
        and not modes.application_keypad
        and not modes.focus
        and modes.mouse == "off"
        and someone.engine.cursor.is_visible
    )


def test_what_is_typed_runs_in_the_pane_and_leaving_gives_the_terminal_back(crux: Crux) -> None:
    with person("attach") as someone:
        someone.until_text("$")
        assert someone.engine.modes.alternate
        someone.type("echo hel''lo\r")
        someone.until_text("hello")
        assert "[w" in someone.status
        _leave(someone)
        assert _is_given_back(someone)
        assert "its programs go on" in someone.screen[0]
    assert "hello" in crux.ok("get-text")


def test_panes_are_split_focused_zoomed_and_ended_by_keys(crux: Crux) -> None:
    with person("attach") as someone:
        someone.until_text("$")
        someone.type(PREFIX + "%")
        someone.until(lambda: "│" in someone.screen[0] and someone.engine.cursor.col > 50)
        someone.type(PREFIX + '"')
        someone.until(lambda: someone.engine.cursor.row > 10)
        someone.until_text("├")
        lower = crux.json("list")["focused"]
        someone.type(PREFIX + "\x1b[D")
        someone.until(lambda: someone.engine.cursor.col < 50)
        someone.type(PREFIX + "\x1bOC")
        someone.until(lambda: someone.engine.cursor.col > 50)
        assert crux.json("list")["focused"] == lower
        someone.type(PREFIX + "z")
        someone.until(lambda: not any("│" in row for row in someone.screen))
        assert "Z" in someone.status
        someone.type(PREFIX + "z")
        someone.until_text("│")
        someone.type(PREFIX + "x")
        someone.until(lambda: "(y/n)" in someone.status)
        someone.type("y")
        someone.until(lambda: not any("├" in row for row in someone.screen))
        assert len(crux.json("list")["panes"]) == 2
        _leave(someone)


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
def test_vim_is_used_with_its_own_keys(crux: Crux, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    pane = crux.ok("split-pane", "--", "vim", "--clean", str(path))
    with person("attach") as someone:
        someone.until(lambda: someone.engine.modes.application_cursor)
        someone.type("ifirst\rsecond")
        someone.until_text("second")
        # Up as a terminal in this mode sends it: another one would insert an A.
        someone.type("\x1bOA")
        someone.until(lambda: someone.engine.cursor.row == 0)
        someone.type("\x1b")
        someone.until(lambda: not any("INSERT" in row for row in someone.screen))
        someone.type("A line\x1b")
        someone.until_text("first line")
        someone.type(":wq\r")
        someone.until(lambda: "ended (0)" in someone.status)
        assert path.read_text() == "first line\nsecond\n"
        assert not someone.engine.modes.application_cursor
        someone.type("q")
        assert someone.end() == 0
        assert _is_given_back(someone)
    assert pane not in [each["id"] for each in crux.json("list")["panes"]]


@pytest.mark.skipif(shutil.which("htop") is None, reason="htop is not installed")
def test_htop_is_drawn_with_its_colours(crux: Crux) -> None:
    crux.ok("split-pane", "--", "htop")
    with person("attach") as someone:
        someone.until_text("Load average")
        someone.until_text("F10Quit")
        bar = next(row for row in someone.engine.grid() if "F10Quit" in row.text)
        assert any(cell.bg is not None for cell in bar)
        someone.type("q")
        someone.until(lambda: "ended" in someone.status)
        _leave(someone)


def test_the_window_follows_the_size_of_the_terminal(crux: Crux) -> None:
    with person("attach", cols=90, rows=25) as someone:
        someone.until_text("$")
        assert crux.ok("exec", "stty size") == "24 90"
        someone.resize(70, 20)
        someone.until(lambda: crux.json("list")["panes"][0]["cols"] == 70)
        someone.type("stty size\r")
        someone.until_text("19 70")
        _leave(someone)


def test_several_people_see_the_same_in_the_size_of_the_smallest(crux: Crux) -> None:
    with person("attach", cols=100, rows=30) as first:
        first.until_text("$")
        with person("attach", cols=60, rows=20) as second:
            second.until_text("$")
            first.until(lambda: "·" in first.screen[0])
            second.type("echo from the sec''ond\r")
            first.until_text("from the second")
            first.type("echo from the fir''st\r")
            second.until_text("from the first")
            _leave(second)
        first.until(lambda: not any("·" in row for row in first.screen))
        _leave(first)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(crux: Crux, number: signal.Signals) -> None:
    with person("attach") as someone:
        someone.until_text("$")
        someone.process.send_signal(number)
        someone.end()
        assert _is_given_back(someone)


def test_a_server_that_dies_gives_the_terminal_back(tmp_path: Path) -> None:
    with crux_in(tmp_path) as crux:
        crux.ok("split-pane")
        with person("attach") as someone:
            someone.until_text("$")
            os.kill(crux.json("info")["pid"], signal.SIGKILL)
            assert someone.end() == 3
            assert _is_given_back(someone)
            assert any("hung up" in row for row in someone.screen)


def test_after_being_stopped_everything_is_drawn_again(crux: Crux) -> None:
    with person("attach") as someone:
        someone.until_text("$")
        someone.process.send_signal(signal.SIGSTOP)
        someone.engine.feed(b"\x1b[2J\x1b[Hnoise of another program")
        someone.process.send_signal(signal.SIGCONT)
        someone.until(lambda: someone.screen[0].startswith("$") and "[w" in someone.status)
        _leave(someone)


def test_only_what_changes_is_written(crux: Crux, tmp_path: Path) -> None:
    crux.ok("new-window", "--", *_script(tmp_path, "seq 1 40; stty -echo; exec cat"))
    with person("attach", cols=100, rows=50) as someone:
        someone.until_text("40")
        someone.seen = b""
        someone.type("one line\r")
        someone.until_text("one line")
        assert len(someone.seen) < 1500
        _leave(someone)


def test_a_click_takes_the_focus_and_the_wheel_looks_back(crux: Crux) -> None:
    crux.ok("new-window", "--", "sh", "-c", "seq 1 200; exec cat")
    crux.ok("split-pane", "--", "cat")
    with person("attach") as someone:
        someone.until_text("200")
        someone.type("\x1b[<0;5;5M\x1b[<0;5;5m")
        someone.until(lambda: someone.engine.cursor.col < 50)
        someone.type("\x1b[<64;5;5M" * 4)
        someone.until(lambda: "12 rows back" in someone.status)
        assert not someone.engine.cursor.is_visible
        someone.type("x")
        someone.until(lambda: "rows back" not in someone.status and someone.engine.cursor.is_visible)
        _leave(someone)


def test_a_program_that_uses_the_mouse_is_told_of_it(crux: Crux, tmp_path: Path) -> None:
    crux.ok("new-window", "--", *_script(tmp_path, r"printf '\033[?1000h\033[?1006h'; stty raw -echo; exec cat -v"))
    with person("attach") as someone:
        someone.until(lambda: "[w" in someone.status)
        someone.type("\x1b[<0;7;3M")
        someone.until_text("^[[<0;7;3M")
        _leave(someone)


def test_a_key_of_the_history_is_looked_at_by_page(crux: Crux) -> None:
    crux.ok("new-window", "--", "sh", "-c", "seq 1 200; exec cat")
    with person("attach", rows=21) as someone:
        someone.until_text("200")
        someone.type(PREFIX + "[")
        someone.until(lambda: "copy mode" in someone.status)
        someone.type("g")
        someone.until(lambda: someone.screen[0] == "1")
        someone.type("\x1b[6~")
        someone.until(lambda: someone.screen[0] == "20")
        someone.type("q")
        someone.until_text("200")
        _leave(someone)


def test_a_prefix_inside_a_paste_is_text(crux: Crux, tmp_path: Path) -> None:
    crux.ok("new-window", "--", *_script(tmp_path, r"printf '\033[?2004h'; stty raw -echo; exec cat -v"))
    with person("attach") as someone:
        someone.until(lambda: someone.engine.modes.bracketed_paste)
        someone.type("\x1b[200~a\x02d\x1b[201~")
        someone.until_text("^[[200~a^Bd^[[201~")
        someone.type(PREFIX + PREFIX)
        someone.until_text("^[[201~^B")
        _leave(someone)


def test_the_prefix_can_be_another_one(crux: Crux) -> None:
    with person("attach", "--prefix", "C-a") as someone:
        someone.until_text("$")
        someone.type("\x01?")
        someone.until(lambda: "split" in someone.status)
        someone.type("\x01d")
        assert someone.end() == 0
    assert crux("attach", "--prefix", "x").code == 1


def test_tabs_are_opened_and_shown_by_number(crux: Crux) -> None:
    with person("attach") as someone:
        someone.until_text("$")
        someone.type("echo fir''st tab\r")
        someone.until_text("first tab")
        someone.type(PREFIX + "c")
        someone.until(lambda: "1:t" in someone.status and not any("first tab" in row for row in someone.screen))
        someone.type(PREFIX + "0")
        someone.until_text("first tab")
        someone.type(PREFIX + "n")
        someone.until(lambda: not any("first tab" in row for row in someone.screen))
        _leave(someone)


def test_the_end_of_the_last_shell_ends_the_view(crux: Crux) -> None:
    with person("attach") as someone:
        someone.until_text("$")
        someone.type("exit\r")
        assert someone.end() == 0
        assert someone.screen[0] == "[exited]"
        assert _is_given_back(someone)


def test_a_pane_does_not_show_itself(crux: Crux) -> None:
    pane = crux.ok("split-pane")
    with person("attach") as someone:
        someone.until_text("$")
        import sys

        someone.type(f"{sys.executable} -m dari.cli.crux.main attach\r")
        someone.until_text(f"this is pane {pane}")
        _leave(someone)


def test_a_pane_that_prints_without_end_leaves_keys_and_other_panes_alone(crux: Crux) -> None:
    crux.ok("new-window", "--", "yes")
    with person("attach") as someone:
        someone.until(lambda: someone.screen[0] == "y")
        someone.type(PREFIX + "%")
        someone.until(lambda: "│" in someone.screen[0] and someone.engine.cursor.col > 50)
        someone.type("echo al''so here\r")
        someone.until_text("also here")
        assert someone.screen[0].startswith("y")
        _leave(someone)


def test_the_status_line_names_the_panes_of_the_tab(crux: Crux) -> None:
    crux.ok("new-window", "--name", "서버", "--", "cat")
    crux.ok("split-pane", "--name", "tests", "--", "cat")
    first, second = (pane["id"] for pane in crux.json("list")["panes"])
    with person("attach", cols=80) as someone:
        someone.until(lambda: someone.status.rstrip().endswith(f"{first}:서버  {second}:tests*"))
        crux.ok("rename-pane", "-t", first, "server")
        crux.ok("activate-pane", "-t", first)
        someone.until(lambda: someone.status.rstrip().endswith(f"{first}:server*  {second}:tests"))
        _leave(someone)


def test_wide_characters_and_clusters_stand_where_the_program_put_them(crux: Crux) -> None:
    crux.ok("new-window", "--", "sh", "-c", r"printf '한글|かな|👩‍💻|e\314\201|\n'; exec cat")
    crux.ok("split-pane", "--", "cat")
    with person("attach", cols=80) as someone:
        someone.until(lambda: "한글|かな|👩‍💻|e\u0301|" in someone.screen[0])
        row = someone.engine.grid()[0]
        assert [col for col, cell in enumerate(row) if cell.text == "|"] == [4, 9, 12, 14]
        assert "│" in [cell.text for cell in row]
        _leave(someone)


def test_windows_are_changed_by_keys_and_drawn_again_where_they_are(crux: Crux) -> None:
    crux.ok("new-window", "--name", "lower", "--", "sh", "-c", "echo in the first; exec cat")
    upper = crux.ok("new-window", "--name", "upper", "--", "sh", "-c", "echo in the second; exec cat")
    with person("attach", "--pane-id", "lower") as someone:
        someone.until(lambda: someone.screen[0] == "in the first" and "1/2]" in someone.status)
        someone.type(PREFIX + ")")
        someone.until(lambda: someone.screen[0] == "in the second" and "2/2]" in someone.status)
        assert crux.json("list")["focused"] == upper
        someone.engine.feed(b"\x1b[2J")
        someone.type(PREFIX + "r")
        someone.until(lambda: someone.screen[0] == "in the second" and "2/2]" in someone.status)
        someone.type(PREFIX + ")")
        someone.until_text("in the first")
        someone.type(PREFIX + "(")
        someone.until_text("in the second")
        _leave(someone)


def test_modes_of_one_program_are_not_left_for_another_after_everything_was_drawn_again(
    crux: Crux, tmp_path: Path
) -> None:
    crux.ok("new-window", "--name", "plain", "--", "cat")
    wants = r"printf '\033[?2004h\033[?1h\033[>5u'; stty raw -echo; exec cat -v"
    crux.ok("new-window", "--name", "modern", "--", *_script(tmp_path, wants))
    with person("attach") as someone:
        someone.until(lambda: someone.engine.modes.bracketed_paste and someone.engine.modes.kitty_keyboard == 5)
        for _ in range(2):
            someone.type(PREFIX + "w")
            someone.until_text("Enter: go there")
            someone.type("q")
            someone.until(lambda: "[w" in someone.status and someone.engine.modes.kitty_keyboard == 5)
        someone.type(PREFIX + "w")
        someone.until_text("Enter: go there")
        someone.type("g\r")
        someone.until(lambda: "plain*" in someone.status)
        modes = someone.engine.modes
        assert (modes.bracketed_paste, modes.application_cursor, modes.kitty_keyboard) == (False, False, 0)
        _leave(someone)


def test_a_session_of_tmux_that_is_there_is_attached_to(crux: Crux) -> None:
    crux.ok("tmux", "new-session", "-d", "-s", "main", "cat")
    with person("tmux", "new-session", "-A", "-s", "main") as someone:
        someone.until(lambda: "[main" in someone.status)
        _leave(someone)
