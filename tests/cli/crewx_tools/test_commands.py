"""`crewx-tools COMMAND` for a person: words and flags in, lines and an exit code out. In this process, real engines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dari.cli.crewx_tools.commands import COMMANDS, exit_code, find_command, main, overview
from dari.errors import InvalidInput

UGLY = "import  os\nx = {  'a':1 }\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    (folder / "src/app.py").write_text(UGLY)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    return folder


@pytest.fixture
def run(repo: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str, program: str = "crewx-tools") -> tuple[int, str, str]:
        code = main(program, words)
        out, err = capfd.readouterr()
        return code, out, err

    return run


def test_every_command_is_in_the_overview_and_has_help_with_examples(run: Run) -> None:
    shown = overview("crewx-tools")
    for command in COMMANDS:
        assert f"\n  {command.name} " in shown
        code, out, _ = run(command.name, "--help")
        assert code == 0 and f"usage: crewx-tools {command.name}" in out and "--json" in out
        for example, _ in command.examples:
            assert f"crewx-tools {example}" in out


def test_help_names_the_program_as_it_was_called(run: Run) -> None:
    assert "usage: crewx tool format" in run("format", "--help", program="crewx tool")[1]
    assert "serve" not in overview("crewx tool")


def test_an_unknown_command_is_refused_with_the_nearest_one(run: Run) -> None:
    code, _, err = run("serch", "x")
    assert code == 1 and "'serch'" in err and "search" in err
    with pytest.raises(InvalidInput):
        find_command("", "crewx-tools")


def test_words_without_a_flag_are_the_commands_own_arguments(run: Run) -> None:
    code, out, _ = run("search", "import", "src")
    assert code == 0 and out.startswith("src/app.py:1:1: import")
    assert run("search", "import", "nowhere")[0] == 3


def test_a_word_too_many_and_an_unknown_flag_are_named(run: Run) -> None:
    code, _, err = run("undo", "last", "more")
    assert code == 1 and "'more'" in err
    code, _, err = run("search", "x", "--contxt", "2")
    assert code == 1 and "contxt" in err and "context" in err


def test_after_two_dashes_a_word_is_never_a_flag(run: Run, repo: Path) -> None:
    (repo / "src/-rf").write_text("needle --json\n")
    code, out, _ = run("search", "--", "--json")
    assert code == 0 and "-rf:1:8:" in out


def test_no_match_is_said_on_stderr(run: Run) -> None:
    assert run("search", "not to be found") == (0, "", "no match\n")


def test_a_writer_shows_its_diff_and_writes_only_when_told(run: Run, repo: Path) -> None:
    code, out, _ = run("format", "src")
    assert code == 0 and '+x = {"a": 1}' in out and "add --write" in out
    assert (repo / "src/app.py").read_text() == UGLY
    code, out, _ = run("format", "src", "--write")
    assert code == 0 and "crewx-tools undo" in out
    assert (repo / "src/app.py").read_text() != UGLY
    assert run("undo")[0] == 0
    assert (repo / "src/app.py").read_text() == UGLY


def test_faults_that_were_found_are_exit_code_3(run: Run) -> None:
    code, out, _ = run("lint", "src")
    assert code == 3 and "src/app.py:1:9: error F401" in out


def test_json_is_the_result_alone(run: Run) -> None:
    code, out, err = run("lint", "src", "--json")
    assert code == 3 and "F401" in {one["rule"] for one in json.loads(out)["diagnostics"]} and err == ""


def test_an_error_of_the_tool_is_a_message_with_a_hint(run: Run) -> None:
    code, out, err = run("undo", "nonsense")
    assert (code, out) == (3, "") and "nonsense" in err and "hint:" in err


def test_paths_are_seen_from_the_working_folder_in_the_whole_repository(
    run: Run, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "lib").mkdir()
    monkeypatch.chdir(repo / "lib")
    assert "app.py:1:1" in run("search", "import", "../src")[1]
    assert run("search", "import", "../../..")[0] == 3


def test_names_and_code_of_a_repository_do_not_command_the_terminal(run: Run, repo: Path) -> None:
    (repo / "src/evil\x1b[31m.txt").write_text("needle \x1b]0;title\x07 \u202e\n")
    code, out, _ = run("search", "needle")
    assert code == 0 and "\x1b" not in out and "\u202e" not in out and "\x07" not in out


def test_a_diff_is_coloured_on_a_terminal_only(run: Run) -> None:
    assert "\x1b" not in run("format", "src")[1]


def test_a_failure_is_told_without_the_words_of_the_protocol(run: Run) -> None:
    code, _, err = run("symbols", "nosuch.name.at.all", "--paths", "no-such-folder")
    assert (code, err.splitlines()[0]) == (3, "error: 'no-such-folder' does not exist")


def test_a_linter_that_fails_is_a_fault_as_a_formatter_is(run: Run, repo: Path) -> None:
    (repo / "src/app.py").write_text("x = 1\n")
    assert run("lint", "src/app.py")[0] == 0
    (repo / "ruff.toml").write_text("no = [such\n")
    assert run("lint", "src/app.py")[0] == 3
    assert run("format", "src/app.py")[0] == 3


def test_only_programs_that_the_project_asks_for_have_to_be_there() -> None:
    error = {"path": "a.ts", "message": "biome is not installed"}
    for name in ("lint", "format"):
        assert exit_code(name, {"errors": [{**error, "optional": True}]}) == 0
        assert exit_code(name, {"errors": [error]}) == 3
