"""Issue "The 20 core tools … and these qualities", tool by tool, and what awkward input is answered with."""

from __future__ import annotations

import shutil
from typing import Any
from unicodedata import category

import pytest

from tests.support.terminal_clients import Terminal

SHELLS = ["bash", "zsh", "fish", "sh"]


@pytest.mark.parametrize("shell", SHELLS)
def test_execute_tells_code_output_duration_and_directory_and_goes_on_after_the_time(
    shell: str, client: Any, crux: Terminal
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this machine")
    client.call("crux_create_pane", name=shell, shell=shell, cwd=str(crux.path))
    failed = client.call("crux_execute_command", command="cd /usr; echo out; sh -c 'exit 5'")
    assert (failed["exit_code"], failed["stdout"], failed["cwd"]) == (5, "out", "/usr")
    assert failed["duration_ms"] > 0
    running = client.call("crux_execute_command", command="echo begun; sleep 600", timeout_ms=300)
    assert (running["status"], running["exit_code"]) == ("running", None)
    assert client.call("crux_wait_command", command_id=running["command_id"], timeout_ms=0)["status"] == "running"
    busy = client.fails("crux_execute_command", command="echo no", timeout_ms=1)
    assert busy["name"] == "conflict" and "sleep" in busy["message"]
    ended = client.call("crux_interrupt_command", command_id=running["command_id"])
    assert ended["status"] == "done" and ended["stdout"].split("\n")[0] == "begun"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_right_after_keys_is_the_command_alone(shell: str, client: Any) -> None:
    """^C, Enter and half a line at the prompt do not cost the next command its letters, nor become its result."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this machine")
    client.call("crux_create_pane", name=shell, shell=shell)
    client.call("crux_execute_command", command="true")
    for number, (text, keys) in enumerate(
        [("", "C-c"), ("half a line ", "C-c"), ("", "Enter"), ("echo typed", "Enter"), ("half a line ", "")]
    ):
        if text:
            client.call("crux_send_text", text=text)
        if keys:
            client.call("crux_send_keys", keys=keys)
        done = client.call("crux_execute_command", command=f"echo ok{number}")
        assert (done["exit_code"], done["stdout"]) == (0, f"ok{number}"), (text, keys)


@pytest.mark.parametrize("shell", SHELLS)
def test_questions_of_a_program_that_has_ended_are_not_answered_to_the_shell(
    shell: str, client: Any, crux: Terminal
) -> None:
    """`cat` of a binary file asks the terminal who it is; the answers are neither printed nor typed."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this machine")
    (crux.path / "asks").write_bytes(b"x\x1b[c\x1b[6n\x1b[5n\x1b[>c" * 20 + b"\n")
    client.call("crux_create_pane", name=shell, shell=shell, cwd=str(crux.path))
    for _ in range(3):
        assert client.call("crux_execute_command", command="cat asks")["stdout"] == "x" * 20
        assert client.call("crux_execute_command", command="echo fine")["stdout"] == "fine"


def test_a_script_that_asks_gets_its_answer(client: Any) -> None:
    done = client.call("crux_execute_command", command=r"printf '\033[5n'; read -r -s -d n answer; echo ${#answer}")
    assert done["stdout"] == "3"


def test_wait_sees_what_comes_after_the_call_or_the_mark_as_text_or_pattern(client: Any) -> None:
    client.call("crux_execute_command", command="echo early")
    assert not client.call("crux_wait_for_output", pattern="early", timeout_ms=30)["matched"]
    mark = client.call("crux_get_output")["mark"]
    client.call("crux_send_text", text="echo l''ate a.c\n")
    assert client.call("crux_wait_for_output", pattern=r"^late (\w).(\w)$", mark=mark)["groups"] == ["a", "c"]
    assert client.call("crux_wait_for_output", pattern="late a.c", regex=False, mark=mark)["matched"]
    assert not client.call("crux_wait_for_output", pattern="late abc", regex=False, mark=mark, timeout_ms=1)["matched"]
    client.call("crux_send_text", text="# only typed")
    assert not client.call("crux_wait_for_output", pattern="only typed", mark=mark, timeout_ms=60)["matched"]
    client.call("crux_send_keys", keys="C-u")


def test_a_pattern_that_would_never_end_is_stopped(client: Any) -> None:
    mark = client.call("crux_get_output")["mark"]
    client.call("crux_execute_command", command=f"echo {'a' * 60}b")
    error = client.fails("crux_wait_for_output", pattern="(a|aa)+$", mark=mark, timeout_ms=20_000)
    assert error["name"] == "invalid_input" and error["hint"]
    assert client.call("crux_execute_command", command="echo fine")["stdout"] == "fine"


CHORDS = {
    "Up": "1b5b41",
    "C-Right": "1b5b313b3543",
    "M-x": "1b78",
    "F5": "1b5b31357e",
    "<Ctrl-A><Tab><S-Tab>": "01091b5b5a",
    "Escape Enter Backspace Delete": "1b0d7f1b5b337e",
    "C-Space": "00",
    "한글": "ed959ceab880",
    "PageUp End F12": "1b5b357e1b5b461b5b32347e",
}


@pytest.mark.parametrize(("mode", "chords"), [("", CHORDS), (r"\033[?1h", {"Up": "1b4f41", "Home": "1b4f48"})])
def test_keys_are_encoded_for_the_mode_that_the_terminal_is_in(
    mode: str, chords: dict[str, str], client: Any, crux: Terminal
) -> None:
    expected = "".join(chords.values())
    mark = client.call("crux_get_output")["mark"]
    command = f"printf '{mode}'; rawkeys {len(expected) // 2} > keys; printf '\\033[?1l'"
    running = client.call("crux_execute_command", command=command, timeout_ms=1)
    assert client.call("crux_wait_for_output", pattern="^ready", mark=mark, timeout_ms=20_000)["matched"]
    for keys in chords:
        client.call("crux_send_keys", keys=keys)
    client.call("crux_wait_command", command_id=running["command_id"], timeout_ms=10_000)
    assert (crux.path / "keys").read_bytes().hex() == expected


def test_a_session_brings_back_layout_directory_environment_scrollback_and_commands(client: Any) -> None:
    client.call("crux_create_pane", name="left", cwd="/usr", direction="vertical", env={"KEPT": "yes"})
    client.call("crux_execute_command", command="echo to be kept")
    client.call("crux_create_pane", name="right", cwd="/tmp", command="sleep 600")
    before = {pane["name"]: pane for pane in client.call("crux_list_panes")["panes"]}
    client.call("crux_save_session", name="whole")
    restored = client.call("crux_restore_session", session_id="whole", commands=True)["panes"]
    after = {pane["name"]: pane for pane in client.call("crux_list_panes")["panes"] if pane["id"] in restored}
    for name in ("left", "right"):
        for fact in ("cols", "rows", "left", "top", "cwd"):
            assert after[name][fact] == before[name][fact], (name, fact)
    pane = after["left"]["id"]
    assert client.call("crux_execute_command", pane_id=pane, command="echo $KEPT")["stdout"] == "yes"
    assert "to be kept" in client.call("crux_get_scrollback", pane_id=pane)["text"]
    found = client.call("crux_wait_for_output", pane_id=after["right"]["id"], pattern="never", timeout_ms=200)
    assert not found["matched"]
    assert client.call("crux_get_running_process", pane_id=after["right"]["id"])["name"] == "sleep"


def test_a_session_without_its_commands_runs_none(client: Any) -> None:
    client.call("crux_create_pane", name="busy", command="sleep 600")
    client.call("crux_save_session", name="quiet")
    restored = client.call("crux_restore_session", session_id="quiet")["panes"]
    done = client.call("crux_execute_command", pane_id=restored[-1], command="echo at the prompt")
    assert done["stdout"] == "at the prompt"


# Awkward input


def test_very_much_output_is_cut_with_its_end_and_read_on(client: Any) -> None:
    done = client.call("crux_execute_command", command="seq 1 200000")
    assert done["truncated"] and done["stdout"].startswith("1\n2\n") and done["stdout"].endswith("\n200000")
    assert len(done["stdout"]) < 45_000
    part = client.call("crux_get_command_output", command_id=done["command_id"], offset=5, limit=2)
    assert (part["text"], part["next_offset"]) == ("6\n7", 7)


def test_binary_output_leaves_a_pane_that_works(client: Any) -> None:
    done = client.call("crux_execute_command", command="head -c 100000 /dev/urandom")
    assert done["exit_code"] == 0
    assert not [letter for letter in done["stdout"] if category(letter) == "Cc" and letter not in "\n\t"]
    client.call("crux_execute_command", command="tput reset 2>/dev/null || true")
    assert client.call("crux_execute_command", command="echo fine")["stdout"] == "fine"


def test_a_text_of_megabytes_is_refused_at_once_and_a_large_one_arrives(client: Any, crux: Terminal) -> None:
    error = client.fails("crux_send_text", text="x" * 10_000_000)
    assert error["name"] == "invalid_input" and "1000000" in error["hint"]
    running = client.call("crux_execute_command", command="cat > large", timeout_ms=20)
    for _ in range(20):
        client.call("crux_send_text", text=("y" * 999 + "\n") * 10)
    client.call("crux_send_keys", keys="C-d")
    assert client.call("crux_wait_command", command_id=running["command_id"])["exit_code"] == 0
    assert (crux.path / "large").stat().st_size == 200_000


def test_a_pane_whose_program_ended_says_so_and_can_still_be_read(client: Any) -> None:
    pane = client.call("crux_create_pane", name="gone")["id"]
    last = client.call("crux_execute_command", pane_id=pane, command="echo last words; exit 4")
    assert (last["exit_code"], last["stdout"].split("\n")[0]) == (4, "last words")
    error = client.fails("crux_execute_command", pane_id=pane, command="echo more")
    assert error["name"] == "conflict" and "4" in error["message"] and "pane" in error["hint"]
    assert "last words" in client.call("crux_get_raw_text", pane_id=pane)["text"]
    state = client.call("crux_get_pane_state", pane_id=pane)
    assert (state["is_alive"], state["exit_code"]) == (False, 4)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("""echo 'it'"'"'s' "$(printf '%s' 'nested "quotes"')" """, """it's nested "quotes\""""),
        ("printf '%s\\n' 'a\\b' \"c\\\\d\"", "a\\b\nc\\d"),
        ("echo $'tab\\there' ${HOME:+set}", "tab\there set"),
        ("echo '한글 😀 é 👩‍👩‍👧'", "한글 😀 é 👩‍👩‍👧"),
    ],
)
def test_quotes_and_letters_arrive_as_they_were_meant(command: str, output: str, client: Any) -> None:
    assert client.call("crux_execute_command", command=command)["stdout"] == output


def test_what_a_model_has_to_read_to_know_the_tools_stays_small(client: Any) -> None:
    """Names, descriptions and arguments of all tools, each of which says what it is: about 6,000 tokens."""
    tools = client.ask("tools/list")["result"]["tools"]
    size = sum(len(str(tool["inputSchema"])) + len(tool["description"]) + len(tool["name"]) for tool in tools)
    assert size < 25_000
    assert all(20 < len(tool["description"]) <= 120 for tool in tools)
