"""Writing changes: whole or not at all, nothing of a file's character lost, nobody's work overwritten."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dari.codetools.edits import replace
from dari.codetools.edits.change import FileChange
from dari.codetools.edits.undo import UndoStore
from dari.codetools.edits.write import apply_changes, write_changes
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict, DariError, Denied, InvalidInput
from tests.support.file_trees import read_tree, write_tree
from tests.support.requirements import require_mounts, require_root

REPOSITORY = Path(__file__).parents[3]


def prepared(tmp_path: Path, files: dict[str, str | bytes]) -> tuple[Path, Workspace, UndoStore]:
    root = write_tree(tmp_path / "root", files)
    return root, Workspace([root]), UndoStore(tmp_path / "undo")


def change(workspace: Workspace, name: str, after: bytes | None) -> FileChange:
    path = workspace.locate(name)
    found = replace.read_current(path)
    return FileChange(path, None if found is None else found[0], after)


def drafts(root: Path) -> list[str]:
    return [name for name in read_tree(root) if ".dari-" in name]


@pytest.mark.parametrize(
    "content",
    [b"one\r\ntwo\r\n", b"\xef\xbb\xbfbom\n", "é\n".encode("latin-1"), "é\n".encode("utf-16"), b"", b"no end", b"\0\1"],
    ids=["CRLF", "BOM", "Latin-1", "UTF-16", "empty", "no line end", "binary"],
)
async def test_bytes_are_written_as_they_are(tmp_path: Path, content: bytes) -> None:
    root, workspace, undo = prepared(tmp_path, {"a": b"before\n"})
    await write_changes([change(workspace, "a", content)], workspace, undo, "test", dry_run=False)
    assert (root / "a").read_bytes() == content


async def test_mode_owner_and_extended_attributes_stay(tmp_path: Path) -> None:
    root, workspace, undo = prepared(tmp_path, {"run.sh": "#!/bin/sh\n"})
    file = root / "run.sh"
    file.chmod(0o4750)
    if os.geteuid() == 0:
        os.chown(file, 4321, 1234)
        file.chmod(0o4750)
    os.setxattr(file, "user.note", b"kept")
    os.setxattr(file, "user.second", b"kept as well")
    before = file.stat()
    await write_changes([change(workspace, "run.sh", b"#!/bin/bash\n")], workspace, undo, "test", dry_run=False)
    after = file.stat()
    assert file.read_bytes() == b"#!/bin/bash\n"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert {name: os.getxattr(file, name) for name in os.listxattr(file)} == {
        "user.note": b"kept",
        "user.second": b"kept as well",
    }


async def test_a_new_file_gets_the_mode_that_the_umask_allows(tmp_path: Path) -> None:
    root, workspace, undo = prepared(tmp_path, {"a": "x"})
    old = os.umask(0o027)
    try:
        await write_changes([change(workspace, "sub/new.py", b"x\n")], workspace, undo, "test", dry_run=False)
    finally:
        os.umask(old)
    assert stat.S_IMODE((root / "sub/new.py").stat().st_mode) == 0o640


async def test_a_dry_run_writes_nothing_and_its_hash_is_what_expect_hash_takes(tmp_path: Path) -> None:
    root, workspace, undo = prepared(tmp_path, {"a.py": "one\n"})
    before = read_tree(tmp_path)
    plan = [change(workspace, "a.py", b"two\n")]
    dry = await write_changes(plan, workspace, undo, "test", dry_run=True)
    assert read_tree(tmp_path) == before
    assert not dry.applied and not dry.undo_token
    assert dry.edits[0].diff == "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+two\n"
    written = await write_changes(plan, workspace, undo, "test", dry_run=False, expect_hash=dry.plan_hash)
    assert written.applied and (root / "a.py").read_bytes() == b"two\n"


async def test_another_plan_than_the_one_of_the_hash_is_refused(tmp_path: Path) -> None:
    root, workspace, undo = prepared(tmp_path, {"a.py": "one\n"})
    dry = await write_changes([change(workspace, "a.py", b"two\n")], workspace, undo, "test", dry_run=True)
    with pytest.raises(Conflict):
        await write_changes(
            [change(workspace, "a.py", b"three\n")], workspace, undo, "x", dry_run=False, expect_hash=dry.plan_hash
        )
    assert (root / "a.py").read_bytes() == b"one\n"
    assert undo.records() == []


@pytest.mark.parametrize("meanwhile", ["changed", "removed", "made", "same size", "became a link", "became a folder"])
async def test_a_file_that_is_another_one_since_the_plan_is_not_written(tmp_path: Path, meanwhile: str) -> None:
    root, workspace, undo = prepared(tmp_path, {"a": "one\n", "b": "bbb\n", "secret": "s"})
    plan = [change(workspace, "b", b"new b\n"), change(workspace, "a", b"new a\n"), change(workspace, "c", b"new c\n")]
    file = root / "a"
    match meanwhile:
        case "changed":
            file.write_text("other\n")
        case "same size":
            file.write_text("two\n")
        case "removed":
            file.unlink()
        case "made":
            (root / "c").write_text("theirs\n")
        case "became a link":
            file.unlink()
            file.symlink_to("secret")
        case "became a folder":
            file.unlink()
            file.mkdir()
    before = read_tree(root)
    with pytest.raises((Conflict, InvalidInput)):
        await write_changes(plan, workspace, undo, "test", dry_run=False)
    assert read_tree(root) == before
    assert undo.records() == []


@pytest.mark.parametrize("moment", ["before the swap", "in the middle of the files"])
@pytest.mark.parametrize("kind", ["changed", "removed", "link", "new file appears"])
def test_a_change_in_the_last_moment_is_neither_lost_nor_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, kind: str
) -> None:
    """All checks are done, the new contents are on disk; then somebody else is faster."""
    root, workspace, undo = prepared(tmp_path, {f"{number}": f"old {number}\n" for number in range(5)} | {"s": "s"})
    plan = [change(workspace, str(number), b"new\n") for number in range(6)]
    victim = 0 if moment == "before the swap" else 3
    original = replace._swap

    def late(step: replace.Replacement, token: str) -> None:
        if step.number == victim:
            if kind == "new file appears":
                (root / "5").write_text("theirs\n")
            else:
                (root / str(victim)).unlink()
                if kind == "link":
                    (root / str(victim)).symlink_to("s")
                elif kind == "changed":
                    (root / str(victim)).write_text("mine!\n")
        original(step, token)

    monkeypatch.setattr(replace, "_swap", late)
    with pytest.raises((Conflict, Denied)):
        apply_changes(plan, workspace, undo, "test")
    found = read_tree(root)
    assert [found[str(number)][1] for number in range(5) if number != victim] == [
        b"old %d\n" % number for number in range(5) if number != victim
    ]
    expected = {"changed": b"mine!\n", "link": "link to s", "new file appears": b"old %d\n" % victim}
    assert (found[str(victim)][1] if kind != "removed" else str(victim) not in found) == expected.get(kind, True)
    assert ("5" in found) == (kind == "new file appears")
    assert not drafts(root) and undo.records() == []


def test_a_reader_sees_the_old_or_the_new_file_and_never_none(tmp_path: Path) -> None:
    root, workspace, undo = prepared(tmp_path, {"a": b"0" * 200_000})
    seen: set[bytes] = set()
    problems: list[Exception] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                data = (root / "a").read_bytes()
                seen.add(data[:1] if len(set(data)) == 1 and len(data) == 200_000 else b"torn")
            except OSError as error:
                problems.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(1, 10):
            apply_changes([change(workspace, "a", b"%d" % number * 200_000)], workspace, undo, "test")
    finally:
        stop.set()
        reader.join()
    assert problems == []
    assert b"torn" not in seen


@pytest.mark.parametrize("size_kb", [400, 520, 600])
def test_a_disk_that_fills_up_at_some_file_leaves_all_as_they_were(tmp_path: Path, size_kb: int) -> None:
    require_mounts()
    (tmp_path / "root").mkdir()
    command = ["unshare", "-rm", sys.executable, "-m", "tests.support.codetools_writer"]
    done = subprocess.run(
        [*command, "full", str(tmp_path / "root"), str(tmp_path / "undo"), str(size_kb)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=REPOSITORY,
    )
    words = done.stdout.split()
    assert words[:2] == ["errno", str(errno.ENOSPC)], done.stdout + done.stderr
    assert Path(words[2]).parent == tmp_path / "root", "the error names the file, not our draft"
    assert words[3:] == ["True", "0"]


@pytest.mark.parametrize("which", range(5))
def test_a_file_that_cannot_be_swapped_takes_all_the_others_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    root, workspace, undo = prepared(tmp_path, {f"{number}": f"old {number}\n" for number in range(5)})
    before = read_tree(root)
    original = replace._swap

    def failing(step: replace.Replacement, token: str) -> None:
        if step.number == which:
            raise OSError(errno.EIO, "the disk reports an error", str(step.path.absolute))
        original(step, token)

    monkeypatch.setattr(replace, "_swap", failing)
    plan = [change(workspace, f"{number}", None if number == 1 else b"new\n") for number in range(5)]
    with pytest.raises(OSError):
        apply_changes([*plan, change(workspace, "made/x", b"x")], workspace, undo, "test")
    assert read_tree(root) == before
    assert undo.records() == []


def test_what_cannot_even_be_taken_back_is_named_and_the_record_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, workspace, undo = prepared(tmp_path, {"0": "old 0\n", "1": "old 1\n"})
    original = replace._swap

    def failing(step: replace.Replacement, token: str) -> None:
        if step.number == 1:
            (root / "0").write_text("somebody was here\n")
            raise OSError(errno.EIO, "the disk reports an error", str(step.path.absolute))
        original(step, token)

    monkeypatch.setattr(replace, "_swap", failing)
    with pytest.raises(replace.HalfTakenBack) as raised:
        apply_changes([change(workspace, "0", b"n"), change(workspace, "1", b"n")], workspace, undo, "test")
    assert "0" in raised.value.message and undo.records()[0].token in raised.value.hint
    assert (root / "0").read_text() == "somebody was here\n"
    assert (root / "1").read_text() == "old 1\n"
    assert undo.old_content(undo.records()[0], undo.records()[0].files[0]) == b"old 0\n"


@pytest.mark.parametrize("after", [0, 1, 3, 7])
async def test_a_cancelled_write_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    root, workspace, undo = prepared(tmp_path, {f"{number}": f"old {number}\n" for number in range(5)})
    before = read_tree(root)
    loop = asyncio.get_running_loop()
    reached, go_on = asyncio.Event(), threading.Event()
    original, seen = replace._check_cancelled, []

    def checking(is_cancelled: object) -> None:
        seen.append(1)
        if len(seen) == after + 1:
            loop.call_soon_threadsafe(reached.set)
            assert go_on.wait(30)
        original(is_cancelled)  # type: ignore[arg-type]

    monkeypatch.setattr(replace, "_check_cancelled", checking)
    plan = [change(workspace, f"{number}", b"new\n") for number in range(5)]
    task = asyncio.create_task(write_changes(plan, workspace, undo, "test", dry_run=False))
    await reached.wait()
    task.cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert read_tree(root) == before
    assert undo.records() == []


@pytest.mark.parametrize("name", [".git/config", ".GIT/hooks/pre-commit", "sub/.git", ".hg/hgrc", ".jj/x"])
@pytest.mark.parametrize("dry_run", [True, False])
async def test_version_control_is_never_written(tmp_path: Path, name: str, dry_run: bool) -> None:
    _, workspace, undo = prepared(tmp_path, {"a": "x"})
    with pytest.raises(Denied):
        await write_changes([change(workspace, name, b"x")], workspace, undo, "test", dry_run=dry_run)


def test_a_read_only_file_and_one_with_two_names_are_refused(tmp_path: Path) -> None:
    root, workspace, undo = prepared(tmp_path, {"ro": "x\n", "one": "y\n", "ok": "z\n"})
    (root / "ro").chmod(0o444)
    os.link(root / "one", root / "two")
    before = read_tree(root)
    for name, kind in (("ro", Denied), ("one", Conflict)):
        with pytest.raises(kind):
            apply_changes([change(workspace, "ok", b"n"), change(workspace, name, b"n")], workspace, undo, "test")
    assert read_tree(root) == before


def test_a_second_users_file_in_a_folder_of_ours_is_not_replaced(tmp_path: Path) -> None:
    """A folder that we may write to would let us replace it, whatever its own mode says."""
    require_root()
    root = write_tree(tmp_path / "root", {"theirs": "x\n"})
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.geteuid() and folder.name.startswith(("pytest", "popen")):
            folder.chmod(0o755)
    os.chown(root, 4321, 4321)
    (tmp_path / "undo").mkdir()
    os.chown(tmp_path / "undo", 4321, 4321)
    code = (
        "import os, sys; from pathlib import Path\n"
        "from dari.codetools.edits.undo import UndoStore\n"
        "from tests.support.codetools_writer import rewrite_all\n"
        "from dari.errors import Denied\n"
        "os.setgid(4321); os.setuid(4321)\n"
        "try: rewrite_all(Path(sys.argv[1]), UndoStore(Path(sys.argv[2])), b'x')\n"
        "except Denied as error: print(error.message)\n"
    )
    command = [sys.executable, "-c", code, str(root), str(tmp_path / "undo")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=REPOSITORY)
    assert done.stdout == "theirs is read-only\n", done.stderr
    assert read_tree(root)["theirs"][1] == b"x\n"


def test_names_of_any_bytes_and_of_full_length_are_written_and_taken_back(tmp_path: Path) -> None:
    names = [
        b"new\nline",
        b'quo"te',
        "rtl\u202egnp.py".encode(),
        b"caf\xe9.py",
        b"-rf",
        b"\xed\x95\x9c" * 85,
        b"a" * 255,
    ]
    root = tmp_path / "root"
    root.mkdir()
    for name in names:
        (root / os.fsdecode(name)).write_bytes(b"old\n")
    workspace, undo = Workspace([root]), UndoStore(tmp_path / "undo")
    plan = [FileChange(path, b"old\n", b"new\n") for path in workspace.files()]
    assert len(plan) == len(names)
    apply_changes(plan, workspace, undo, "test")
    assert {path.read_bytes() for path in root.iterdir()} == {b"new\n"}
    assert len(undo.records()[0].files) == len(names)


def test_a_file_system_without_exchange_still_writes_whole_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, workspace, undo = prepared(tmp_path, {"a": "old\n", "b": "old\n", "gone": "old\n"})
    monkeypatch.setattr(replace, "_renameat2", None)
    plan = [change(workspace, "a", b"new\n"), change(workspace, "new", b"new\n"), change(workspace, "gone", None)]
    apply_changes(plan, workspace, undo, "test")
    assert {name: row[1] for name, row in read_tree(root).items()} == {"a": b"new\n", "b": b"old\n", "new": b"new\n"}
    before = read_tree(root)
    plan = [change(workspace, "a", b"newer\n"), change(workspace, "b", b"newer\n")]
    (root / "b").write_text("theirs\n")
    with pytest.raises(Conflict):
        apply_changes(plan, workspace, undo, "test")
    assert read_tree(root) | {"b": before["b"]} == before


def test_two_writers_at_once_never_mix_their_files(tmp_path: Path) -> None:
    """Each round of each writer is all or nothing, so every file has gone through the same rounds in the same order."""
    root = write_tree(tmp_path / "root", {f"{number}.txt": "start\n" for number in range(8)})
    command = [sys.executable, "-m", "tests.support.codetools_writer", "write", str(root), str(tmp_path / "undo"), "25"]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) for _ in range(2)]
    said = [writer.communicate(timeout=60)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], said
    assert {row.split(":")[0].strip(".") for words in said for row in words.splitlines()} <= {
        "ready",
        "conflict",
        "not_found",
        "",
    }
    assert len({(root / f"{number}.txt").read_bytes() for number in range(8)}) == 1
    assert not drafts(root)


def test_a_folder_that_becomes_a_link_during_writes_never_lets_one_out(tmp_path: Path) -> None:
    """A second process swaps a folder with a link to the outside all the time."""
    root = write_tree(tmp_path / "root", {"sub/a.txt": "inside\n", "sub/b.txt": "inside\n"})
    outside = write_tree(tmp_path / "outside", {"a.txt": "outside\n", "b.txt": "outside\n"})
    before = read_tree(outside)
    code = (
        "import os, sys\n"
        "sub, away, link = (os.path.join(sys.argv[1], n) for n in ('sub', 'away', 'link'))\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    os.rename(sub, away); os.symlink(sys.argv[2], sub)\n"
        "    os.unlink(sub); os.rename(away, sub)\n"
    )
    swapper = subprocess.Popen([sys.executable, "-c", code, str(root), str(outside)], stdout=subprocess.PIPE, text=True)
    outcomes: set[str] = set()
    try:
        assert swapper.stdout is not None and swapper.stdout.readline() == "ready\n"
        workspace = Workspace([root])
        paths = [WorkspacePath(root, f"sub/{name}.txt") for name in "ab"]
        for number in range(100):
            try:
                contents = [found[0] for path in paths if (found := replace.read_current(path))]
                plan = [
                    FileChange(path, before, b"%d\n" % number) for path, before in zip(paths, contents, strict=True)
                ]
                apply_changes(plan, workspace, UndoStore(tmp_path / "undo"), "test")
                outcomes.add("written")
            except (DariError, OSError, ValueError) as error:
                outcomes.add(type(error).__name__)
    finally:
        swapper.kill()
        swapper.wait()
        assert swapper.stdout is not None
        swapper.stdout.close()
    assert read_tree(outside) == before
    assert swapper.returncode == -9, "the second process stopped by itself"
    assert outcomes - {"written"}, "the race was never met"
    shutil.rmtree(root)


def test_only_folders_that_were_made_for_a_failed_write_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, workspace, undo = prepared(tmp_path, {"a": "x"})
    (root / "empty").mkdir()
    before = read_tree(root)

    def failing(step: replace.Replacement, token: str) -> None:
        raise OSError(errno.EIO, "no", "x")

    monkeypatch.setattr(replace, "_swap", failing)
    with pytest.raises(OSError):
        apply_changes([change(workspace, "empty/in/ner/file", b"x")], workspace, undo, "test")
    assert read_tree(root) == before
