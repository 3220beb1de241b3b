"""Replacing many files as one: all new contents are on disk first, then each changes names with the old file.

A swap of two names (renameat2 with RENAME_EXCHANGE) needs no room on the disk and is taken back by another swap. What
it brings out is compared with what should have been there, so a change that somebody made in the last moment is put
back and not lost. A kill leaves files named `.dari-<token>-<number>~` behind; `sweep` knows them by the token.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from dari.codetools.workspace import WorkspacePath
from dari.errors import Conflict, Denied, Failed, InvalidInput
from dari.files.inside import open_folder_inside, read_open

MAX_BYTES = 1 << 30
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_NO_SUCH_CALL = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_NEVER_COPIED = "security.capability"
"""What a program may do; the kernel takes it away from a file that is written to."""


class FileAttributes(Struct, frozen=True):
    mode: int
    uid: int
    gid: int
    extended: dict[str, bytes] = {}


class Replacement(Struct, frozen=True):
    """`expected` is what is there now, `content` what shall be; None: no file. `number` is unique in a token."""

    number: int
    path: WorkspacePath
    expected: bytes | None
    content: bytes | None
    attributes: FileAttributes | None = None


class Cancelled(Exception):
    """The caller gave up; everything is as it was."""


class HalfTakenBack(Failed):
    """A write failed, and not every file could be given its old content: the undo record is needed."""


def replace_files(steps: Sequence[Replacement], token: str, is_cancelled: Callable[[], bool] = lambda: False) -> None:
    """All files or none. Raises Conflict where another content was found than expected. Blocks."""
    swapped: list[Replacement] = []
    try:
        for step in steps:
            _check_cancelled(is_cancelled)
            if step.content is not None:
                _stage(step, token)
        for step in steps:
            _check_cancelled(is_cancelled)
            _swap(step, token)
            swapped.append(step)
    except BaseException as error:
        stuck = [step.path.relative for step in reversed(swapped) if not _swap_back(step, token)]
        sweep(((step.number, step.path) for step in steps), token)
        if stuck:
            names = ", ".join(stuck[:5])
            raise HalfTakenBack(
                f"{error}; files that could not be restored: {names}", f"crewx_tools_undo {token} has their old content"
            ) from error
        raise
    sweep(((step.number, step.path) for step in steps), token)


def read_current(path: WorkspacePath) -> tuple[bytes, os.stat_result, FileAttributes] | None:
    """The content and state of the file now; None when there is none. Follows no link."""
    folder = open_folder_of(path)
    if folder is None:
        return None
    try:
        return _read_in(folder, path.names[-1])
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EINVAL, errno.ENXIO):
            raise InvalidInput(f"{path.relative} is not a regular file", "name the file itself, not a link") from error
        raise OSError(error.errno, error.strerror, str(path.absolute)) from error
    finally:
        os.close(folder)


def open_folder_of(path: WorkspacePath) -> int | None:
    """The folder of the file, open; None when it does not exist."""
    try:
        return open_folder_inside(path.root, "/".join(path.names[:-1]))
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Denied(
                f"a folder of {path.relative} is a symbolic link or a file", "find out what changes it, then try again"
            ) from error
        raise


def missing_folders(paths: Iterable[WorkspacePath]) -> list[WorkspacePath]:
    """The folders that have to be made for these files, outermost first."""
    missing: dict[WorkspacePath, None] = {}
    for path in paths:
        names = path.names[:-1]
        for depth in range(len(names), 0, -1):
            folder = WorkspacePath(path.root, "/".join(names[:depth]))
            if folder in missing or os.path.lexists(folder.absolute):
                break
            missing[folder] = None
    return sorted(missing)


def remove_folders(folders: Iterable[WorkspacePath]) -> None:
    """Those that are empty, innermost first."""
    for folder in sorted(folders, reverse=True):
        try:
            if (outer := open_folder_of(folder)) is None:
                continue
        except (OSError, Denied):
            continue
        try:
            os.rmdir(folder.names[-1], dir_fd=outer)
        except OSError:
            pass  # somebody uses it
        finally:
            os.close(outer)


def sweep(files: Iterable[tuple[int, WorkspacePath]], token: str) -> None:
    """Remove what a write with this token left beside its files."""
    for number, path in files:
        try:
            folder = open_folder_of(path)
        except (OSError, Denied):
            continue
        if folder is None:
            continue
        try:
            for name in (_draft(token, number), _aside(token, number)):
                try:
                    os.unlink(name, dir_fd=folder)
                except OSError:
                    pass
        finally:
            os.close(folder)


def _check_cancelled(is_cancelled: Callable[[], bool]) -> None:
    if is_cancelled():
        raise Cancelled


def _draft(token: str, number: int) -> str:
    """Short whatever the file is called: a name may have 255 bytes and no more."""
    return f".dari-{token}-{number}~"


def _aside(token: str, number: int) -> str:
    return f".dari-{token}-{number}-old~"


def _read_in(folder: int, name: str) -> tuple[bytes, os.stat_result, FileAttributes] | None:
    try:
        file = os.open(name, _OPEN, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        data = read_open(file, name, MAX_BYTES).data
        info = os.fstat(file)
        return data, info, FileAttributes(stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid, _extended(file))
    finally:
        os.close(file)


def _extended(file: int) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    if hasattr(os, "listxattr"):
        try:
            for name in os.listxattr(file):
                if name != _NEVER_COPIED:
                    found[name] = os.getxattr(file, name)
        except OSError:
            pass
    return found


def _set_attributes(file: int, attributes: FileAttributes) -> None:
    """Owner, group, mode and extended attributes, as far as we may set them."""
    mode = attributes.mode
    now = os.fstat(file)
    if (now.st_uid, now.st_gid) != (attributes.uid, attributes.gid):
        try:
            os.fchown(file, attributes.uid, attributes.gid)
        except OSError:
            try:
                os.fchown(file, -1, attributes.gid)
            except OSError:
                pass
            mode &= 0o1777  # of another owner, setuid would be another right
    os.fchmod(file, mode)
    for name, value in attributes.extended.items():
        try:
            os.setxattr(file, name, value)
        except OSError:
            pass


def _stage(step: Replacement, token: str) -> None:
    assert step.content is not None
    if step.expected is None:
        _make_folders(step.path)
    folder = open_folder_of(step.path)
    if folder is None:
        raise Conflict(f"the folder of {step.path.relative} was removed", "call again with dryRun true")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(_draft(token, step.number), flags, 0o666, dir_fd=folder)
        with open(file, "wb") as stream:
            stream.write(step.content)
            stream.flush()
            if step.attributes is not None:
                _set_attributes(stream.fileno(), step.attributes)
            os.fsync(stream.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(step.path.absolute)) from error
    finally:
        os.close(folder)


def _swap(step: Replacement, token: str) -> None:
    """Give the name its new content; whatever else than expected comes out goes back, and that is a Conflict."""
    folder = open_folder_of(step.path)
    name, draft = step.path.names[-1], _draft(token, step.number)
    if folder is None:
        raise Conflict(f"the folder of {step.path.relative} was removed", "call again with dryRun true")
    try:
        if step.expected is None:
            _rename_to_free(folder, draft, name)
            return
        _bring_out(folder, draft, name, step.content is None)
        if not _holds(folder, draft, step.expected):
            _put_back(folder, draft, name, step.content is None)
            raise Conflict(f"{step.path.relative} changed since it was read", "call again with dryRun true")
    except FileExistsError as error:
        raise Conflict(f"{step.path.relative} was created meanwhile", "call again with dryRun true") from error
    except FileNotFoundError as error:
        raise Conflict(f"{step.path.relative} was removed since it was read", "call again with dryRun true") from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(step.path.absolute)) from error
    finally:
        os.close(folder)


def _swap_back(step: Replacement, token: str) -> bool:
    """Whether the file has its old content again. A change that came after ours stays."""
    name, draft = step.path.names[-1], _draft(token, step.number)
    try:
        folder = open_folder_of(step.path)
        if folder is None:
            return False
        try:
            if step.content is None:
                _rename_to_free(folder, draft, name)
                return True
            _bring_out(folder, draft, name, step.expected is None)
            if _holds(folder, draft, step.content):
                return True
            _put_back(folder, draft, name, step.expected is None)
            return False
        finally:
            os.close(folder)
    except (OSError, Denied):
        return False


def _bring_out(folder: int, draft: str, name: str, is_removal: bool) -> None:
    """What has the name now is under the name of the draft afterwards."""
    if is_removal:
        _rename_to_free(folder, name, draft)
    else:
        _exchange(folder, draft, name)


def _put_back(folder: int, draft: str, name: str, was_removal: bool) -> None:
    if was_removal:
        _rename_to_free(folder, draft, name)
    else:
        _exchange(folder, draft, name)


def _holds(folder: int, name: str, content: bytes) -> bool:
    try:
        found = _read_in(folder, name)
    except OSError:
        return False  # a link, a folder, a FIFO
    return found is not None and found[0] == content


def _exchange(folder: int, draft: str, name: str) -> None:
    if _rename_with(_EXCHANGE, folder, draft, name):
        return
    # A file system without it (NFS): readers still see the old or the new file, but a change in between is overwritten.
    aside = draft.removesuffix("~") + "-old~"
    os.link(name, aside, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    os.rename(aside, draft, src_dir_fd=folder, dst_dir_fd=folder)


def _rename_to_free(folder: int, source: str, target: str) -> None:
    """Raises FileExistsError when the target exists."""
    if not _rename_with(_NO_REPLACE, folder, source, target):
        os.link(source, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        os.unlink(source, dir_fd=folder)


_EXCHANGE = 2
_NO_REPLACE = 4 if sys.platform == "darwin" else 1
_renameat2 = getattr(
    ctypes.CDLL(None, use_errno=True), "renameatx_np" if sys.platform == "darwin" else "renameat2", None
)


def _rename_with(flag: int, folder: int, source: str, target: str) -> bool:
    """False when this system or file system has no such rename."""
    if _renameat2 is None:
        return False
    if _renameat2(folder, os.fsencode(source), folder, os.fsencode(target), ctypes.c_uint(flag)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_SUCH_CALL:
        return False
    raise OSError(code, os.strerror(code), target)


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
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Denied(f"a folder of {path.relative} is a symbolic link or a file", "name another place") from error
        raise OSError(error.errno, error.strerror, str(path.absolute)) from error
    finally:
        os.close(folder)
