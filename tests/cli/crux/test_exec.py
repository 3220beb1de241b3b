"""`crux exec` while its command runs: lines as they come, questions, progress bars, readers that leave."""

from __future__ import annotations

import subprocess
import sys

from tests.support.crux_command import Crux
from tests.support.terminal_user import person

COMMAND = (sys.executable, "-m", "dari.cli.crux.main")


def test_a_line_is_printed_before_the_command_ends(crux: Crux) -> None:
    pane = crux.ok("split-pane")
    words = [*COMMAND, "exec", "-t", pane, "echo first; read answer; echo got $answer; (exit 3)"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "first\n"
        assert running.poll() is None
        crux.ok("send-text", "-t", pane, "--enter", "it")
        # The terminal shows what is typed, as it would for a person.
        assert running.stdout.read() == "it\ngot it\n"
        assert running.wait(40) == 3


def test_a_question_is_seen_at_a_terminal_before_it_is_answered(crux: Crux) -> None:
    pane = crux.ok("split-pane")
    with person("exec", "-t", pane, "read -p 'Go on? ' x; echo said $x") as someone:
        someone.until(lambda: someone.screen[0] == "Go on?")
        crux.ok("send-text", "-t", pane, "--enter", "yes")
        assert someone.end() == 0
        assert someone.screen[:3] == ["Go on? yes", "said yes", ""]


def test_a_progress_bar_stays_in_its_row_and_a_pipe_gets_its_last_state(crux: Crux) -> None:
    pane = crux.ok("split-pane")
    bar = r"printf ' 10%%\r'; read -s x; printf ' 50%%\r'; read -s x; printf '100%%\n'; echo done"
    with person("exec", "-t", pane, bar) as someone:
        for seen in (" 10%", " 50%"):
            someone.until(lambda seen=seen: someone.screen[0] == seen)  # type: ignore[misc]
            crux.ok("send-keys", "-t", pane, "Enter")
        assert someone.end() == 0
        assert someone.screen[:3] == ["100%", "done", ""]
    assert crux.ok("exec", "-t", pane, r"printf ' 10%%\r'; printf '100%%\n'; printf 'no end'") == "100%\nno end"


def test_output_that_is_larger_than_what_is_kept_is_passed_on_whole(crux: Crux) -> None:
    crux.ok("split-pane")
    told = crux.ok("exec", "seq 1 400000").split("\n")
    assert told == [str(number) for number in range(1, 400_001)]


def test_empty_lines_are_kept_and_a_line_end_is_added_only_where_it_lacks(crux: Crux) -> None:
    crux.ok("split-pane")
    assert crux("exec", r"printf '\n\na\n\n'").out == "\n\na\n\n"
    assert crux("exec", "printf a").out == "a\n"
    assert crux("exec", "true").out == ""


def test_a_reader_that_has_seen_enough_ends_the_command(crux: Crux) -> None:
    pane = crux.ok("split-pane")
    with subprocess.Popen([*COMMAND, "exec", "-t", pane, "yes"], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "y\n"
        running.stdout.close()
        assert running.wait(40) == 0
    assert crux.ok("exec", "-t", pane, "echo free") == "free"


def test_what_controls_a_terminal_does_not_reach_the_one_of_the_reader(crux: Crux) -> None:
    pane = crux.ok("split-pane")
    script = r"printf '\033[2J\033[H\033]0;title\007\033[31mred\033[0m \302\233 8-bit\n'"
    with person("exec", "-t", pane, script) as someone:
        assert someone.end() == 0
        assert b"\x1b]0" not in someone.seen
        assert b"\x1b[2J" not in someone.seen
        assert b"\xc2\x9b" not in someone.seen
        assert "red" in someone.screen[0]


def test_shells_that_tell_less_are_followed_as_well(crux: Crux) -> None:
    pane = crux.ok("split-pane", "--shell", "sh")
    said = crux("exec", "-t", pane, "echo one; echo two; false")
    assert (said.code, said.out) == (1, "one\ntwo\n")


def test_a_time_limit_leaves_the_command_running_and_shows_the_line_that_was_begun(crux: Crux) -> None:
    pane = crux.ok("split-pane")
    said = crux("exec", "-t", pane, "--timeout", "1", "echo begun; printf 'half a line'; sleep 60")
    assert (said.code, said.out) == (124, "begun\nhalf a line\n")
    assert f"still running in pane {pane}" in said.err
    crux.ok("send-keys", "-t", pane, "C-c")
    done = crux.json("exec", "-t", pane, "echo $((6 * 7))")
    assert (done["status"], done["stdout"], done["exit_code"]) == ("done", "42", 0)
