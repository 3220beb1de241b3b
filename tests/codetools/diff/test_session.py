"""Since the session began: a snapshot outside of the repository."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from dari.codetools.diff import snapshot
from dari.codetools.diff.git import remove_left_folders
from dari.errors import InvalidInput
from tests.codetools.diff.test_diff import brief, symbols
from tests.support.codetools import CodeTools, code_tools
from tests.support.repositories import commit, git, new_repository, write_files


def state(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


async def begin(tools: CodeTools) -> None:
    """Any first call takes the snapshot."""
    await tools.call("outline", path="a.py")
    assert tools.session.snapshots is not None
    await tools.session.snapshots.taken()


async def test_only_what_changed_since_the_first_call_is_shown(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {"a.py": "def a():\n    return 1\n", "b.py": "b = 1\n"})
    write_files(root, {"a.py": "def a():\n    return 2\n", "mine.py": "m = 1\n", "wip.py": "w = 1\n"})
    git(root, "add", "wip.py")
    async with code_tools(root, lasts=True) as tools:
        await begin(tools)
        assert brief(await tools.call("diff", since="session")) == {}
        write_files(root, {"a.py": "def a():\n    return 3\n", "mine.py": "m = 2\n", "new.py": "n = 1\n"})
        (root / "b.py").unlink()
        result = await tools.call("diff", since="session")
        assert brief(result) == {
            "a.py": "modified +1 -1",
            "b.py": "deleted +0 -1",
            "mine.py": "modified +1 -1",
            "new.py": "untracked +1 -0",
        }
        assert symbols(result, "a.py") == ["changed function a"]
        assert "-    return 2" in result["files"][0]["diff"]
        commit(root)
        after = await tools.call("diff", since="session")
        assert {path: one.split()[1:] for path, one in brief(after).items()} == {
            path: one.split()[1:] for path, one in brief(result).items()
        }


async def test_the_repository_is_not_written_to(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    write_files(root, {"a.py": "a = 2\n", "u.py": "u = 1\n"})
    before = state(root)
    async with code_tools(root, lasts=True) as tools:
        await begin(tools)
        for since in ("session", "HEAD", "1 hour ago"):
            await tools.call("diff", since=since)
    assert state(root) == before


async def test_a_folder_without_a_repository_has_sessions_too(tmp_path: Path) -> None:
    root = tmp_path / "r"
    write_files(root, {"a.py": "def a(): return 1\n", "sub/b.py": "b = 1\n", "c.py": "c = 1\n"})
    async with code_tools(root, lasts=True) as tools:
        await begin(tools)
        write_files(root, {"a.py": "def a(): return 2\n", "n.py": "n = 1\n"})
        (root / "sub" / "b.py").unlink()
        result = await tools.call("diff", since="session")
    assert brief(result) == {"a.py": "modified +1 -1", "n.py": "added +1 -0", "sub/b.py": "deleted +0 -1"}
    assert symbols(result, "a.py") == ["changed function a"]
    assert not (root / ".git").exists()


async def test_a_folder_that_is_too_large_is_compared_by_size_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MAX_HASHED_FILES", 2)
    root = tmp_path / "r"
    write_files(root, {"a.py": "a = 1\n", "b.py": "b = 1\n", "c.py": "c = 1\n"})
    async with code_tools(root, lasts=True) as tools:
        await begin(tools)
        write_files(root, {"a.py": "a = 22\n", "n.py": "n = 1\n"})
        (root / "b.py").unlink()
        result = await tools.call("diff", since="session")
    assert brief(result) == {"a.py": "modified +0 -0", "b.py": "deleted +0 -0", "n.py": "added +0 -0"}
    assert "sizes and times" in result["note"]


async def test_a_file_too_large_for_the_snapshot_counts_once_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MAX_FILE_BYTES", 100)
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    write_files(root, {"large.bin": "x" * 1000})
    async with code_tools(root, lasts=True) as tools:
        await begin(tools)
        assert brief(await tools.call("diff", since="session")) == {}
        write_files(root, {"large.bin": "x" * 1001})
        assert list(brief(await tools.call("diff", since="session"))) == ["large.bin"]


async def test_a_writer_waits_for_the_snapshot(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {"a.py": "x  =  1\n"})
    write_files(root, {"a.py": "x  =   2\n"})
    async with code_tools(root, lasts=True) as tools:
        await tools.call("format", paths=["a.py"], dryRun=False, style="default")
        result = await tools.call("diff", since="session")
    assert "-x  =   2\n+x = 2" in result["files"][0]["diff"]


async def test_the_private_folder_goes_with_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gc
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp" / "dari-diff-4194999-left").mkdir(parents=True)
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    async with code_tools(root, lasts=True) as tools:
        await begin(tools)
        await tools.call("diff", since="HEAD")
        (kept,) = (tmp_path / "tmp").glob("dari-diff-*")
        assert not kept.name.endswith("left")
    del tools
    gc.collect()
    assert list((tmp_path / "tmp").glob("dari-diff-*")) == []


async def test_no_snapshot_is_taken_of_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "r"))
    write_files(tmp_path / "r", {"a.py": "a = 1\n"})
    async with code_tools(tmp_path / "r", lasts=True) as tools:
        with pytest.raises(InvalidInput, match="home folders"):
            await tools.call("diff", since="session")


async def test_repositories_inside_a_folder_without_one_are_part_of_its_session(tmp_path: Path) -> None:
    root = tmp_path / "r"
    write_files(root, {"a.py": "a = 1\n"})
    new_repository(root / "sub", {"x.py": "x = 1\n", "y.py": "y = 1\n"})
    async with code_tools(root, lasts=True) as tools:
        await begin(tools)
        assert brief(await tools.call("diff", since="session")) == {}
        write_files(root, {"sub/x.py": "x = 2\n"})
        assert brief(await tools.call("diff", since="session")) == {"sub/x.py": "modified +1 -1"}
        with pytest.raises(InvalidInput, match="snapshot"):
            await tools.call("diff", since="session", root="sub")
        assert brief(await tools.call("diff", root="sub")) == {"x.py": "modified +1 -1"}


@pytest.mark.parametrize("what", ["diff", "tests", "empty"])
def test_temporary_folders_of_a_killed_server_go_with_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, kept = tmp_path / f"dari-{what}-{ended.pid}-abc", tmp_path / f"dari-{what}-{os.getpid()}-abc"
    left.mkdir()
    kept.mkdir()
    remove_left_folders()
    assert (left.exists(), kept.exists()) == (False, True)
