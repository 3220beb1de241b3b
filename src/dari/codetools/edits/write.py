"""Changes made on disk: every file whole or not at all, all of them or none, and a way back."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence

from msgspec import Struct

from dari.codetools.edits.change import MAX_DIFF_CHARS, FileChange, FileEdit, hash_plan, to_counts, to_edits
from dari.codetools.edits.replace import (
    FileAttributes,
    Replacement,
    missing_folders,
    open_folder_of,
    read_current,
    remove_folders,
    replace_files,
    sweep,
)
from dari.codetools.edits.undo import UndoRecord, UndoStore, hash_content
from dari.codetools.workspace import VERSION_CONTROL, Workspace, WorkspacePath
from dari.errors import Conflict, Denied, InvalidInput


class Written(Struct, frozen=True):
    """`plan_hash` is what `expectHash` takes, of a dry run; `undo_token` is empty when nothing was written."""

    edits: list[FileEdit]
    plan_hash: str
    applied: bool = False
    undo_token: str = ""


async def write_changes(
    changes: Sequence[FileChange],
    workspace: Workspace,
    undo: UndoStore,
    what: str,
    *,
    dry_run: bool,
    expect_hash: str | None = None,
    max_diff_chars: int = MAX_DIFF_CHARS,
) -> Written:
    """The plan as diffs; without `dry_run` it is carried out, and its lines are counted. Cancelling takes back what
    was written so far.

    Raises Conflict when the plan is not the one of `expect_hash`, or a file changed since it was read.
    """
    changed = [change for change in changes if change.before != change.after]
    if len({change.path for change in changed}) < len(changed):
        raise InvalidInput("two changes are for the same file", "this is a bug of the tool: one change a file")
    for change in changed:
        _refuse_version_control(change.path, workspace)
    plan = await asyncio.to_thread(hash_plan, changed)
    if expect_hash is not None and expect_hash != plan:
        raise Conflict(
            f"expectHash is {expect_hash[:40]!r}, this plan is {plan!r}: files or arguments changed since that diff",
            "call again with dryRun true and the same arguments, read the diff, then send its hash",
        )
    if dry_run or not changed:
        return Written(await asyncio.to_thread(to_edits, changed, workspace, max_diff_chars), plan)
    edits = await asyncio.to_thread(to_counts, changed, workspace)
    cancelled = threading.Event()
    work = asyncio.get_running_loop().run_in_executor(None, apply_changes, changed, workspace, undo, what, cancelled)
    try:
        token = await asyncio.shield(work)
    except asyncio.CancelledError:
        cancelled.set()
        await asyncio.wait([work])  # it takes back what it wrote, or has just finished; either way no half remains
        if not work.cancelled():
            work.exception()
        raise
    return Written(edits, "", True, token)


def apply_changes(
    changes: Sequence[FileChange],
    workspace: Workspace,
    undo: UndoStore,
    what: str,
    cancelled: threading.Event | None = None,
) -> str:
    """Write all files; the undo token. What cannot be written takes the others back. Blocks."""
    states = [check_unchanged(change.path, change.before, workspace) for change in changes]
    by_path = {change.path: state for change, state in zip(changes, states, strict=True)}
    folders = missing_folders(change.path for change in changes if change.after is not None)
    steps = [
        Replacement(
            number,
            change.path,
            change.before,
            change.after,
            state or (by_path.get(change.like) if change.like else None),
        )
        for number, (change, state) in enumerate(zip(changes, states, strict=True))
    ]
    with undo.recording(changes, states, folders, workspace, what) as record:
        try:
            replace_files(steps, record.token, (lambda: False) if cancelled is None else cancelled.is_set)
        except BaseException:
            remove_folders(folders)
            raise
    return record.token


def check_unchanged(path: WorkspacePath, expected: bytes | None, workspace: Workspace) -> FileAttributes | None:
    """The attributes of the file. Conflict unless it has exactly this content; Denied when it may not be replaced."""
    name = workspace.show(path)
    found = read_current(path)
    if found is None:
        if expected is not None:
            raise Conflict(f"{name} was removed since it was read", "call again with dryRun true")
        return None
    data, info, attributes = found
    if data != expected:
        raise Conflict(f"{name} changed since it was read", "call again with dryRun true, and read the new diff")
    check_writable(path, name, info)
    if info.st_nlink > 1:
        raise Conflict(
            f"{name} has {info.st_nlink} hard links: replacing it would change one of them", "change it by hand"
        )
    return attributes


def check_writable(path: WorkspacePath, name: str, info: os.stat_result) -> None:
    """A folder that may be written to would let us replace a file that may not."""
    folder = open_folder_of(path)
    if folder is None:
        return
    try:
        may_write = os.access(path.names[-1], os.W_OK, dir_fd=folder, effective_ids=True)
        is_there = may_write or os.access(path.names[-1], os.F_OK, dir_fd=folder, effective_ids=True)
    finally:
        os.close(folder)
    if not is_there:
        raise Conflict(f"{name} was removed since it was read", "call again with dryRun true")
    if not info.st_mode & 0o222 or not may_write:
        raise Denied(f"{name} is read-only", "make it writable first (chmod u+w) if it is meant to change")


def _refuse_version_control(path: WorkspacePath, workspace: Workspace) -> None:
    if any(name.lower() in VERSION_CONTROL for name in path.names):
        raise Denied(f"{workspace.show(path)} belongs to version control", "use git itself for what is in .git")


async def take_back(
    undo: UndoStore, token: str, workspace: Workspace, *, force: bool
) -> tuple[UndoRecord, list[str], list[str]]:
    """The record, the files restored, and those that had their old content already.

    Raises Conflict before anything is written when a file changed after the write, unless `force`.
    """
    work = asyncio.get_running_loop().run_in_executor(None, _take_back, undo, token, workspace, force)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])  # a restore that has begun is finished: half of one would be neither state
        if not work.cancelled():
            work.exception()
        raise


def _take_back(
    undo: UndoStore, token: str, workspace: Workspace, force: bool
) -> tuple[UndoRecord, list[str], list[str]]:
    record = undo.find(token, workspace)
    with undo.locked(record.token):
        paths = [_place(file.path, workspace) for file in record.files]
        steps: list[Replacement] = []
        unchanged: list[str] = []
        changed: list[str] = []
        for number, (file, path) in enumerate(zip(record.files, paths, strict=True)):
            found = read_current(path)
            now = hash_content(None if found is None else found[0])
            if now == file.before_hash:
                unchanged.append(workspace.show(path))
                continue
            if now != file.after_hash:
                changed.append(workspace.show(path))
            if found is not None:
                check_writable(path, workspace.show(path), found[1])
            old = undo.old_content(record, file)
            steps.append(Replacement(number, path, None if found is None else found[0], old, file.attributes))
        if changed and not force:
            names = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
            raise Conflict(f"changed after that write: {names}", "force true restores them all the same")
        sweep(enumerate(paths), record.token)
        replace_files(steps, record.token)
        remove_folders(_place(folder, workspace) for folder in record.folders)
        undo.mark_undone(record)
    return record, [workspace.show(step.path) for step in steps], unchanged


def _place(path: bytes, workspace: Workspace) -> WorkspacePath:
    name = os.fsdecode(path)
    found = workspace.place(name)
    if found is None:
        raise Denied(f"{name} is outside of the workspace", "undo it from the folder of that write")
    return found
