"""The program `tmux` that `crux tmux --install` makes: compiled where there is a C compiler, else a script."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_result import CommandResult
from tests.support.crux_command import Crux, crux_in

Tmux = Callable[..., CommandResult]
BARE = "/usr/bin-without-a-compiler"


@pytest.fixture(params=["compiled", "script"])
def tmux(request: pytest.FixtureRequest, crux: Crux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tmux:
    if request.param == "compiled" and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    crux.ok("split-pane")
    with monkeypatch.context() as patch:
        if request.param == "script":
            patch.setenv("PATH", BARE)
        crux.ok("tmux", "--install", str(tmp_path / "bin"))
    program = tmp_path / "bin" / "tmux"
    assert program.read_bytes().startswith(b"#!") is (request.param == "script")

    def run(*words: str, **options: object) -> CommandResult:
        env = {**os.environ, **options.pop("env", {})}  # type: ignore[dict-item]
        done = subprocess.run([str(program), *words], env=env, capture_output=True, text=True, timeout=60, check=False)
        return CommandResult(done.returncode, done.stdout, done.stderr)

    return run


@pytest.mark.parametrize(
    "words",
    [
        ["-V"],
        ["list-panes", "-a"],
        ["display-message", "-p", 'a "quoted" \\ back\tslash 한글 🎉 #{pane_id}'],
        ["show-options", "-g", "base-index"],
        ["has-session", "-t", "nobody"],
        ["nosuch-command"],
        ["show-buffer"],
        ["run-shell", "exit 3"],
        ["list-panes", "-F", "#{pane_id}", ";", "has-session", "-t", "nobody"],
    ],
)
def test_it_says_and_exits_as_crux_tmux_does(crux: Crux, tmux: Tmux, words: list[str]) -> None:
    assert tmux(*words) == crux("tmux", *words)


def test_what_it_changes_is_changed_once(crux: Crux, tmux: Tmux) -> None:
    before = len(crux.json("list")["panes"])
    assert tmux("split-window", "-d", "cat").code == 0
    assert len(crux.json("list")["panes"]) == before + 1


def test_a_large_screen_comes_whole(crux: Crux, tmux: Tmux) -> None:
    for number in range(30):
        crux.ok("tmux", "set-option", "-g", f"@text{number}", "한글" * 2000)
    shown = tmux("show-options", "-g").out
    assert shown.count("한글") == 30 * 2000


def test_words_that_are_not_utf_8_are_answered(tmux: Tmux) -> None:
    said = tmux("display-message", "-p", os.fsdecode(b"a\xffb"))
    assert said.code == 0 and said.out.startswith("a") and said.out.endswith("b\n")


def test_another_server_is_found_by_its_socket(tmux: Tmux, tmp_path: Path) -> None:
    said = tmux("list-panes", env={"CRUX_SOCKET": str(tmp_path / "other.sock")})
    assert (said.code, said.err) == (1, f"no server running on {tmp_path / 'other.sock'}\n")


def test_it_is_written_again_and_another_program_is_left_alone(crux: Crux, tmux: Tmux, tmp_path: Path) -> None:
    crux.ok("tmux", "--install", str(tmp_path / "bin"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tmux").write_text("#!/bin/sh\necho mine\n")
    assert crux("tmux", "--install", str(tmp_path / "mine")).code == 1
    assert "mine" in (tmp_path / "mine" / "tmux").read_text()


def test_without_a_server_it_says_so(tmp_path: Path) -> None:
    with crux_in(tmp_path) as crux:
        crux.ok("tmux", "--install", str(tmp_path / "bin"))
        done = subprocess.run([str(tmp_path / "bin" / "tmux"), "ls"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (1, crux("tmux", "ls").err)


def test_a_caller_whose_folder_was_removed_is_answered(tmux: Tmux, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = tmp_path / "bin" / "tmux"
    line = f"cd {gone} && rmdir {gone} && exec {program} list-panes -F '#{{pane_id}}'"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == tmux("list-panes", "-F", "#{pane_id}").out
