"""`crux` as a process: what a person or a script at a shell gets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.real_clients import DARI

pytestmark = pytest.mark.e2e


class Shell:
    def __init__(self, home: Path) -> None:
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "DARI_HOME": str(home / "dari"),
            "SHELL": "/bin/bash",
            "LC_ALL": "C.UTF-8",
        }
        self.words = [str(DARI.with_name("crux"))]

    def __call__(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.words, *words], env=self.env, input=stdin, capture_output=True, text=True, timeout=60, check=False
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.words, *words],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    try:
        yield shell
    finally:
        shell("kill-server")


def test_a_first_session_at_the_shell(shell: Shell, tmp_path: Path) -> None:
    assert shell("list").stdout == "no panes (open one: crux split-pane)\n"
    pane = shell("split-pane", "--cwd", str(tmp_path)).stdout.strip()
    done = shell("exec", "-t", pane, "pwd; (exit 9)")
    assert (done.returncode, done.stdout, done.stderr) == (9, f"{tmp_path}\n", "")
    assert shell("send-text", "-t", pane, "--enter", stdin="echo from $((40 + 2))").returncode == 0
    assert shell("wait", "-t", pane, "--seen", "from 42").stdout == "from 42\n"
    assert "from 42" in shell("get-text", "-t", pane).stdout
    assert json.loads(shell("--json", "list").stdout)["focused"] == pane
    assert shell("close-pane", "-t", pane).returncode == 0
    assert shell("get-text", "-t", pane).returncode == 2
    assert shell("kill-server").returncode == 0


def test_ctrl_c_interrupts_the_command_that_exec_waits_for(shell: Shell) -> None:
    pane = shell("split-pane").stdout.strip()
    waiting = shell.start("exec", "-t", pane, "--timeout", "50", "echo begun; sleep 50")
    shell("wait", "-t", pane, "--seen", "begun")
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=40)
    assert waiting.returncode == 130
    assert shell("exec", "-t", pane, "echo free").stdout == "free\n"


EARLY_CTRL_C = """
import os, signal, sys
from dari.cli.crux.main import main
from dari.daemon.blocking_client import BlockingClient

read_line = BlockingClient._read_line

def press_and_read(client, method):
    if method == "crux:command/start":
        os.kill(os.getpid(), signal.SIGINT)
    return read_line(client, method)

BlockingClient._read_line = press_and_read
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_ctrl_c_while_a_command_is_being_typed_interrupts_it_too(shell: Shell, options: tuple[str, ...]) -> None:
    pane = shell("split-pane").stdout.strip()
    words = [sys.executable, "-c", EARLY_CTRL_C, "exec", *options, "-t", pane, "sleep 50"]
    early = subprocess.run(words, env=shell.env, stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert early.returncode == 130
    assert shell("exec", "-t", pane, "echo free").stdout == "free\n"


def test_a_reader_that_has_seen_enough_is_no_failure(shell: Shell) -> None:
    pane = shell("split-pane", "--", "sh", "-c", "seq 1 5000; exec cat").stdout.strip()
    shell("wait", "-t", pane, "--seen", "5000")
    script = f"{' '.join(shell.words)} get-text -t {pane} --start-line - | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], env=shell.env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_commands_that_start_the_server_at_once_share_one(shell: Shell) -> None:
    opening = [shell.start("split-pane") for _ in range(4)]
    panes = {each.communicate(timeout=60)[0].strip() for each in opening}
    assert len(panes) == 4
    assert {pane["id"] for pane in json.loads(shell("--json", "list").stdout)["panes"]} == panes


def test_a_script_named_tmux_takes_the_place_of_tmux(shell: Shell, tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "tmux"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {" ".join(shell.words)} tmux "$@"\n')
    shim.chmod(0o755)
    script = """
        set -e
        tmux new-session -d -s team -x 120 -y 40
        worker=$(tmux split-window -t team -h -P -F '#{pane_id}')
        tmux select-pane -t "$worker" -T worker
        tmux send-keys -t "$worker" 'echo result: $((6 * 7))' Enter
        CRUX wait -t "$worker" --seen 'result: 42' > /dev/null
        tmux capture-pane -p -t "$worker" | grep '^result'
        tmux list-panes -t team -F '#{pane_title} #{pane_width}'
        tmux kill-session -t team
    """
    script = script.replace("CRUX", " ".join(shell.words))
    env = {**shell.env, "PATH": f"{shim.parent}:{shell.env['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "result: 42"
    assert done.stdout.splitlines()[2] == "worker 59"


@pytest.mark.parametrize("name", ["crux", "cruxd", "crux-mcp-bridge"])
def test_each_installed_command_tells_its_version_and_how_to_use_it(shell: Shell, name: str) -> None:
    for word, expected in (("--version", f"{name} "), ("--help", f"usage: {name}")):
        done = subprocess.run(
            [DARI.with_name(name), word], env=shell.env, capture_output=True, text=True, timeout=30, check=False
        )
        assert (done.returncode, done.stdout.startswith(expected), done.stderr) == (0, True, "")
