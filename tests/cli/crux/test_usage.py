"""Help, typos, exit codes, and what runs without a server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.cli.crux.main import COMMANDS, make_parser
from dari.terminal.paths import CruxPaths
from tests.support.crux_command import Crux, crux_in

PARSED = [name for name in COMMANDS if name != "tmux"]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Crux]:
    """No server is there, and none has to be ended unless a test started one."""
    with crux_in(tmp_path) as crux:
        yield crux


@pytest.mark.parametrize("name", PARSED)
def test_every_command_shows_examples_of_itself(alone: Crux, name: str) -> None:
    text = alone.ok(name, "--help")
    assert "examples:" in text
    assert f"crux {name}" in text.partition("examples:")[2]
    assert "--json" in text


def test_the_help_names_every_command(alone: Crux) -> None:
    text = alone.ok("--help")
    assert all(f"  {name} " in text for name in COMMANDS)
    assert "crux tmux" in alone.ok("tmux", "--help")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("splt-pane", "split-pane"), ("attatch", "attach"), ("kill-sever", "kill-server"), ("gettext", "get-text")],
)
def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(alone: Crux, typed: str, meant: str) -> None:
    said = alone(typed)
    assert said.code == 1
    assert f"did you mean `crux {meant}`?" in said.err


def test_a_mistyped_option_is_answered_with_the_one_that_was_meant(alone: Crux) -> None:
    said = alone("split-pane", "--directon", "left")
    assert said.code == 1
    assert "did you mean --direction?" in said.err
    assert alone("resize", "--cols", "none").code == 1
    assert alone("split-pane", "--percent", "0").code == 1


def test_without_a_server_there_are_no_panes_and_nothing_is_started(alone: Crux) -> None:
    assert alone.json("list") == {"panes": [], "focused": ""}
    assert alone.json("info")["running"] is False
    assert alone.ok("kill-server") == "no server runs"
    assert alone("get-text").code == 3
    assert not Path(CruxPaths.of_environment().socket).exists()


def test_a_failure_is_json_on_stderr_where_json_was_asked_for(alone: Crux) -> None:
    import json

    said = alone("--json", "get-text")
    assert said.out == ""
    assert json.loads(said.err)["error"]["name"] == "unavailable"


def test_attach_without_a_terminal_is_refused_before_anything_starts(alone: Crux) -> None:
    said = alone("attach")
    assert said.code == 1
    assert "needs a terminal" in said.err
    assert not Path(CruxPaths.of_environment().socket).exists()


def test_a_command_loads_neither_a_loop_nor_the_terminal() -> None:
    code = "import sys; from dari.cli.crux.main import main; main(['list']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "DARI_HOME": "/nonexistent", "DARI_UNMEASURED": "1"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {
        "asyncio",
        "msgspec",
        "dari.terminal.daemon",
        "dari.terminal.service",
        "pyghostty",
        "socket",
        "ssl",
        "pathlib",
        "subprocess",
        "shutil",
    }


def test_every_parser_can_be_made() -> None:
    assert all(make_parser(name).format_help() for name in PARSED)
