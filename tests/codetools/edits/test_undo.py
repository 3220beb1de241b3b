"""The way back: byte for byte, after a restart, after a kill at any moment, and within bounds."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dari.codetools.edits import replace
from dari.codetools.edits.change import FileChange
from dari.codetools.edits.undo import UndoStore
from dari.codetools.edits.write import apply_changes, take_back
from dari.codetools.workspace import Workspace
from dari.errors import Conflict, Denied, NotFound
from tests.support.codetools import code_tools
from tests.support.codetools_writer import rewrite_all
from tests.support.file_trees import read_tree, write_tree
from tests.support.processes import wait_for_line

REPOSITORY = Path(__file__).parents[3]
FILES: dict[str, str | bytes] = {f"{number}.txt": f"old {number}\r\n" * 50 for number in range(12)} | {
    "gone.txt": b"\xef\xbb\xbfwith a BOM\n",
    "sub/latin.txt": "é\n".encode("latin-1"),
}
KILLS = 32


async def undone(store: UndoStore, root: Path, token: str = "last", *, force: bool = False) -> tuple[int, int]:
    _, restored, unchanged = await take_back(store, token, Workspace([root]), force=force)
    return len(restored), len(unchanged)


async def test_everything_is_back_byte_for_byte_after_a_restart(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", FILES)
    (root / "gone.txt").chmod(0o755)
    os.setxattr(root / "gone.txt", "user.note", b"kept")
    before = read_tree(root)
    token = rewrite_all(root, UndoStore(tmp_path / "undo"), b"new\n")
    assert read_tree(root) != before
    assert await undone(UndoStore(tmp_path / "undo"), root, token) == (len(FILES) + 3, 0)
    assert read_tree(root) == before
    assert os.getxattr(root / "gone.txt", "user.note") == b"kept"


async def test_the_tool_takes_the_last_write_back_and_then_the_one_before_it(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.txt": "0\n"})
    states = [read_tree(root)]
    for mark in (b"1\n", b"2\n"):
        rewrite_all(root, UndoStore(tmp_path / "undo"), mark)
        states.append(read_tree(root))
    async with code_tools(root, undo=tmp_path / "undo") as tools:
        assert "a.txt" in (await tools.call("undo", undoToken="last"))["restored"]
        assert read_tree(root) == states[1]
        await tools.call("undo", undoToken="last")
        assert read_tree(root) == states[0]
        with pytest.raises(NotFound) as raised:
            await tools.call("undo", undoToken="last")
    assert "undone" in raised.value.hint


async def test_taking_back_twice_changes_nothing_the_second_time(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", FILES)
    store = UndoStore(tmp_path / "undo")
    token = rewrite_all(root, store, b"new\n")
    await undone(store, root, token)
    assert await undone(store, root, token) == (0, len(FILES) + 3)


async def test_a_file_that_changed_after_the_write_is_named_and_nothing_is_restored(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", FILES)
    before = read_tree(root)
    store = UndoStore(tmp_path / "undo")
    rewrite_all(root, store, b"new\n")
    (root / "3.txt").write_text("edited since\n")
    now = read_tree(root)
    with pytest.raises(Conflict) as raised:
        await undone(store, root)
    assert "3.txt" in raised.value.message
    assert read_tree(root) == now
    await undone(store, root, force=True)
    assert read_tree(root) == before


async def test_folders_that_were_there_before_stay_and_those_with_other_files_too(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a": "x"})
    (root / "empty").mkdir()
    workspace, store = Workspace([root]), UndoStore(tmp_path / "undo")
    names = ("empty/new", "made/deep/new", "busy/new")
    apply_changes([FileChange(workspace.locate(name), None, b"x") for name in names], workspace, store, "test")
    (root / "busy/theirs").write_text("x")
    await undone(store, root)
    assert sorted(read_tree(root)) == ["a", "busy", "busy/theirs", "empty"]


async def test_a_file_is_restored_into_a_folder_that_is_gone(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"sub/a": "x\n"})
    workspace, store = Workspace([root]), UndoStore(tmp_path / "undo")
    apply_changes([FileChange(workspace.locate("sub/a"), b"x\n", None)], workspace, store, "test")
    (root / "sub").rmdir()
    await undone(store, root)
    assert (root / "sub/a").read_text() == "x\n"


async def test_a_folder_that_became_a_link_is_not_restored_through(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"sub/a": "x\n"})
    outside = write_tree(tmp_path / "outside", {"a": "y\n"})
    workspace, store = Workspace([root]), UndoStore(tmp_path / "undo")
    apply_changes([FileChange(workspace.locate("sub/a"), b"x\n", b"y\n")], workspace, store, "test")
    (root / "sub").rename(root / "moved")
    (root / "sub").symlink_to(outside)
    with pytest.raises(Denied):
        await undone(store, root, force=True)
    assert read_tree(outside) == {"a": ((outside / "a").lstat().st_mode, b"y\n")}


async def test_a_wider_root_takes_back_what_was_written_in_a_folder_of_it_and_a_stranger_does_not(
    tmp_path: Path,
) -> None:
    root = write_tree(tmp_path / "root", {"pkg/a.txt": "x\n"})
    stranger = write_tree(tmp_path / "stranger", {"a.txt": "x\n"})
    store = UndoStore(tmp_path / "undo")
    token = rewrite_all(root / "pkg", store, b"new\n")
    with pytest.raises(NotFound):
        await undone(store, stranger, token)
    with pytest.raises(NotFound):
        await undone(store, stranger)
    assert (await undone(store, root))[0] == 4
    assert (root / "pkg/a.txt").read_text() == "x\n"


def test_records_go_by_number_by_age_and_by_bytes(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.txt": b"x" * 1000})
    now = [1_000_000.0]

    def write(store: UndoStore) -> str:
        now[0] += 1
        workspace = Workspace([root])
        content = (root / "a.txt").read_bytes()
        after = bytes([content[0] ^ 1]) * 1000
        return apply_changes([FileChange(workspace.locate("a.txt"), content, after)], workspace, store, "test")

    many = UndoStore(tmp_path / "many", lambda: now[0], max_records=3)
    tokens = [write(many) for _ in range(5)]
    assert [one.token for one in many.records()] == tokens[:1:-1]
    small = UndoStore(tmp_path / "small", lambda: now[0], max_store_bytes=2500)
    tokens = [write(small) for _ in range(5)]
    assert [one.token for one in small.records()] == tokens[:2:-1]
    tiny = UndoStore(tmp_path / "tiny", lambda: now[0], max_store_bytes=10)
    tokens = [write(tiny) for _ in range(2)]
    assert [one.token for one in tiny.records()] == tokens[1:], "the newest stays whatever its size"
    now[0] += 15 * 24 * 3600
    token = write(tiny)
    assert [one.token for one in tiny.records()] == [token]


def test_the_store_is_for_its_owner_alone_and_its_leftovers_go(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.txt": "x\n"})
    store = UndoStore(tmp_path / "undo")
    rewrite_all(root, store, b"new\n")
    modes = {mode & 0o777 for mode, _ in read_tree(tmp_path / "undo").values()}
    assert modes == {0o700, 0o600}
    (tmp_path / "undo/halfmade").mkdir()
    (tmp_path / "undo/halfmade/0").write_text("x")
    os.utime(tmp_path / "undo/halfmade", (1, 1))
    rewrite_all(root, store, b"newer\n")
    assert not (tmp_path / "undo/halfmade").exists()


async def test_old_content_that_was_damaged_is_never_restored(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.txt": "x\n", "b.txt": "y\n"})
    store = UndoStore(tmp_path / "undo")
    token = rewrite_all(root, store, b"new\n")
    (tmp_path / "undo" / token / "1").write_text("rotten")
    now = read_tree(root)
    with pytest.raises(Conflict):
        await undone(store, root)
    assert read_tree(root) == now


async def test_a_write_that_goes_on_is_not_taken_back_under_its_hands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_tree(tmp_path / "root", FILES)
    store = UndoStore(tmp_path / "undo")
    refused: list[str] = []
    original = replace._swap

    def swapping(step: replace.Replacement, token: str) -> None:
        if step.number == 5:
            with pytest.raises(Conflict) as raised, UndoStore(tmp_path / "undo").locked(token):
                pass
            refused.append(raised.value.message)
        original(step, token)

    monkeypatch.setattr(replace, "_swap", swapping)
    token = rewrite_all(root, store, b"new\n")
    assert refused == [f"the write {token} is going on"]


async def test_a_cancelled_restore_is_whole(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", FILES)
    before = read_tree(root)
    store = UndoStore(tmp_path / "undo")
    rewrite_all(root, store, b"new\n")
    task = asyncio.create_task(undone(store, root))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert read_tree(root) == before


@pytest.mark.timeout(180)
async def test_a_kill_at_any_moment_of_a_write_is_taken_back_whole(tmp_path: Path) -> None:
    """Real processes, SIGKILL at random moments of their writes; undo then brings every file back, and no draft is
    left. Half of the restores are killed, too, and then done again."""
    chance = random.Random(20261117)
    root = write_tree(tmp_path / "whole/root", FILES)
    write_steps = kill_after(["write", str(root), str(tmp_path / "whole/undo"), "1"], None)
    undo_steps = kill_after(["undo", str(root), str(tmp_path / "whole/undo"), "1"], None)
    states: Counter[str] = Counter()
    for number in range(KILLS):
        root = write_tree(tmp_path / f"{number}/root", FILES)
        before = read_tree(root)
        undo = tmp_path / f"{number}/undo"
        step = chance.randrange(0 if number % 4 == 0 else write_steps // 2, write_steps)
        kill_after(["write", str(root), str(undo), "1"], step)
        records = UndoStore(undo).records()
        assert len(records) <= 1
        states[records[0].state if records else "nothing yet"] += 1
        if not records:
            assert read_tree(root) == before, f"the kill at step {step} left changes without a record"
            continue
        states["half written"] += before != read_tree(root) and records[0].state == "begun"
        if number % 2:
            kill_after(["undo", str(root), str(undo), "1"], chance.randrange(undo_steps))
        await undone(UndoStore(undo), root, records[0].token)
        assert read_tree(root) == before, f"killed at step {step} of {write_steps}"
    print(f"{KILLS} kills: {dict(states)}")
    assert states["half written"] >= KILLS // 8, "the kills came too early or too late to say anything"


async def test_drafts_of_a_write_that_was_killed_go_with_the_next_write(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", FILES)
    words = ["write", str(root), str(tmp_path / "undo"), "1"]
    whole = write_tree(tmp_path / "whole", FILES)
    steps = kill_after(["write", str(whole), str(tmp_path / "other"), "1"], None)
    kill_after(words, steps * 3 // 4, is_exact=True)
    store = UndoStore(tmp_path / "undo")
    (killed,) = store.records()
    assert killed.state == "begun" and any(".dari-" in name for name in read_tree(root))
    workspace = Workspace([root])
    data = (root / "0.txt").read_bytes()
    apply_changes([FileChange(workspace.locate("0.txt"), data, b"next\n")], workspace, store, "next")
    assert not any(".dari-" in name for name in read_tree(root))
    await undone(store, root)
    await undone(store, root, killed.token)
    assert {name: row[1] for name, row in read_tree(root).items() if row[1] != "folder"} == {
        name: content.encode() if isinstance(content, str) else content for name, content in FILES.items()
    }


def kill_after(words: list[str], steps: int | None, *, is_exact: bool = False) -> int:
    """SIGKILL once the process has opened that many files, or right there; None: let it end. How many it opened."""
    command = [sys.executable, "-m", "tests.support.codetools_writer", *words]
    env = {**os.environ, "STOP_AFTER": str(steps)} if is_exact else None
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY, bufsize=0, env=env)
    assert process.stdout is not None
    try:
        assert wait_for_line(process.stdout.fileno()) == b"ready\n"
        seen = 0
        while (steps is None or seen < steps) and process.stdout.read(1):
            seen += 1
    finally:
        if steps is not None:
            process.kill()
        process.wait(30)
        process.stdout.close()
    return seen
