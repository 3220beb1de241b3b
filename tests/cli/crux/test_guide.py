"""The guide names every command, and only options that there are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dari.cli.crux.client import CruxClient
from dari.cli.crux.main import COMMANDS, make_parser
from dari.cli.crux.tmux.caller_commands import make_commands
from dari.cli.crux.tmux.main import HELP
from dari.terminal.paths import CruxPaths
from dari.terminal.tmux import option_commands
from dari.terminal.tmux.shim import command_table
from tests.support.crux_command import crux_in
from tests.support.ports import reserved_port
from tests.support.wire import ROOT

GUIDE = (ROOT / "docs" / "guide" / "crux.md").read_text(encoding="utf-8")


def test_the_guide_names_every_command() -> None:
    assert [name for name in COMMANDS if name not in GUIDE] == []


def test_every_option_in_the_guide_is_one_of_some_command() -> None:
    known = {"--help", "--json", "--socket"} | set(re.findall(r"crux tmux (--[a-z]+)", HELP))
    for name in COMMANDS:
        if name != "tmux":
            known |= {word for action in make_parser(name)._actions for word in action.option_strings}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", GUIDE)) - known == set()


def test_the_guide_names_every_command_of_tmux_that_does_something() -> None:
    table = make_commands(CruxClient(CruxPaths.of_environment("nowhere"), starts=False), command_table())
    hidden = {"start-server", "list-clients", *option_commands.COMMANDS}
    assert [name for name in table if f"`{name}`" not in GUIDE and name not in hidden] == []
    synonyms = {"set-window-option", "show-window-options", "unbind-key"}
    assert {name for name in option_commands.COMMANDS if name not in GUIDE} == synonyms


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_first_five_minutes_in_the_shell_go_as_the_newcomers_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guide" / "terminal.md").read_text(encoding="utf-8")
    script = next(block for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "crux split-pane" in block)
    with reserved_port() as port, crux_in(tmp_path):
        done = subprocess.run(
            ["sh", "-e", "-c", script.replace("8731", str(port))],
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[:4] == ["1", "compiling", "done", "2"]
    assert f"port {port}" in lines[4]
    assert lines[5:7] == ["200", "the server ended with 0"]
    assert [line.split()[:2] for line in lines[8:]] == [["1", "build"], ["2*", "server"]]


def test_the_entries_for_clients_are_what_those_read() -> None:
    import json
    import tomllib

    page = (ROOT / "docs" / "guide" / "terminal.md").read_text(encoding="utf-8")
    found = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    found += [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)]
    assert [next(iter(entry)) for entry in found] == ["mcpServers", "servers", "mcp_servers"]
    for entry in found:
        (server,) = next(iter(entry.values())).values()
        assert server["command"].endswith("/.venv/bin/crux-mcp-bridge")
