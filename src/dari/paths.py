"""Where things live, and how directories and files that hold secrets are made.

Directories are 0700 and ours, files 0600, and neither is ever reached through a symbolic link.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dari.errors import Denied, Failed, InvalidInput
from dari.home import crux_run_dir, home_dir, runtime_dir
from dari.os_errors import describe_os_error, name_file_in_errors, suggest_next_step

FileId = tuple[int, int]


def home() -> Path:
    """The directory of everything Dari keeps; it may not exist yet."""
    return Path(home_dir())


def runtime_path(name: str) -> Path:
    """The folder of one daemon's sockets, locks and tokens; nothing is made."""
    return Path(runtime_dir(name))


def own_paths() -> tuple[Path, ...]:
    """Everything of ours that holds a token, a key, a socket, a log or somebody's servers, in all the places where it
    may be: what no sandboxed program may see. Some of it may not exist."""
    environ, user = os.environ, Path.home()
    datas, configs, runs = ([_absolute(environ.get(f"XDG_{kind}_HOME", ""))] for kind in ("DATA", "CONFIG", "STATE"))
    runtime = _absolute(environ.get("XDG_RUNTIME_DIR", ""))
    uid = os.getuid() if hasattr(os, "getuid") else 0
    found = [home(), *(one / "dari" for one in (runtime, Path(f"/run/user/{uid}")) if one is not None)]
    for one in (*datas, *runs, user / ".local/share", user / ".local/state"):
        if one is not None:
            found += [one / "dari", one / "kebab"]
    for one in (*configs, user / ".config"):
        if one is not None:
            found += [one / name for name in ("dari", "crewx", "crux", "crab", "kebab")]
    found += [user / "Library/Application Support/dari", user / ".crux"]
    for name in _OWN_FILES:
        if (chosen := _absolute(os.path.expanduser(environ.get(name, "")))) is not None:
            found.append(chosen)
            if name == "CRUX_SOCKET":
                found.append(Path(crux_run_dir(str(chosen))))
    return tuple(dict.fromkeys(found))


_OWN_FILES = ("CREWX_MCP_JSON", "CRUX_CONFIG", "CRUX_SOCKET", "KEBAB_CONFIG")


def _absolute(path: str) -> Path | None:
    return Path(path) if os.path.isabs(path) else None


def private_dir(path: Path) -> Path:
    """Make `path` a directory of mode 0700 that is ours, with any missing parents, and return it absolute."""
    with _own_dir(path.absolute()) as (directory, info):
        if stat.S_IMODE(info.st_mode) != 0o700:
            # Root that names /tmp or / as a run directory must not lock everybody out of it.
            if info.st_mode & stat.S_ISVTX or os.path.ismount(path):
                raise InvalidInput(f"{path} is shared with others", "name a directory of its own below it")
            os.fchmod(directory, 0o700)
    return path.absolute()


def own_dir(path: Path) -> Path:
    """Like `private_dir`, but one that exists keeps its mode: it must be ours, writable by nobody else."""
    with _own_dir(path.absolute()) as (_, info):
        if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise InvalidInput(f"others may write to {path}", "name a directory that only you may write to")
    return path.absolute()


def make_dirs(path: Path, mode: int = 0o700) -> None:
    """Make the directory and its missing parents, all of this mode: `Path.mkdir` leaves parents to the umask."""
    missing: list[Path] = []
    for level in (path, *path.parents):
        if os.path.lexists(level):
            break
        missing.append(level)
    for level in reversed(missing):
        try:
            os.mkdir(level, mode)
        except FileExistsError:
            pass  # another process of ours was faster; the caller checks what is there now
        except OSError as error:
            hint = suggest_next_step(error, "check who owns its parent")
            raise Failed(f"cannot make {level}: {describe_os_error(error)}", hint) from error


class StagedFile:
    """A 0600 file on disk, beside the one it will replace: a full disk has said no before anything changed."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path = path
        self._draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        with name_file_in_errors(path, instead_of=self._draft):
            file = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                with open(file, "wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
                    self._written = _file_id(os.fstat(stream.fileno()))
            except BaseException:
                self.discard()
                raise

    def commit(self) -> FileId:
        """Take the name; readers see the old or the new file, never a part."""
        try:
            with name_file_in_errors(self._path, instead_of=self._draft):
                os.replace(self._draft, self._path)
        except BaseException:
            self.discard()
            raise
        return self._written

    def discard(self) -> None:
        self._draft.unlink(missing_ok=True)


def write_private(path: Path, data: bytes) -> FileId:
    """Replace `path` by a 0600 file with this content; readers see the old or the new one, never a part."""
    return StagedFile(path, data).commit()


def read_regular(path: Path, max_bytes: int) -> bytes:
    """The content of a regular file. Raises OSError for anything else, at once: a FIFO has nobody to wait for."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    if stat.S_ISDIR(os.fstat(file).st_mode):
        os.close(file)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with open(file, "rb") as stream:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"it may have at most {max_bytes} bytes, it has {info.st_size}", str(path))
    return data


def file_id(path: Path) -> FileId:
    """What tells this file from another that takes its name later."""
    return _file_id(os.lstat(path))


def remove_own(path: Path, written: FileId) -> None:
    """Remove the file unless another one has taken its name."""
    try:
        if file_id(path) == written:
            path.unlink()
    except FileNotFoundError:
        pass


def log_hint(path: Path, otherwise: str = "`dari doctor` checks the installation") -> str:
    """Where to read on; a log that was never written helps nobody."""
    return f"see {path}" if os.path.isfile(path) else otherwise


@contextmanager
def _own_dir(path: Path) -> Iterator[tuple[int, os.stat_result]]:
    """An open directory of ours, so that what is checked is what is changed."""
    make_dirs(path)
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        reason = "a symbolic link" if path.is_symlink() else f"not a directory we can open ({error.strerror})"
        raise InvalidInput(f"{path} is {reason}", "name a directory of your own") from error
    try:
        info = os.fstat(directory)
        if info.st_uid != os.geteuid():
            raise Denied(f"{path} belongs to uid {info.st_uid}", "name a directory of your own")
        yield directory, info
    finally:
        os.close(directory)


def _file_id(info: os.stat_result) -> FileId:
    return info.st_dev, info.st_ino
