"""Changes made on disk: every file whole or not at all, all of them or none, and a way back."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from dari.codetools.edits.change import MAX_DIFF_CHARS, FileChange, FileEdit, hash_plan, to_edits
from dari.codetools.edits.undo import UndoStore
from dari.codetools.workspace import VERSION_CONTROL, Workspace, WorkspacePath
from dari.errors import Conflict, Denied
from dari.files.inside import open_folder_inside, read_open

_MAX_BYTES = 1 << 30


class Written(Struct, frozen=True):
    """`plan_hash` is what `expectHash` takes; `undo_token` is empty when nothing was written."""

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
    """The plan as diffs; without `dry_run` it is also carried out. Cancelling takes back what was written so far.

    Raises Conflict when the plan is not the one of `expect_hash`, or a file changed since it was read.
    """
    changed = [change for change in changes if change.before != change.after]
    plan = hash_plan(changed)
    if expect_hash is not None and expect_hash != plan:
        raise Conflict(
            f"expectHash is {expect_hash[:40]!r}, this plan is {plan!r}: files or arguments changed since that diff",
            "call again with dryRun true and the same arguments, read the diff, then send its hash",
        )
    edits = await asyncio.to_thread(to_edits, changed, workspace, max_diff_chars)
    if dry_run or not changed:
        return Written(edits, plan)
    for change in changed:
        _refuse_version_control(change.path, workspace)
    cancelled = threading.Event()
    work = asyncio.get_running_loop().run_in_executor(None, apply_changes, changed, workspace, undo, what, cancelled)
    try:
        token = await asyncio.shield(work)
    except asyncio.CancelledError:
        cancelled.set()
        await asyncio.wait([work])  # it takes back what it wrote, or has just finished; either way no half remains
        raise
    return Written(edits, plan, True, token)


def apply_changes(
    changes: Sequence[FileChange],
    workspace: Workspace,
    undo: UndoStore,
    what: str,
    cancelled: threading.Event | None = None,
) -> str:
    """Write all files; the undo token. What cannot be written takes the others back. Blocks."""
    for change in changes:
        check_unchanged(change.path, change.before, workspace)
    record = undo.record(changes, workspace, what)
    done: list[FileChange] = []
    try:
        for change in changes:
            if cancelled is not None and cancelled.is_set():
                raise asyncio.CancelledError
            check_unchanged(change.path, change.before, workspace)
            write_file(change.path, change.after, record.mode_of(change.path))
            done.append(change)
    except BaseException:
        for change in reversed(done):
            write_file(change.path, change.before, record.mode_of(change.path))
        undo.forget(record)
        raise
    undo.finish(record)
    return record.token


def check_unchanged(path: WorkspacePath, expected: bytes | None, workspace: Workspace) -> None:
    """Conflict unless the file has exactly this content, and may be replaced."""
    name = workspace.show(path)
    found = read_current(path)
    if found is None:
        if expected is not None:
            raise Conflict(f"{name} was removed since it was read", "call again with dryRun true")
        return
    data, info = found
    if data != expected:
        raise Conflict(f"{name} changed since it was read", "call again with dryRun true, and read the new diff")
    if not info.st_mode & 0o222:
        raise Denied(f"{name} is read-only", f"chmod u+w {name} if it is meant to change")
    if info.st_nlink > 1:
        raise Conflict(
            f"{name} has {info.st_nlink} hard links: replacing it would change one of them", "change it by hand"
        )


def read_current(path: WorkspacePath) -> tuple[bytes, os.stat_result] | None:
    """The content and state of the file now; None when there is none. Follows no link."""
    folder = _folder_of(path)
    if folder is None:
        return None
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        file = os.open(path.names[-1], flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    finally:
        os.close(folder)
    try:
        return read_open(file, path.relative, _MAX_BYTES).data, os.fstat(file)
    finally:
        os.close(file)


def write_file(path: WorkspacePath, data: bytes | None, mode: int | None) -> None:
    """Replace, make or (None) remove one file: readers see the old or the new one, never a part of either."""
    if data is not None:
        _make_folders(path)
    folder = _folder_of(path)
    if folder is None:
        return
    name = path.names[-1]
    draft = f".{name[:100]}.{os.getpid()}.{os.urandom(4).hex()}~"
    try:
        if data is None:
            try:
                os.unlink(name, dir_fd=folder)
            except FileNotFoundError:
                pass
            return
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
        try:
            with open(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                _copy_attributes(name, folder, stream.fileno(), mode)
                os.fsync(stream.fileno())
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            try:
                os.unlink(draft, dir_fd=folder)
            except FileNotFoundError:
                pass
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path.absolute)) from error
    finally:
        os.close(folder)


def _copy_attributes(name: str, folder: int, file: int, mode: int | None) -> None:
    """Mode, owner and extended attributes of the file that is replaced, as far as we may set them."""
    try:
        old = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        if mode is not None:
            os.fchmod(file, mode)
        return
    try:
        info = os.fstat(old)
        try:
            os.fchown(file, info.st_uid, info.st_gid)
        except OSError:
            pass
        if hasattr(os, "listxattr"):
            try:
                for attribute in os.listxattr(old):
                    os.setxattr(file, attribute, os.getxattr(old, attribute))
            except OSError:
                pass
        os.fchmod(file, stat.S_IMODE(info.st_mode) if mode is None else mode)
    finally:
        os.close(old)


def _folder_of(path: WorkspacePath) -> int | None:
    """The open folder of the file; None when it does not exist."""
    try:
        return open_folder_inside(path.root, "/".join(path.names[:-1]))
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Denied(
                f"a folder of {path.relative} became a symbolic link", "find out what changes it, then try again"
            ) from error
        raise


def _make_folders(path: WorkspacePath) -> None:
    folder = open_folder_inside(path.root)
    try:
        for name in path.names[:-1]:
            try:
                os.mkdir(name, dir_fd=folder)
            except FileExistsError:
                pass
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
    finally:
        os.close(folder)


def _refuse_version_control(path: WorkspacePath, workspace: Workspace) -> None:
    inside = VERSION_CONTROL.intersection(Path(path.relative).parts)
    if inside:
        raise Denied(f"{workspace.show(path)} belongs to version control", "use git itself for what is in .git")
