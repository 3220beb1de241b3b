"""The keys of a tmux user's fingers in `crux attach`: copy and search, resize, rename, the list of windows."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from tests.support.crux_command import Crux
from tests.support.terminal_user import Person, person

PREFIX = "\x02"
CTRL_LEFT, CTRL_RIGHT, ALT_LEFT = "\x1b[1;5D", "\x1b[1;5C", "\x1b[1;3D"


def leave(someone: Person) -> None:
    someone.type(PREFIX + "d")
    assert someone.end() == 0


def print_numbers(crux: Crux, folder: Path) -> None:
    path = folder / "numbers.sh"
    path.write_text("seq -f 'number %g' 1 200; stty -echo; exec cat")
    crux.ok("new-window", "--", "sh", str(path))


def clipboard(someone: Person) -> str:
    """What was last sent to the person's own clipboard (OSC 52)."""
    found = re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", someone.seen)
    return base64.b64decode(found[-1]).decode() if found else ""


def test_text_is_found_selected_copied_and_pasted(crux: Crux, tmp_path: Path) -> None:
    print_numbers(crux, tmp_path)
    with person("attach", rows=20) as someone:
        someone.until_text("number 200")
        # All at once, as fast fingers do it: nothing of it may reach the program.
        someone.type(PREFIX + "[" + "?number 42\r")
        someone.until(lambda: someone.screen[someone.engine.cursor.row] == "number 42")
        someone.type(" jj$\r")
        someone.until(lambda: "copied" in someone.status)
        assert clipboard(someone) == "number 42\nnumber 43\nnumber 44"
        someone.until_text("number 200")
        someone.type(PREFIX + "]")
        someone.until(lambda: "number 43" in someone.screen[:-1])  # `cat` repeats whole lines
        leave(someone)
    assert "?number" not in crux.ok("get-text")


def test_a_search_goes_on_and_back_and_says_when_nothing_is_found(crux: Crux, tmp_path: Path) -> None:
    print_numbers(crux, tmp_path)
    with person("attach", rows=20) as someone:
        someone.until_text("number 200")
        someone.type(PREFIX + "[?number 1\r")
        someone.until(lambda: someone.screen[someone.engine.cursor.row] == "number 199")
        someone.type("n")
        someone.until(lambda: someone.screen[someone.engine.cursor.row] == "number 198")
        someone.type("N")
        someone.until(lambda: someone.screen[someone.engine.cursor.row] == "number 199")
        someone.type("/no such text\r")
        someone.until(lambda: "nothing found" in someone.status)
        someone.type("g")
        someone.until(lambda: someone.screen[0] == "number 1")
        someone.type("q")
        someone.until_text("number 200")
        leave(someone)


def test_ctrl_and_alt_arrows_move_the_border_and_repeat_without_the_prefix(crux: Crux) -> None:
    with person("attach") as someone:
        someone.until_text("$")
        someone.type(PREFIX + "%")
        someone.until(lambda: "│" in someone.screen[0])
        border = someone.screen[0].index("│")
        someone.type(PREFIX + CTRL_LEFT + CTRL_LEFT + ALT_LEFT)
        someone.until(lambda: someone.screen[0].find("│") == border - 7)
        someone.type(PREFIX + CTRL_RIGHT)
        someone.until(lambda: someone.screen[0].find("│") == border - 6)
        leave(someone)


def test_a_tab_and_a_window_are_renamed_in_the_status_line(crux: Crux) -> None:
    with person("attach") as someone:
        someone.until_text("$")
        someone.type(PREFIX + ",")
        someone.until(lambda: "name of the tab" in someone.status)
        someone.type("\x15빌드\r")
        someone.until(lambda: "0:빌드*" in someone.status)
        someone.type(PREFIX + "$" + "\x15other\x1b")
        someone.until(lambda: "name of" not in someone.status)
        someone.type(PREFIX + "$" + "\x15workshop\r")
        someone.until(lambda: "[workshop]" in someone.status)
        leave(someone)


def test_the_status_line_keeps_the_shown_tab_and_notices_where_tabs_do_not_fit(crux: Crux) -> None:
    with person("attach", cols=40) as someone:
        someone.until_text("$")
        for index in range(1, 9):
            someone.type(PREFIX + "c")
            someone.until(lambda index=index: f" {index}:" in someone.status and "*" in someone.status)  # type: ignore[misc]
        assert " < " in someone.status and " 0:" not in someone.status
        someone.type(PREFIX + "[")
        someone.until(lambda: "copy mode" in someone.status)
        someone.type("q" + PREFIX + "0")
        someone.until(lambda: " 0:" in someone.status and " > " in someone.status + " ")
        leave(someone)


def test_a_digit_that_is_no_number_is_no_tab(crux: Crux) -> None:
    with person("attach") as someone:
        someone.until_text("$")
        someone.type(PREFIX + "²")
        someone.until(lambda: "no command for this key" in someone.status)
        leave(someone)


def test_the_list_of_windows_takes_the_person_to_a_pane(crux: Crux) -> None:
    crux.ok("new-window", "--name", "first", "--", "sh", "-c", "echo in the first; exec cat")
    crux.ok("new-window", "--name", "second", "--", "sh", "-c", "echo in the second; exec cat")
    with person("attach") as someone:
        someone.until_text("in the second")
        someone.type(PREFIX + "w")
        someone.until_text("Enter: go there")
        someone.until_text("second")
        someone.type("g\x1b[B\x1b[B\r")
        someone.until_text("in the first")
        someone.type(PREFIX + "w")
        someone.until_text("Enter: go there")
        someone.type("q")
        someone.until_text("in the first")
        leave(someone)


def test_a_paste_into_something_of_ours_does_not_reach_the_program(crux: Crux, tmp_path: Path) -> None:
    path = tmp_path / "modern.sh"
    path.write_text(r"printf '\033[?2004h'; stty raw -echo; exec cat -v")
    crux.ok("new-window", "--", "sh", str(path))
    with person("attach") as someone:
        someone.until(lambda: someone.engine.modes.bracketed_paste)
        someone.type(PREFIX + ",")
        someone.until(lambda: "name of the tab" in someone.status)
        someone.type("\x15\x1b[200~two\rlines\x1b[201~\r")
        someone.until(lambda: "0:two lines*" in someone.status)
        someone.type(PREFIX + "x")
        someone.until(lambda: "(y/n)" in someone.status)
        someone.type("\x1b[200~yes\rrm\r\x1b[201~")
        someone.until(lambda: "(y/n)" not in someone.status)
        someone.type(PREFIX + "[")
        someone.until(lambda: "copy mode" in someone.status)
        someone.type("\x1b[200~q rm\r\x1b[201~")
        someone.until(lambda: "copy mode" not in someone.status)
        someone.type("z")
        someone.until_text("z")
        assert someone.screen[0] == "z"
        leave(someone)


def test_the_list_of_windows_follows_the_size_of_the_terminal(crux: Crux) -> None:
    with person("attach", cols=90, rows=25) as someone:
        someone.until_text("$")
        someone.type(PREFIX + "w")
        someone.until(lambda: "Enter: go there" in someone.status)
        someone.engine.feed(b"\x1b[2J")
        someone.resize(70, 15)
        someone.until(lambda: "Enter: go there" in someone.status)
        someone.type("q")
        someone.until_text("$")
        leave(someone)
