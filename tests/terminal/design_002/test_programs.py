"""Issue "What it must show" 2, through the tools: the side-by-side list of the reference (§6.2), and programs that
take the screen or ask questions, driven as an agent drives them."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import pytest

from tests.support.terminal_clients import Terminal

SIDE_BY_SIDE = {
    "echo": ("echo hello", 0, "hello"),
    "no-EOL": ("printf abc", 0, "abc"),
    "한글 😀": ("echo '한글 😀'", 0, "한글 😀"),
    "SGR": (r"printf '\033[1;31mred\033[0m plain\n'", 0, "red plain"),
    "3000 lines": ("seq 1 3000", 0, "\n".join(map(str, range(1, 3001)))),
    "false→1": ("false", 1, ""),
    "#": ("true # a comment", 0, ""),
    "for": ("for i in 1 2 3; do echo n$i; done", 0, "n1\nn2\nn3"),
    "200-char line": (f"echo {'x' * 200}", 0, "x" * 200),
    "heredoc": ("cat <<EOF\nfirst\n  second 'quoted'\nEOF", 0, "first\n  second 'quoted'"),
}


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_6_2_side_by_side(name: str, client: Any) -> None:
    """10 of 10, where peers score 1 to 9: the exit code, and the command's own output and nothing else."""
    command, code, output = SIDE_BY_SIDE[name]
    client.call("crux_resize_pane", cols=120, rows=30)
    done = client.call("crux_execute_command", command=command)
    assert (done["status"], done["exit_code"], done["stdout"], done["truncated"]) == ("done", code, output, False)


def begin(client: Any, command: str, sign: str) -> str:
    """Start a program that does not end by itself, and wait for a sign of it."""
    mark = client.call("crux_get_output")["mark"]
    running = client.call("crux_execute_command", command=command, timeout_ms=1)
    assert running["status"] == "running"
    assert client.call("crux_wait_for_output", pattern=sign, mark=mark, timeout_ms=20_000)["matched"]
    return str(running["command_id"])


def press(client: Any, keys: str, sign: str) -> None:
    """Press keys and wait for what they bring."""
    mark = client.call("crux_get_pane_state")["mark"]
    client.call("crux_send_keys", keys=keys)
    found = client.call("crux_wait_for_output", pattern=sign, mark=mark, timeout_ms=20_000)
    assert found["matched"], found


def ended(client: Any, command_id: str) -> int:
    done = client.call("crux_wait_command", command_id=command_id)
    assert done["status"] == "done"
    assert not client.call("crux_get_pane_state")["is_full_screen"]
    return int(done["exit_code"])


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on this machine")


def test_vim(client: Any, crux: Terminal) -> None:
    needs("vim")
    vim = begin(client, "vim --clean note.txt", r"note\.txt")
    assert client.call("crux_get_pane_state")["is_full_screen"]
    press(client, "i", "-- INSERT --")
    client.call("crux_send_text", text="한글\nsecond")
    press(client, "Escape", r"\d,\d")
    client.call("crux_send_keys", keys=":wq<Enter>")
    assert ended(client, vim) == 0
    assert (crux.path / "note.txt").read_text() == "한글\nsecond\n"


def test_less(client: Any, crux: Terminal) -> None:
    needs("less")
    (crux.path / "long.txt").write_text("".join(f"row {n}\n" for n in range(400)))
    less = begin(client, "LESS= less long.txt", "row 9")
    press(client, "G", r"\(END\)")
    assert "row 399" in client.call("crux_get_raw_text")["text"]
    press(client, "?row 123<Enter>", "row 123")
    press(client, "PageUp", "row 9[0-9]")
    client.call("crux_send_keys", keys="q")
    assert ended(client, less) == 0


def test_htop(client: Any) -> None:
    needs("htop")
    htop = begin(client, "htop", r"F10\s*Quit")
    assert client.call("crux_get_running_process")["name"] == "htop"
    press(client, "F1", "Process state")
    client.call("crux_send_keys", keys="x")
    client.call("crux_send_keys", keys="F10")
    assert ended(client, htop) == 0


def test_python_repl(client: Any) -> None:
    repl = begin(client, f"PYTHON_BASIC_REPL=1 {sys.executable} -q", ">>> ")
    mark = client.call("crux_get_output")["mark"]
    client.call("crux_send_text", text="print('an' + 'swer', 6 * 7)\n")
    found = client.call("crux_wait_for_output", pattern=r"answer (\d+)", mark=mark)
    assert (found["text"], found["groups"]) == ("answer 42", ["42"]), "the answer, not the echo of the question"
    client.call("crux_send_keys", keys="C-d")
    assert ended(client, repl) == 0


def test_password_prompt(client: Any) -> None:
    asking = begin(client, "read -r -s -p 'Password: ' word; echo; echo got ${#word}", "Password: ")
    mark = client.call("crux_get_output")["mark"]
    client.call("crux_send_text", text="correct horse", enter=True)
    assert client.call("crux_wait_for_output", pattern=r"got (\d+)", mark=mark)["groups"] == ["13"]
    assert ended(client, asking) == 0
    assert "correct horse" not in client.call("crux_get_raw_text", scrollback=True)["text"]


def test_getpass_is_known_for_what_it_is(client: Any) -> None:
    program = 'import getpass; print(len(getpass.getpass("Secret? ")))'
    asking = begin(client, f"{sys.executable} -c '{program}'", "Secret")
    assert client.call("crux_get_pane_state")["is_asking_secret"]
    client.call("crux_send_text", text="1234567\n")
    assert ended(client, asking) == 0


def test_full_screen_menu(client: Any) -> None:
    """A curses program: arrow keys in its mode, seen as text and as a difference between two moments."""
    menu = begin(client, "menu", "gamma")
    before = client.call("crux_capture_pane")["capture_id"]
    press(client, "Down", "> beta")
    changed = client.call("crux_visual_diff", before=before)
    assert {row["row"]: row["after"].strip() for row in changed["rows"]} == {2: "alpha", 3: "> beta"}
    press(client, "Down", "> gamma")
    client.call("crux_send_keys", keys="Enter")
    assert ended(client, menu) == 0
    assert client.call("crux_get_output", lines=2)["text"].split("\n")[0] == "chosen gamma"
