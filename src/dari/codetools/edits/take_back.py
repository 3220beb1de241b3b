"""Taking a write back, whole: also one that a kill cut off in the middle."""

from __future__ import annotations

import asyncio
import os

from dari.codetools.edits.replace import Replacement, read_current, remove_folders, replace_files, sweep
from dari.codetools.edits.undo import UndoRecord, UndoStore, hash_content
from dari.codetools.edits.write import check_writable
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict, Denied


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
