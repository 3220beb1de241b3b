"""Awkward and hostile input of the formatters and linters."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dari.codetools.engines import mirror as mirrors
from dari.codetools.engines import rewrite
from dari.codetools.engines.mirror import MirroredFile, open_mirror
from dari.codetools.engines.rewrite import MAX_BY_STDIN
from dari.codetools.lint import run as lint_run
from dari.codetools.workspace import Workspace
from dari.errors import Denied
from tests.support.code_engines import node_project, require_engine, with_node
from tests.support.codetools import code_tools


@pytest.fixture
def project(tmp_path: Path) -> Path:
    require_engine("ruff", "pip install ruff")
    root = tmp_path / "project"
    root.mkdir()
    return root


async def test_a_file_of_a_gigabyte_is_an_entry_and_is_not_read(project: Path) -> None:
    (project / "huge.py").touch()
    os.truncate(project / "huge.py", 1 << 30)
    (project / "a.py").write_text("import os\nx=1\n")
    async with code_tools(project) as tools:
        formatted = await tools.call("format", paths=["."])
        linted = await tools.call("lint", paths=["."])
    for result in (formatted, linted):
        assert [error["path"] for error in result["errors"]] == ["huge.py"]
        assert "too large" in result["errors"][0]["message"]
    assert len(formatted["changed"]) == 1 and "F401" in linted["summary"]["byRule"]


async def test_binary_content_is_a_few_entries_without_control_characters(project: Path) -> None:
    (project / "a.py").write_bytes(b"\0\x1b]0;x\x07\n" * 200)
    async with code_tools(project) as tools:
        formatted = await tools.call("format", paths=["a.py"])
        linted = await tools.call("lint", paths=["a.py"])
    assert len(formatted["errors"]) == 1 and 1 <= len(linted["diagnostics"]) <= 5
    assert "\0" not in str(formatted) + str(linted) and "\x1b" not in str(formatted) + str(linted)


async def test_names_outside_of_utf_8_are_formatted_and_told_escaped(project: Path) -> None:
    file = project / os.fsdecode(b"\xff.py")
    file.write_bytes(b"x=1\n")
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["."], dryRun=False)
    assert [edit["path"] for edit in result["changed"]] == ["\\xff.py"]
    assert file.read_bytes() == b"x = 1\n"


async def test_a_link_that_leads_out_is_refused_and_one_in_a_folder_is_passed_over(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside.py").write_text("x=1\n")
    (project / "link.py").symlink_to(tmp_path / "outside.py")
    (project / "loop").symlink_to(project)
    (project / "a.py").write_text("x=1\n")
    os.mkfifo(project / "fifo.py")
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["."], dryRun=False)
        assert [edit["path"] for edit in result["changed"]] == ["a.py"]
        with pytest.raises(Denied):
            await tools.call("format", paths=["link.py"])
        with pytest.raises(Denied):
            await tools.call("lint", paths=["../outside.py"])
    assert (tmp_path / "outside.py").read_text() == "x=1\n"


async def test_a_configuration_that_is_a_fifo_or_not_well_formed_stops_nothing(project: Path) -> None:
    os.mkfifo(project / "package.json")
    (project / "setup.cfg").write_bytes(b"\xff\xfe[flake8]\n")
    (project / "a.py").write_text("x=1\n")
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["a.py"])
    assert len(result["changed"]) == 1


async def test_files_that_the_project_excludes_stay_as_they_are(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    node_project(root, "biome", "prettier")
    (root / "biome.json").write_text('{"files": {"includes": ["**", "!gen"]}}\n')
    (root / "ruff.toml").write_text("extend-exclude = ['gen']\n")
    for number in range(MAX_BY_STDIN + 1):
        (root / "gen").mkdir(exist_ok=True)
        (root / "gen" / f"m{number}.py").write_text("import os;x=1")
        (root / "gen" / f"m{number}.ts").write_text("let  a")
    async with code_tools(root, environ=with_node()) as tools:
        for paths in (["gen"], ["gen/m0.py"], ["gen/m0.ts"]):
            formatted = await tools.call("format", paths=paths, dryRun=False)
            linted = await tools.call("lint", paths=paths, fix="unsafe", dryRun=False)
            assert formatted["changed"] == [] and linted["diagnostics"] == [] and "edits" not in linted


async def test_one_line_of_five_megabytes_is_formatted_with_its_diff_left_out(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    node_project(root, "biome")
    for number in range(MAX_BY_STDIN + 1):
        (root / f"m{number}.js").write_text("let  a;\n")
    (root / "big.js").write_text(f"var a='{'x' * 5_000_000}'")
    async with code_tools(root, environ=with_node()) as tools:
        result = await tools.call("format", paths=["*.js"])
    big = next(edit for edit in result["changed"] if edit["path"] == "big.js")
    assert big.get("diff", "") == "" and "left out" in big["note"]
    assert len(result["changed"]) == MAX_BY_STDIN + 2 and len(str(result)) < 5000


async def test_what_a_broken_configuration_says_about_all_files_is_one_entry(project: Path) -> None:
    (project / "ruff.toml").write_text("line-length = 'long'\n")
    for number in range(MAX_BY_STDIN + 3):
        (project / f"m{number}.py").write_text("x=1\n")
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["."])
    (error,) = result["errors"]
    assert "line-length" in error["message"] and f"({MAX_BY_STDIN + 3} files)" in error["message"]
    assert "dari-mirror" not in error["message"] and result["unchanged"] == 0


async def test_a_mirror_of_a_process_that_was_killed_is_removed_by_the_next(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory" / "dari-mirror-99999999-x" / "tmp").mkdir(parents=True)
    (tmp_path / "memory" / f"dari-mirror-{os.getpid()}-y").mkdir()
    (tmp_path / "memory" / "other").mkdir()
    monkeypatch.setattr(mirrors, "_MEMORY", str(tmp_path / "memory"))
    mirrors._remove_left_over.cache_clear()
    (project / "a.py").write_text("x=1\n")
    path = Workspace([project]).locate("a.py")
    async with open_mirror([MirroredFile(path, b"y = 1\n")]) as mirror:
        assert mirror.read(MirroredFile(path, b"")) == b"y = 1\n"
    assert sorted(os.listdir(tmp_path / "memory")) == [f"dari-mirror-{os.getpid()}-y", "other"]


async def test_an_engine_that_writes_elsewhere_in_its_copy_changes_nothing_of_the_project(project: Path) -> None:
    """The copies are in a private folder; an engine that follows links there is code of the project."""
    programs = project / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "ruff").write_text('#!/bin/sh\nfor one; do :; done\nrm "$one"\nln -s /etc/passwd "$one"\n')
    (programs / "ruff").chmod(0o755)
    for number in range(MAX_BY_STDIN + 1):
        (project / f"m{number}.py").write_text("x=1\n")
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["*.py"])
    assert result["changed"] == [] and [error["path"] for error in result["errors"]] == [f"m{MAX_BY_STDIN}.py"]


def plant(project: Path, name: str, script: str) -> None:
    """An engine of the project's own."""
    program = project / ".venv" / "bin" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("count", [1, MAX_BY_STDIN + 1], ids=["on stdin", "on copies"])
async def test_an_engine_that_hangs_is_ended_and_said(
    project: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(rewrite, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(lint_run, "TIMEOUT_S", 0.3)
    plant(project, "ruff", '[ "$1" = --version ] || exec sleep 1000')
    for number in range(count):
        (project / f"m{number}.py").write_text("x=1\n")
    async with code_tools(project) as tools:
        formatted = await tools.call("format", paths=["*.py"])
        linted = await tools.call("lint", paths=["*.py"])
    assert formatted["changed"] == [] and formatted["unchanged"] == 0
    for result in (formatted, linted):
        assert len(result["errors"]) == 1 and "took longer than 0.3 s" in result["errors"][0]["message"]


async def test_an_engine_that_prints_for_ever_is_ended_and_said(project: Path) -> None:
    plant(project, "ruff", '[ "$1" = --version ] || exec yes x')
    (project / "a.py").write_text("x=1\n")
    async with code_tools(project) as tools:
        formatted = await tools.call("format", paths=["a.py"])
        linted = await tools.call("lint", paths=["a.py"])
    assert "printed too much" in formatted["errors"][0]["message"]
    assert "more than fits" in linted["errors"][0]["message"]


async def test_an_engine_that_prints_nothing_does_not_empty_a_file(project: Path) -> None:
    plant(project, "ruff", "exit 0")
    (project / "a.py").write_text("x=1\n")
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["a.py"], dryRun=False)
    assert (project / "a.py").read_text() == "x=1\n"
    assert "printed nothing" in result["errors"][0]["message"]


WRITES = 'for one; do case "$one" in *.py) printf "x = 1\\n" > "$one";; esac; done'
"""Formats every copy; `-` is the content of a single file."""
ON_STDIN = 'case "$*" in *" -") cat > /dev/null; printf "x = 1\\n"; exit 0;; esac'


@pytest.mark.parametrize(
    "end",
    ["kill -9 $$", "exit 2", 'echo "error: m0.py: No space left on device" >&2; exit 2'],
    ids=["killed", "fails without a name", "fails with a name"],
)
async def test_a_copy_that_an_engine_was_writing_when_it_died_is_not_taken(project: Path, end: str) -> None:
    """It writes half of the first file and dies; alone, on stdin, each file is formatted."""
    plant(project, "ruff", f'[ "$1" = --version ] && exit 0\n{ON_STDIN}\n{WRITES}\nprintf x > m0.py\n{end}')
    for number in range(MAX_BY_STDIN + 1):
        (project / f"m{number}.py").write_text("x=1\n")
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["*.py"], dryRun=False)
    assert {file.read_text() for file in project.glob("*.py")} == {"x = 1\n"}
    assert "errors" not in result


async def test_an_engine_that_hangs_after_it_wrote_half_a_copy_changes_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "TIMEOUT_S", 0.5)
    plant(project, "ruff", f'[ "$1" = --version ] && exit 0\n{WRITES}\nexec sleep 1000')
    for number in range(MAX_BY_STDIN + 1):
        (project / f"m{number}.py").write_text("x=1\n")
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["*.py"], dryRun=False)
    assert {file.read_text() for file in project.glob("*.py")} == {"x=1\n"}
    assert result["changed"] == [] and "took longer" in result["errors"][0]["message"]


@pytest.mark.parametrize("code", [0, 2])
async def test_an_engine_that_empties_its_copies_does_not_empty_the_files(project: Path, code: int) -> None:
    empties = 'for one; do case "$one" in *.py) : > "$one";; esac; done'
    plant(project, "ruff", f'[ "$1" = --version ] && exit 0\n{empties}\nexit {code}')
    for number in range(MAX_BY_STDIN + 1):
        (project / f"m{number}.py").write_text("x=1\n")
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["*.py"], dryRun=False)
    assert {file.read_text() for file in project.glob("*.py")} == {"x=1\n"}
    assert result["changed"] == [] and result["errors"]
