from __future__ import annotations

import os
import select
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.errors import InvalidInput
from dari.terminal.engine.input_encoding import encode_key
from dari.terminal.engine.keys import Key
from dari.terminal.tmux.command_line import TmuxCall, parse_call, parse_invocation, split_commands
from dari.terminal.tmux.formats import Scope, expand
from dari.terminal.tmux.requests import capture_range, keys_of, parse_size, split_request
from tests.support.tmux_server import Tmux

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


def test_the_split_of_agent_teams_is_understood() -> None:
    line = ["split-window", "-d", "-t", "%3", "-h", "-l", "70%", "-P", "-F", "#{pane_id}", "--", "cat"]
    (call,) = parse_invocation(line).calls
    request = split_request(call, 101, 30)
    assert (request.target, request.orientation, request.size) == ("%3", "horizontal", 70)
    assert not request.is_focused and request.format == "#{pane_id}" and request.command == ("cat",)


def test_the_other_calls_of_agent_teams_are_understood() -> None:
    respawn = parse_call(["respawn-pane", "-k", "-t", "%1", "-e", "A=1", "-e", "B=x=y", "--", "sh", "-c", "ls -l"])
    assert respawn.has("k") and respawn.words == ("sh", "-c", "ls -l") and respawn.flags["e"] == ("A=1", "B=x=y")
    option = parse_call(["set-option", "-p", "-t", "%1", "remain-on-exit", "failed"])
    assert option.has("p") and option.words == ("remain-on-exit", "failed")
    title = parse_call(["select-pane", "-t", "%1", "-T", "worker 1"])
    assert title.get("T") == "worker 1"
    style = parse_call(["select-pane", "-t%1", "-P", "bg=default,fg=blue"])
    assert (style.get("t"), style.get("P")) == ("%1", "bg=default,fg=blue")


def test_commands_are_told_apart_at_semicolons() -> None:
    words = ["new", "-d", ";", "split-window", "-h;", "send-keys", "a\\;", "b", "\\;"]
    assert split_commands(words) == [["new", "-d"], ["split-window", "-h"], ["send-keys", "a;", "b", ";"]]
    assert [call.name for call in parse_invocation(["-L", "x", *words]).calls] == [
        "new-session",
        "split-window",
        "send-keys",
    ]


@pytest.mark.parametrize(("text", "cells"), [("20", 20), ("50%", 40), ("33%", 26), ("100%", 80), ("0", 0)])
def test_a_size_is_cells_or_a_share(text: str, cells: int) -> None:
    assert parse_size(text, 80) == cells


@pytest.mark.parametrize("text", ["", "x", "-5", "101%", "5px"])
def test_another_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_size(text, 80)


def test_time_is_filled_in_only_where_display_message_does() -> None:
    assert expand("%Y", Scope({})) == "%Y"
    assert expand("%Y #{x}", Scope({"x": "1"}), has_time=True) == time.strftime("%Y 1")


def test_a_format_that_repeats_itself_ends() -> None:
    assert len(expand("#{E:x}", Scope({"x": "#{E:x}#{E:x}"}))) < 10
    panes = [Scope({"n": str(number)}) for number in range(50)]
    assert expand("#{P:#{P:#{P:#{P:x}}}}", Scope({}, panes=panes)).startswith("x")


@pytest.fixture
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    server = Tmux(tmp_path_factory.mktemp("t"))
    try:
        yield server
    finally:
        server.kill()


@needs_tmux
def test_the_rows_of_capture_pane_are_those_that_tmux_prints(tmux: Tmux) -> None:
    tmux.run("new-session", "-d", "-x", "40", "-y", "10", "seq 1 50; printf end; tmux wait-for -S ready; cat")
    tmux.run("wait-for", "ready")
    rows = tmux.run("capture-pane", "-p", "-S", "-").splitlines()
    history = int(tmux.run("display-message", "-p", "#{history_size}"))
    assert len(rows) == history + 10
    lines = [
        ["-S", "-5"],
        ["-S", "-5", "-E", "-2"],
        ["-S", "2", "-E", "5"],
        ["-S", "-", "-E", "0"],
        ["-S", "-999"],
        ["-E", "-"],
    ]
    lines += [["-E", "99"], ["-S", "8", "-E", "3"], ["-S", "x"], [], ["-S", "99"]]
    for flags in lines:
        start, end = capture_range(parse_call(["capture-pane", "-p", *flags]), history, 10)
        ours = rows[history + start : history + end + 1]
        assert ours == tmux.run("capture-pane", "-p", *flags).splitlines(), flags


# Home and End are left out: tmux sends those of `screen`, we send those of xterm.
SENT = [
    ["ls -l", "Enter"],
    ["C-c"],
    ["c-C"],
    ["M-x", "M-Enter"],
    ["Up", "Down", "Left", "Right"],
    ["PageUp", "PgDn", "NPage", "PPage", "DC", "IC", "Delete", "Insert"],
    ["F1", "F5", "F12"],
    ["C-Up", "M-Left", "S-Right", "C-M-Up"],
    ["Tab", "BTab", "BSpace", "Space", "Escape"],
    ["^A", "^["],
    ["enter"],
    ["Enterprise", "UPPER", "ctrl-c", "<Enter>", "Up Up"],
    ["-l", "Enter"],
    ["-l", "C-c", "x"],
    ["-H", "41", "0d", "1b"],
    ["-N", "3", "x"],
    ["a", " ", "b"],
    ["한글", "é"],
    ["C-Space"],
    ["C-["],
    [";"],
    ["--", "-x"],
]


def _bytes_of(call: TmuxCall) -> bytes:
    parts = []
    for sent in keys_of(call):
        if isinstance(sent, Key):
            parts.append(encode_key(sent, application_cursor=False, application_keypad=False))
        else:
            parts.append(sent.encode())
    return b"".join(parts)


@needs_tmux
def test_send_keys_writes_the_bytes_that_tmux_writes(tmux: Tmux, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        tmux.run(
            "new-session", "-d", "-x", "80", "-y", "24", f"stty raw -echo; tmux wait-for -S ready; exec cat > {pipe}"
        )
        tmux.run("wait-for", "ready")
        wrong = []
        for words in SENT:
            tmux.run("send-keys", *(["\\;"] if words == [";"] else words))
            tmux.run("send-keys", "-l", "<<end>>")
            theirs = _read_until(reader, b"<<end>>")
            ours = _bytes_of(parse_call(["send-keys", *words]))
            if ours != theirs:
                wrong.append((words, ours, theirs))
        assert not wrong
    finally:
        os.close(reader)


def _read_until(reader: int, end: bytes) -> bytes:
    data = b""
    deadline = time.monotonic() + 20
    while not data.endswith(end):
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, data
        data += os.read(reader, 65536)
    return data[: -len(end)]


def test_more_than_a_pane_takes_is_refused_before_it_is_made() -> None:
    with pytest.raises(InvalidInput):
        keys_of(parse_call(["send-keys", "-N", "10000", "-l", "x" * 100_000]))


@pytest.mark.parametrize(
    "text",
    [
        "#{e|+:nan,1}",
        "#{e|+:inf,1}",
        "#{e|*:1e308,1e308}",
        "#{e|*|f|999999999:nan,2}",
        "#{a:²}",
        "#{t:x}",
        "#{p9999999:}" * 1000,
    ],
)
def test_numbers_without_sense_cost_little_and_raise_nothing(text: str) -> None:
    assert len(expand(text, Scope({"x": "9" * 30}))) <= 10_000_000
