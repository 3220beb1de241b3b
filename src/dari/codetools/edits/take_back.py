"""Taking a write back, whole: also one that a kill cut off in the middle."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from dari.codetools.edits.undo import UndoFile, UndoRecord, UndoStore, hash_content
from dari.codetools.edits.write import read_current, write_file
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
        raise


def _take_back(
    undo: UndoStore, token: str, workspace: Workspace, force: bool
) -> tuple[UndoRecord, list[str], list[str]]:
    record = undo.find(token, workspace)
    restored: list[tuple[UndoFile, WorkspacePath]] = []
    unchanged: list[str] = []
    changed: list[str] = []
    for file in record.files:
        path = _path_of(file, workspace)
        found = read_current(path)
        now = hash_content(None if found is None else found[0])
        if now == file.before_hash:
            unchanged.append(workspace.show(path))
            continue
        if now != file.after_hash:
            changed.append(workspace.show(path))
        restored.append((file, path))
    if changed and not force:
        names = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
        raise Conflict(f"changed after that write: {names}", "force true restores them all the same")
    contents = [undo.old_content(record, file) for file, _ in restored]
    for (file, path), content in zip(restored, contents, strict=True):
        write_file(path, content, file.mode)
        if content is None:
            _remove_empty_folders(path)
    return record, [workspace.show(path) for _, path in restored], unchanged


def _path_of(file: UndoFile, workspace: Workspace) -> WorkspacePath:
    root = Path(file.root)
    if root not in workspace.roots:
        raise Denied(f"{root / file.relative} is outside of the workspace", "undo it from the folder of that write")
    return WorkspacePath(root, file.relative)


def _remove_empty_folders(path: WorkspacePath) -> None:
    """A folder that was made for a new file goes with it; one that holds anything stays."""
    folder = path.absolute.parent
    while folder != path.root:
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = folder.parent
