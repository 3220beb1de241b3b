"""`crux tmux` and tmux 3.3a side by side: the same commands, the same answers."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dari.terminal.paths import CruxPaths
from tests.support.command_result import CommandResult
from tests.support.crux_command import Crux, crux_in
from tests.support.tmux_server import Tmux

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

Run = Callable[..., CommandResult]
PLACES = "#{pane_index} #{pane_width}x#{pane_height} #{pane_left},#{pane_top} #{?pane_active,active,}"
SHOW = ("list-panes", "-F", PLACES)


class Sides:
    """Both, each with a session `work` of 120×40 and one pane that runs cat."""

    def __init__(self, ours: Run, theirs: Run) -> None:
        self.ours, self.theirs = ours, theirs
        self._names: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self.same("new-session", "-d", "-s", "work", "-n", "first", "-x", "120", "-y", "40", "cat")

    def both(self, *words: str) -> tuple[CommandResult, CommandResult]:
        return tuple(  # type: ignore[return-value]
            self._plain(run(*words), names) for run, names in zip((self.ours, self.theirs), self._names, strict=True)
        )

    def same(self, *words: str) -> str:
        """Run it on both sides, which have to agree; what they said."""
        ours, theirs = self.both(*words)
        assert ours == theirs, words
        return ours.out

    def until(self, *words: str, has: str) -> str:
        """Again and again until both say this; programs take their time."""
        deadline = time.monotonic() + 20
        while True:
            ours, theirs = self.both(*words)
            if (has in ours.out and ours == theirs) or time.monotonic() > deadline:
                assert ours == theirs
                assert has in ours.out
                return ours.out

    def _plain(self, said: CommandResult, names: dict[str, str]) -> CommandResult:
        """Numbers of panes, windows and sessions by when they were first seen; no sizes of histories."""

        def renamed(found: re.Match[str]) -> str:
            kind = found[0][0]
            count = sum(name.startswith(kind) for name in names)
            return names.setdefault(found[0], f"{kind}{'abcdefghijklmnopqrstuvwxyz'[count]}")

        text = re.sub(r"[%@$]\d+\b", renamed, said.out)
        text = re.sub(r"\[history \d+/\d+, \d+ bytes\]", "[history]", text)
        return CommandResult(said.code, text, said.err)


@pytest.fixture(scope="module")
def crux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crux]:
    with crux_in(tmp_path_factory.mktemp("c")) as crux:
        yield crux


@pytest.fixture
def sides(crux: Crux, tmp_path: Path) -> Iterator[Sides]:
    tmux = Tmux(tmp_path)

    def theirs(*words: str) -> CommandResult:
        done = tmux.call(*words)
        return CommandResult(done.returncode, done.stdout, done.stderr)

    for pane in crux.json("list")["panes"]:
        crux("close-pane", "-t", pane["id"], "--force")
    try:
        tmux.run("start-server", ";", "set-option", "-g", "exit-empty", "off")
        yield Sides(lambda *words: crux("tmux", *words), theirs)
    finally:
        tmux.kill()


def test_the_version_is_the_one_that_is_imitated(crux: Crux) -> None:
    assert crux.ok("tmux", "-V") == "tmux 3.3a"


@pytest.mark.parametrize(
    "flags",
    [
        ["-h"],
        ["-v"],
        ["-h", "-l", "30"],
        ["-v", "-l", "25%"],
        ["-h", "-p", "30"],
        ["-h", "-b"],
        ["-v", "-b", "-l", "30%"],
        ["-d"],
        ["-h", "-d", "-b"],
    ],
)
def test_splits_are_as_large_and_in_the_same_place(sides: Sides, flags: list[str]) -> None:
    sides.same("split-window", "-t", "work", *flags, "-P", "-F", PLACES, "cat")
    sides.same(*SHOW, "-t", "work")
    sides.same("split-window", "-t", "work:0.0", *flags, "cat")
    sides.same(*SHOW, "-t", "work")
    sides.same("split-window", "-f", "-t", "work:0.0", *flags, "cat")
    sides.same(*SHOW, "-t", "work")
    sides.same("display-message", "-p", "-t", "work", "#{window_width}x#{window_height} #{window_panes}")


def _without_numbers(text: str) -> str:
    """Layouts hold the numbers of panes, and a checksum over them."""
    return re.sub(r"layout [0-9a-f]{4},", "", re.sub(r"(\d+x\d+,\d+,\d+),\d+", r"\1", text))


def test_a_new_pane_is_named_by_its_id(sides: Sides) -> None:
    assert sides.same("split-window", "-t", "work", "-P", "-F", "#{pane_id}", "cat") == "%a\n"
    assert sides.same("split-window", "-t", "work", "-P", "cat") == "work:0.2\n"


def test_a_pane_without_room_is_refused(sides: Sides) -> None:
    for _ in range(5):
        sides.both("split-window", "-v", "-t", "work", "cat")
    assert sides.both("split-window", "-v", "-t", "work", "cat")[0].code == 1
    sides.same("split-window", "-v", "-t", "work", "cat")
    sides.same(*SHOW, "-t", "work")


def test_lists_look_alike(sides: Sides) -> None:
    sides.same("split-window", "-h", "-t", "work", "cat")
    sides.until("list-panes", "-t", "work", "-F", "#{pane_current_command}", has="cat\ncat")
    sides.same("list-panes", "-t", "work")
    sides.same("list-panes", "-s", "-t", "work")
    sides.same("list-panes", "-a")
    ours, theirs = sides.both("list-windows", "-t", "work")
    assert _without_numbers(ours.out) == _without_numbers(theirs.out)
    sides.same("list-panes", "-t", "work", "-F", "#{pane_pid}", "-f", "#{==:#{pane_index},7}")
    sides.same("list-sessions", "-F", "#{session_name} #{session_windows} #{session_attached}")
    sides.same(
        *("list-panes", "-t", "work", "-F"),
        "#{pane_top} #{pane_right} #{pane_bottom} #{pane_at_left}#{pane_at_right}#{pane_at_top} #{pane_dead}",
    )


@pytest.mark.parametrize("side", ["-L", "-R", "-U", "-D", "-l"])
def test_the_focus_moves_to_the_same_pane(sides: Sides, side: str) -> None:
    sides.same("split-window", "-h", "-t", "work", "cat")
    sides.same("split-window", "-v", "-t", "work", "cat")
    for _ in range(3):
        sides.same("select-pane", "-t", "work", side)
        sides.same(*SHOW, "-t", "work")
    sides.same("select-pane", "-t", "work:0.0")
    sides.same(*SHOW, "-t", "work")
    sides.same("last-pane", "-t", "work")
    sides.same(*SHOW, "-t", "work")


@pytest.mark.parametrize(
    "flags", [["-x", "30"], ["-y", "10"], ["-x", "25%"], ["-L", "5"], ["-R", "7"], ["-U", "3"], ["-D"], ["-Z"]]
)
def test_panes_are_resized_alike(sides: Sides, flags: list[str]) -> None:
    sides.same("split-window", "-h", "-t", "work", "cat")
    sides.same("split-window", "-v", "-t", "work", "cat")
    sides.same("resize-pane", "-t", "work", *flags)
    sides.same(*SHOW, "-t", "work")
    sides.same("display-message", "-p", "-t", "work", "#{window_zoomed_flag} #{window_flags}")
    sides.same("resize-pane", "-t", "work:0.0", *flags)
    sides.same(*SHOW, "-t", "work")


@pytest.mark.parametrize("layout", ["even-horizontal", "even-vertical", "main-horizontal", "main-vertical", "tiled"])
def test_layouts_put_panes_in_the_same_places(sides: Sides, layout: str) -> None:
    for _ in range(3):
        sides.same("split-window", "-t", "work:0.0", "cat")
    sides.same("select-layout", "-t", "work", layout)
    sides.same(*SHOW, "-t", "work")
    sides.same("split-window", "-h", "-t", "work:0.0", "cat")
    sides.same("select-layout", "-t", "work")
    sides.same(*SHOW, "-t", "work")
    sides.same("select-layout", "-t", "work", "-n")
    sides.same(*SHOW, "-t", "work")


def test_a_layout_of_tmux_is_taken_over(sides: Sides) -> None:
    for _ in range(2):
        sides.same("split-window", "-t", "work:0.0", "cat")
    text = sides.theirs("display-message", "-p", "-t", "work", "#{window_layout}").out.strip()
    sides.same("select-layout", "-t", "work", "even-horizontal")
    sides.same("select-layout", "-t", "work", text)
    sides.same(*SHOW, "-t", "work")
    assert sides.ours("select-layout", "-t", "work", "nonsense").err == "invalid layout: nonsense\n"  # tmux crashes


def test_keys_arrive_and_the_screen_is_captured_alike(sides: Sides) -> None:
    sides.same("send-keys", "-t", "work", "one two", "Enter", "C-c is not", "Space", "<b>", "Enter")
    sides.until("capture-pane", "-p", "-t", "work", has="one two\nC-c is not <b>\none two\nC-c is not <b>")
    sides.same("send-keys", "-t", "work", "-l", "Enter")
    sides.same("send-keys", "-t", "work", "Enter")
    # What `cat` prints and what the terminal echoes of the next line may come in any order.
    sides.until("capture-pane", "-p", "-t", "work", has="Enter\nEnter")
    sides.same("send-keys", "-t", "work", "-H", "68", "69", "0d")
    sides.until("capture-pane", "-p", "-t", "work", has="hi\nhi")
    sides.same("capture-pane", "-p", "-t", "work", "-S", "1", "-E", "2")
    sides.same("capture-pane", "-p", "-t", "work", "-S", "3", "-E", "1")
    sides.same("send-keys", "-t", "work", "-N", "3", "x")
    sides.until("capture-pane", "-p", "-t", "work", has="xxx")


def test_the_history_and_wrapped_lines_are_captured_alike(sides: Sides) -> None:
    script = "printf '%0200d\\n' 7; seq 1 100; exec cat"
    sides.same("respawn-pane", "-k", "-t", "work", script)
    sides.until("capture-pane", "-p", "-t", "work", has="100")
    for flags in (["-S", "-5"], ["-S", "-"], ["-S", "-3", "-E", "-1"], ["-S", "-", "-E", "-60", "-J"], ["-E", "5"]):
        sides.same("capture-pane", "-p", "-t", "work", *flags)
    sides.same("capture-pane", "-p", "-a", "-t", "work")


def test_a_pane_goes_away_with_its_program(sides: Sides) -> None:
    sides.same("split-window", "-h", "-t", "work", "read x")
    sides.same("send-keys", "-t", "work:0.1", "Enter")
    sides.until(*SHOW, "-t", "work", has="0 120x40 0,0 active")
    sides.same("split-window", "-t", "work", "cat")
    sides.same("kill-pane", "-t", "work:0.1")
    sides.same(*SHOW, "-t", "work")
    for _ in range(2):
        sides.same("split-window", "-h", "-t", "work", "cat")
    sides.same("kill-pane", "-a", "-t", "work:0.1")
    sides.same(*SHOW, "-t", "work")


def test_a_program_is_put_in_the_place_of_another(sides: Sides) -> None:
    sides.same("respawn-pane", "-t", "work", "echo no")
    sides.same("respawn-pane", "-k", "-t", "work", "echo new; exec cat")
    sides.until("capture-pane", "-p", "-t", "work", has="new")
    sides.same("list-panes", "-t", "work", "-F", "#{pane_id} #{pane_dead}")


def test_programs_start_where_the_caller_is_or_is_told(sides: Sides, tmp_path: Path) -> None:
    where = ("display-message", "-p", "-t", "work", "#{pane_current_path}")
    sides.same("split-window", "-t", "work", "cat")
    sides.until(*where, has=str(Path.cwd()))
    sides.same("split-window", "-t", "work", "-c", str(tmp_path), "cat")
    sides.until(*where, has=str(tmp_path))
    sides.same("split-window", "-t", "work", "-c", "#{pane_current_path}/..", "cat")
    sides.until(*where, has=str(tmp_path.parent))
    sides.same("new-window", "-t", "work", "-e", "WORD=a b", "echo $WORD; exec cat")
    sides.until("capture-pane", "-p", "-t", "work", has="a b")


def test_titles_options_and_buffers_are_kept(sides: Sides) -> None:
    sides.same("select-pane", "-t", "work", "-T", "my title")
    sides.same("display-message", "-p", "-t", "work", "#{pane_title}|#T")
    sides.same("set-option", "-p", "-t", "work", "@role", "tester")
    sides.same("display-message", "-p", "-t", "work", "#{@role} #{?#{@role},yes,no}")
    sides.same("show-options", "-p", "-v", "-t", "work", "@role")
    sides.same("show-options", "-p", "-t", "work", "@role")
    sides.same("set-option", "-g", "@all", "a b")
    sides.same("show-options", "-g", "-v", "@all")
    sides.same("set-option", "-g", "-u", "@all")
    sides.same("show-options", "-g", "-q", "@all")
    sides.same("set-option", "-p", "-t", "work", "pane-border-style", "fg=red")
    sides.same("set-buffer", "-b", "mine", "from a buffer")
    sides.same("show-buffer", "-b", "mine")
    sides.same("paste-buffer", "-b", "mine", "-t", "work")
    sides.until("capture-pane", "-p", "-t", "work", has="from a buffer")
    sides.same("delete-buffer", "-b", "mine")
    sides.same("show-buffer", "-b", "mine")


def test_a_new_buffer_takes_the_place_of_none(sides: Sides) -> None:
    sides.same("set-buffer", "first")
    sides.same("set-buffer", "second")
    sides.same("delete-buffer", "-b", "buffer0")
    sides.same("set-buffer", "third")
    sides.same("list-buffers")
    sides.same("show-buffer", "-b", "buffer1")


def test_a_condition_that_cannot_be_read_is_refused(crux: Crux) -> None:
    said = crux("tmux", "if-shell", "-F", "1", "display-message 'open")
    assert said.code == 1
    assert "display-message 'open" in said.err


def test_windows_and_sessions_come_and_go(sides: Sides) -> None:
    assert sides.same("new-window", "-t", "work", "-n", "second", "-P", "cat") == "work:1.0\n"
    listed = ("list-windows", "-t", "work", "-F", "#{window_index}:#{window_name} #{window_active}")
    sides.same(*listed)
    sides.same("select-window", "-t", "work:0")
    sides.same(*listed)
    sides.same("next-window", "-t", "work")
    sides.same(*listed)
    sides.same("rename-window", "-t", "work:1", "logs")
    sides.same("new-window", "-d", "-t", "work", "-n", "third", "cat")
    sides.same(*listed)
    sides.same("kill-window", "-t", "work:logs")
    sides.same("list-windows", "-t", "work", "-F", "#{window_name}")
    sides.same("new-session", "-d", "-s", "other", "-x", "100", "-y", "30", "cat")
    sides.same("new-session", "-d", "-s", "other", "cat")
    sides.same("list-sessions", "-F", "#{session_name} #{session_windows}")
    sides.same("has-session", "-t", "other")
    sides.same("rename-session", "-t", "other", "another")
    sides.same("has-session", "-t", "=other")
    sides.same("kill-session", "-t", "another")
    sides.same("list-sessions", "-F", "#{session_name}")


def test_a_new_window_stands_where_it_was_asked_for(sides: Sides) -> None:
    names = ("list-windows", "-t", "work", "-F", "#{window_name} #{window_active}")
    sides.same("new-session", "-d", "-s", "play", "-n", "game", "cat")
    for place in ("work:", "work:5", "work:1", "work:first", "work:^", "work:nope", "nosuch:", "work:0.0"):
        sides.both("new-window", "-d", "-t", place, "-n", f"in-{place.replace(':', '-')}", "cat")
        sides.same(*names)
    sides.same("new-window", "-d", "-a", "-t", "work:0", "-n", "after", "cat")
    sides.same("new-window", "-d", "-b", "-t", "work:0", "-n", "before", "cat")
    sides.same(*names)
    sides.same("new-window", "-d", "-k", "-t", "work:0", "-n", "in its place", "cat")
    sides.same("new-window", "-d", "-S", "-t", "work", "-n", "after", "cat")
    sides.same("new-window", "-S", "-t", "work", "-n", "after", "cat")
    sides.same(*names)
    sides.same("new-window", "-d", "-k", "-t", "work:2", "-n", "shown", "cat")
    assert "shown 1" in sides.same(*names)


def test_panes_are_swapped_alike(sides: Sides) -> None:
    for _ in range(2):
        sides.same("split-window", "-h", "-t", "work", "cat")
    ids = ("list-panes", "-t", "work", "-F", "#{pane_id} #{pane_left} #{pane_width}")
    sides.same(*ids)
    sides.same("swap-pane", "-s", "work:0.0", "-t", "work:0.2")
    sides.same(*ids)


@pytest.mark.parametrize(
    "words",
    [
        ["kill-pane", "-t", "%999"],
        ["send-keys", "-t", "nosuch:0.0", "x"],
        ["select-window", "-t", "work:77"],
        ["has-session", "-t", "nosuch"],
        ["nonsense"],
        ["split-window", "-Q"],
        ["display-message", "-p", "a", "b"],
        ["resize-pane", "-t", "work", "-L", "x"],
        ["resize-pane", "-t", "work", "-L", "²"],
        ["resize-pane", "-t", "work", "-L", "0"],
        ["send-keys", "-t", "work", "-N", "²", "x"],
        ["send-keys", "-t", "work", "-N", "9" * 5000, "x"],
        ["set-option", "-g", "base-index", "²"],
        ["select-window", "-t", "work:²"],
        ["move-window", "-s", "work:0", "-t", "work:²"],
        ["new-session", "-d", "-s", "other", "-x", "²"],
        ["new-window", "-d", "-t", "work:0", "cat"],
        ["new-window", "-d", "-t", "work:first", "cat"],
        ["new-window", "-d", "-t", "work:nope", "cat"],
        ["new-window", "-d", "-t", "nosuch:", "cat"],
        ["new-window", "-d", "-t", "work:0.0", "cat"],
        ["new-session", "-d", "-s", "work"],
        ["list"],
    ],
)
def test_failures_are_told_in_the_same_words(sides: Sides, words: list[str]) -> None:
    ours, theirs = sides.both(*words)
    assert (ours.code, ours.err, ours.out) == (theirs.code, theirs.err, theirs.out)
    assert ours.code == 1


def test_several_commands_run_one_after_the_other(sides: Sides) -> None:
    sides.same(
        "split-window", "-h", "-t", "work", "cat", ";", "select-pane", "-t", "work:0.0", ";", *SHOW, "-t", "work"
    )


WHERE = "#{session_name}:#{window_index}.#{pane_index} #{pane_id} #{pane_width}x#{pane_height}+#{pane_left}+#{pane_top}"


def test_panes_are_hidden_in_another_session_and_shown_again_alike(sides: Sides) -> None:
    sides.same("new-session", "-d", "-s", "hidden", "-x", "120", "-y", "40", "cat")
    sides.same("split-window", "-h", "-t", "work:0.0", "-l", "70%", "-P", "-F", "#{pane_id}", "--", "cat")
    sides.same("split-window", "-v", "-t", "work:0.1", "cat")
    listed = ("list-panes", "-a", "-F", WHERE + " #{pane_active}")
    sides.same(*listed)
    sides.same("break-pane", "-d", "-s", "work:0.1", "-t", "hidden:")
    sides.same(*listed)
    sides.same("join-pane", "-h", "-s", "hidden:1.0", "-t", "work:0.0")
    sides.same(*listed)
    sides.same("join-pane", "-d", "-v", "-b", "-l", "5", "-s", "work:0.1", "-t", "work:0.0")
    sides.same(*listed)
    sides.same("join-pane", "-s", "work:0.0", "-t", "work:0.0")
    sides.same("join-pane", "-s", "%999", "-t", "work:0.0")
    assert sides.same("break-pane", "-s", "work:0.0", "-n", "alone", "-P", "-t", "work:") == "work:1.0\n"
    sides.same("list-windows", "-t", "work", "-F", "#{window_index} #{window_name} #{window_active} #{window_panes}")
    sides.same("next-layout", "-t", "work:0")
    sides.same("previous-layout", "-t", "work:0")
    sides.same(*listed)


def test_what_agent_teams_ask_is_answered_alike(sides: Sides) -> None:
    """The calls of Claude Code's tmux backend, in their order."""
    assert sides.same("-V").startswith("tmux 3.")
    sides.same("-L", "default", "has-session", "-t", "work")
    sides.same("display-message", "-t", "work", "-p", "#{session_name}:#{window_index}")
    sides.same("split-window", "-d", "-t", "work:0.0", "-h", "-l", "70%", "-P", "-F", "#{pane_id}", "--", "cat")
    sides.same("set-option", "-p", "-t", "work:0.1", "remain-on-exit", "failed")
    sides.same("respawn-pane", "-k", "-t", "work:0.1", "--", "sh", "-c", "echo $0 started; exec cat", "worker")
    sides.until("capture-pane", "-p", "-t", "work:0.1", has="worker started")
    sides.same("select-pane", "-t", "work:0.1", "-P", "bg=default,fg=blue")
    for name, text in (
        ("pane-border-style", "fg=blue"),
        ("pane-active-border-style", "fg=blue"),
        ("pane-border-format", "#[fg=blue,bold] #{pane_title} #[default]"),
    ):
        sides.same("set-option", "-p", "-t", "work:0.1", name, text)
    sides.same("select-pane", "-t", "work:0.1", "-T", "researcher")
    sides.same("split-window", "-t", "work:0.1", "-v", "-P", "-F", "#{pane_id}", "cat")
    sides.same("select-layout", "-t", "work:0", "main-vertical")
    sides.same("resize-pane", "-t", "work:0.0", "-x", "30%")
    sides.same("list-panes", "-t", "work:0", "-F", WHERE + " #{pane_active}")
    sides.same("display-message", "-p", "-t", "work:0.1", "#{pane_title}")
    sides.same("send-keys", "-t", "work:0.1", "hello there", "Enter")
    sides.until("capture-pane", "-p", "-t", "work:0.1", has="hello there\nhello there")
    # With `failed`, tmux keeps a pane now and then though it ended well: it closes before its exit code is known.
    sides.same("set-option", "-p", "-t", "work:0.1", "remain-on-exit", "off")
    sides.same("send-keys", "-t", "work:0.1", "C-d")
    sides.until("list-panes", "-t", "work:0", "-F", "of #{window_panes}", has="of 2\n")
    sides.same("kill-pane", "-t", "work:0.1")
    sides.same("list-panes", "-t", "work:0", "-F", "#{pane_index}")


def test_a_pane_that_failed_is_kept_where_that_was_asked_for(sides: Sides) -> None:
    sides.same("split-window", "-t", "work:0.0", "-d", "cat")
    sides.same("set-option", "-p", "-t", "work:0.1", "remain-on-exit", "failed")
    sides.same("respawn-pane", "-k", "-t", "work:0.1", "exit 3")
    sides.until("list-panes", "-t", "work", "-F", "#{pane_index} #{pane_dead}", has="1 1")
    # tmux itself now and then closes the pane before it knows the exit code, and then shows none.
    assert "1 1 3" in sides.ours("list-panes", "-t", "work", "-F", "#{pane_index} #{pane_dead} #{pane_dead_status}").out


def test_a_condition_chooses_a_command_and_a_buffer_is_saved(sides: Sides, tmp_path: Path) -> None:
    assert sides.same("if-shell", "-F", "#{pane_id}", "display-message -p yes", "display-message -p no") == "yes\n"
    sides.same("if-shell", "-F", "0", "display-message -p yes")
    sides.same("set-buffer", "-b", "kept", "from a buffer")
    sides.same("save-buffer", "-b", "kept", str(tmp_path / "text"))
    sides.same("save-buffer", "-a", "-b", "kept", str(tmp_path / "text"))
    assert (tmp_path / "text").read_text() == "from a buffer" * 3  # tmux's, written again by ours or the other way
    sides.same("save-buffer", "-b", "nothing", str(tmp_path / "text"))


def test_a_program_finds_itself_inside_tmux(crux: Crux, tmp_path: Path) -> None:
    pane = crux.ok("new-window")
    run = f"{sys.executable} -m dari.cli.crux.main tmux --run"
    script = tmp_path / "team.sh"
    script.write_text('echo "$TMUX_PANE ${TMUX%%,*}"; tmux -V; tmux display-message -p "#{pane_id}"')
    told = crux.ok("exec", "-t", pane, f"{run} sh {script}").splitlines()
    assert told == [f"%{pane} {CruxPaths().mcp_socket}", "tmux 3.3a", f"%{pane}"]
    said = crux("tmux", "--run", "sh")
    assert (said.code, "in a pane of crux" in said.err) == (2, True)
    assert crux("tmux", "--run").code == 1


def test_a_file_that_is_not_ours_is_not_overwritten(crux: Crux, tmp_path: Path) -> None:
    path = tmp_path / "bin" / "tmux"
    assert crux.ok("tmux", "--install", str(path.parent)).splitlines()[0] == str(path)
    crux.ok("tmux", "--install", str(path.parent))
    assert subprocess.run([path, "-V"], capture_output=True, timeout=30, check=True).stdout == b"tmux 3.3a\n"
    path.write_text("#!/bin/sh\nexec /usr/bin/tmux\n")
    said = crux("tmux", "--install", str(path.parent))
    assert said.code == 1
    assert "not ours" in said.err


def test_a_lock_is_refused_rather_than_waited_for(crux: Crux) -> None:
    for flag in ("-L", "-U"):
        said = crux("tmux", "wait-for", flag, "lock")
        assert said.code == 1
        assert "no locks" in said.err


def test_a_signal_wakes_who_waits_for_it(crux: Crux) -> None:
    import threading

    crux.ok("split-pane")
    codes: list[int] = []
    from dari.cli.crux.tmux.main import run_tmux

    waiting = threading.Thread(target=lambda: codes.append(run_tmux(["wait-for", "done"])), daemon=True)
    waiting.start()
    crux.ok("tmux", "wait-for", "-S", "done")
    waiting.join(20)
    assert codes == [0]


def test_without_a_server_tmux_says_so(tmp_path: Path) -> None:
    with crux_in(tmp_path) as crux:
        said = crux("tmux", "list-panes")
        assert said.code == 1
        assert said.err.startswith("no server running on ")
