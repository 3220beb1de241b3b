"""crewx_tools_format with real engines: what it shows, what it writes, and what it leaves alone."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from dari.codetools.engines import mirror
from dari.codetools.engines.rewrite import MAX_BY_STDIN
from dari.errors import Conflict, InvalidInput, NotFound
from tests.support.code_engines import require_engine
from tests.support.codetools import code_tools

UNTIDY = b"x=1\n"
TIDY = b"x = 1\n"


def write(root: Path, **files: bytes) -> Path:
    for name, data in files.items():
        (root / f"{name}.py").write_bytes(data)
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    require_engine("ruff", "pip install ruff")
    root = tmp_path / "project"
    root.mkdir()
    return root


async def test_without_dry_run_false_only_the_diff_is_made(project: Path) -> None:
    write(project, a=UNTIDY, b=TIDY)
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["."])
    assert result["changed"] == [
        {"path": "a.py", "diff": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x=1\n+x = 1\n", "added": 1, "removed": 1}
    ]
    assert (result["unchanged"], result["applied"]) == (1, False)
    assert "undoToken" not in result and "errors" not in result
    assert (project / "a.py").read_bytes() == UNTIDY


async def test_what_was_shown_is_what_is_written_and_undo_brings_it_back(project: Path) -> None:
    write(project, a=UNTIDY)
    (project / "a.py").chmod(0o750)
    async with code_tools(project) as tools:
        shown = await tools.call("format", paths=["a.py"])
        result = await tools.call("format", paths=["a.py"], dryRun=False, expectHash=shown["hash"])
        assert result["applied"] and (project / "a.py").read_bytes() == TIDY
        assert (project / "a.py").stat().st_mode & 0o777 == 0o750
        await tools.call("undo", undoToken=result["undoToken"])
    assert (project / "a.py").read_bytes() == UNTIDY


async def test_another_diff_than_the_expected_one_is_not_written(project: Path) -> None:
    write(project, a=UNTIDY)
    async with code_tools(project) as tools:
        shown = await tools.call("format", paths=["a.py"])
        (project / "a.py").write_bytes(b"y=1\n")
        with pytest.raises(Conflict):
            await tools.call("format", paths=["a.py"], dryRun=False, expectHash=shown["hash"])
    assert (project / "a.py").read_bytes() == b"y=1\n"


@pytest.mark.parametrize("count", [1, MAX_BY_STDIN + 1], ids=["on stdin", "on copies"])
async def test_a_syntax_error_is_an_entry_and_the_other_files_are_done(project: Path, count: int) -> None:
    files = {f"good{number}": UNTIDY for number in range(count)}
    write(project, bad=b"x = 1\ndef (:\n", **files)
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["."])
    assert [edit["path"] for edit in result["changed"]] == sorted(f"{name}.py" for name in files)
    assert [(error["path"], error["line"]) for error in result["errors"]] == [("bad.py", 2)]
    assert "identifier" in result["errors"][0]["message"]


async def test_more_syntax_errors_than_stderr_holds_are_all_found(project: Path) -> None:
    names = {f"bad{number}": b"def (:\n" for number in range(230)}
    write(project, good=UNTIDY, **names)
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["."])
    assert len(result["changed"]) == 1 and result["unchanged"] == 0
    assert len(result["errors"]) == 100 and result["more"] == "130 more errors"


async def test_names_that_look_like_options_are_names(project: Path) -> None:
    for name in ("-rf.py", "--fix.py", "-.py", "a b.py", "a\nb.py", "$(touch x).py", "ü.py", "@x.py"):
        (project / name).write_bytes(UNTIDY)
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["."], dryRun=False)
        single = await tools.call("format", paths=["--fix.py", "-rf.py"])
    assert len(result["changed"]) == 8 and single["unchanged"] == 2
    assert all(file.read_bytes() == TIDY for file in project.iterdir())


@pytest.mark.parametrize("count", [1, MAX_BY_STDIN + 1], ids=["on stdin", "on copies"])
async def test_line_ends_byte_order_mark_and_encoding_stay(project: Path, count: int) -> None:
    bom = b"\xef\xbb\xbf"
    for number in range(count):
        (project / f"m{number}.py").write_bytes(bom + "x='é'\r\ny = 2\r\n".encode())
    async with code_tools(project) as tools:
        await tools.call("format", paths=["."], dryRun=False)
    for file in project.iterdir():
        assert file.read_bytes() == bom + 'x = "é"\r\ny = 2\r\n'.encode()


async def test_a_file_that_is_not_utf_8_is_an_entry_with_its_line(project: Path) -> None:
    write(project, latin=b"a = 1\nb='\xe9'\n", good=UNTIDY)
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["."])
    assert result["errors"] == [{"path": "latin.py", "message": "not UTF-8: byte 0xe9", "line": 2}]
    assert len(result["changed"]) == 1


async def test_globs_folders_and_ignored_files(project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".gitignore").write_text("made/\n")
    for name in ("src/deep/a.py", "src/b.py", "made/c.py", "other/d.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(UNTIDY)
    async with code_tools(project) as tools:

        async def paths(*given: str, **more: object) -> list[str]:
            result = await tools.call("format", paths=list(given), **more)
            return [edit["path"] for edit in result["changed"]]

        assert await paths("src/**/*.py") == ["src/b.py", "src/deep/a.py"]
        assert await paths(".") == ["other/d.py", "src/b.py", "src/deep/a.py"]
        assert await paths("made/*.py", includeIgnored=True) == ["made/c.py"]
        assert await paths("made/c.py") == ["made/c.py"], "a file that is named is asked for"
        assert await paths("b.py", root="src") == ["b.py"]
        with pytest.raises(NotFound):
            await paths("src/**/*.ts")


async def test_installed_packages_are_left_alone_unless_they_are_named(project: Path) -> None:
    for name in ("a.py", ".venv/lib/b.py", "web/node_modules/c/d.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(UNTIDY)
    async with code_tools(project) as tools:
        whole = await tools.call("format", paths=["."], style="default")
        named = await tools.call("format", paths=["web/node_modules/c"], style="default")
    assert [edit["path"] for edit in whole["changed"]] == ["a.py"]
    assert [edit["path"] for edit in named["changed"]] == ["web/node_modules/c/d.py"]


async def test_a_range_of_one_file(project: Path) -> None:
    write(project, a=b"x=1\ny=2\nz=3\n", b=UNTIDY)
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["a.py"], range={"start": 2, "end": 2}, dryRun=False)
        assert result["applied"] and (project / "a.py").read_bytes() == b"x=1\ny = 2\nz=3\n"
        with pytest.raises(InvalidInput, match="exactly one file, got 2"):
            await tools.call("format", paths=["."], range={"start": 1, "end": 1})
        (project / "a.sh").write_bytes(b"x\n")
        with pytest.raises(InvalidInput, match="shfmt formats whole files"):
            await tools.call("format", paths=["a.sh"], range={"start": 1, "end": 1})


async def test_the_result_keeps_to_its_tokens(project: Path) -> None:
    write(project, **{f"m{number:03}": UNTIDY * 20 for number in range(120)})
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["."], maxTokens=500)
    assert 1 <= len(result["changed"]) < 60
    assert result["more"] == f"{120 - len(result['changed'])} more changed files"
    assert len(str(result)) < 3000


async def test_progress_is_told_and_a_file_without_a_formatter_is_an_entry(project: Path) -> None:
    write(project, a=UNTIDY)
    (project / "notes.txt").write_text("x")
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["a.py", "notes.txt"])
        assert tools.caller.told[-1] == (1, 1, "formatted")
    assert result["errors"] == [{"path": "notes.txt", "message": "no formatter is known for files of this name"}]


async def test_nothing_is_left_beside_the_files_nor_in_temporary_folders(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, a=UNTIDY, b=UNTIDY, c=UNTIDY, d=b"def (:", e=UNTIDY)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(mirror, "_MEMORY", str(temporary))
    async with code_tools(project) as tools:
        result = await tools.call("format", paths=["."])
    assert len(result["changed"]) == 4
    assert sorted(os.listdir(project)) == ["a.py", "b.py", "c.py", "d.py", "e.py"]
    assert os.listdir(temporary) == []


async def test_a_call_that_is_cancelled_ends_its_engine(project: Path, tmp_path: Path) -> None:
    write(project, a=UNTIDY)
    programs = project / ".venv" / "bin"
    programs.mkdir(parents=True)
    started = tmp_path / "started"
    os.mkfifo(started)
    (programs / "ruff").write_text(f"#!/bin/sh\necho $$ > {started}\nexec sleep 1000\n")
    (programs / "ruff").chmod(0o755)
    async with code_tools(project) as tools:
        call = asyncio.create_task(tools.call("format", paths=["a.py"]))
        pid = int(await asyncio.to_thread(started.read_text))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not Path(f"/proc/{pid}").exists()
