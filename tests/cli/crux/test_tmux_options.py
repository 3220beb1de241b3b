"""Options of `crux tmux` beside those of tmux 3.3a, and a tool that asks for them: tmuxp loads a workspace."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.crux.test_tmux import Sides, crux, sides
from tests.support.crux_command import Crux
from tests.support.tmux_server import Tmux

__all__ = ["crux", "sides"]  # fixtures

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

WORKSPACE = """\
session_name: demo
start_directory: {folder}
environment:
  ROLE: tester
options:
  default-command: ""
windows:
  - window_name: editor
    layout: main-vertical
    options:
      main-pane-height: 67%
    panes:
      - shell_command:
          - echo one
      - echo two
      - pane
  - window_name: server
    focus: true
    panes:
      - echo three
      - null
"""


@pytest.mark.parametrize(
    "words",
    [
        "show-options -g nosuch",
        "show-options nosuch",
        "show-options -q nosuch",
        "show-options -g default",
        "show-options -gv base-index",
        "show-options -g base",
        "show-options -v base-index",
        "show-options base-index",
        "show-options -A base-index",
        "show-options -Av base-index",
        "show-options -g main-pane-height",
        "show-options -w main-pane-height",
        "show-options -Aw main-pane-height",
        "show-options -g update-environment",
        "show-options -g update-environment[1]",
        "show-options -g terminal-overrides",
        "show-options -gqv @x",
        "show-options -sv message-limit",
        "show-options message-limit",
        "show-window-options -g mode-keys",
        "set-option -g nosuch 1",
        "set-option -gq nosuch 1",
        "set-option -g default 1",
        "set-option -g renumber-windows maybe",
        "set-option -g history-limit abc",
        "set-option -g history-limit -5",
        "set-option status-position middle",
        "set-option -g status 9",
    ],
)
def test_an_option_is_answered_as_tmux_answers_it(sides: Sides, words: str) -> None:
    sides.same(*words.split())


def test_what_is_set_is_shown_again_where_it_was_set(sides: Sides) -> None:
    for words in (
        "set-option -g main-pane-width 66%",
        "show-options -g main-pane-width",
        "set-option -w -t work main-pane-width 40",
        "show-options -w -t work main-pane-width",
        "show-options -gv main-pane-width",
        "set-option -t work status",
        "show-options -t work status",
        "set-option -u -t work status",
        "show-options -t work status",
        "set-environment -t work ROLE tester",
        "show-environment -t work ROLE",
        "show-environment -t work NOSUCH",
    ):
        sides.same(*words.split())


def test_every_option_of_tmux_is_known(sides: Sides, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    tmux = Tmux(tmp_path / "other")
    try:
        tmux.run("new-session", "-d", "cat")
        for level in ("-s", "-g", "-gw"):
            theirs = [line.split(" ")[0].partition("[")[0] for line in tmux.run("show-options", level).splitlines()]
            ours = [line.split(" ")[0].partition("[")[0] for line in sides.ours("show-options", level).out.splitlines()]
            assert set(theirs) == set(ours)
    finally:
        tmux.kill()


def test_windows_are_moved_and_swapped(sides: Sides) -> None:
    for name in ("second", "third"):
        sides.same("new-window", "-d", "-t", "work:", "-n", name, "cat")
    sides.same("swap-window", "-d", "-s", "work:0", "-t", "work:2")
    sides.same("list-windows", "-t", "work", "-F", "#{window_index} #{window_name}")
    ours, theirs = sides.both("move-window", "-s", "work:0", "-t", "work:99")
    assert ours == theirs
    assert sides.ours("list-windows", "-t", "work", "-F", "#{window_name}").out.split()[-1] == "third"


@pytest.fixture
def tmuxp() -> Iterator[str]:
    if os.environ.get("DARI_NO_CLIENTS") == "1":
        pytest.skip("DARI_NO_CLIENTS=1: tmuxp was not tried")
    program = Path(os.environ["DARI_CLIENTS_DIR"], "tmuxp", "bin", "tmuxp")
    assert program.exists(), f"{program} is missing; ./dev test installs it"
    yield str(program)


def test_tmuxp_loads_an_ordinary_workspace(crux: Crux, tmuxp: str, tmp_path: Path) -> None:
    crux.ok("tmux", "new-session", "-d", "-s", "base", "cat")
    crux.ok("tmux", "--install", str(tmp_path / "bin"))
    workspace = tmp_path / "demo.yaml"
    workspace.write_text(WORKSPACE.format(folder=tmp_path))
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", "TERM": "xterm"}
    env.pop("TMUX", None)
    done = subprocess.run(
        [tmuxp, "load", "-d", "-y", str(workspace)], env=env, capture_output=True, text=True, timeout=80, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    windows = crux.ok("tmux", "list-windows", "-t", "demo", "-F", "#{window_name} #{window_panes} #{window_active}")
    assert windows.splitlines() == ["editor 3 0", "server 2 1"]
    folders = crux.ok("tmux", "list-panes", "-s", "-t", "demo", "-F", "#{pane_current_path}")
    assert set(folders.splitlines()) == {str(tmp_path)}
