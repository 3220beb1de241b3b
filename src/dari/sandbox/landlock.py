"""Landlock, the kernel's own path and port rules for a process and all that it starts (Linux 5.13 and later).

The rules are made here, in the daemon, and handed to the child as a descriptor; only `landlock_restrict_self`
has to happen on the other side. A path that cannot be opened is an error before anything runs.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence
from enum import IntFlag
from functools import cache
from pathlib import Path

from dari.errors import Unavailable

# The three calls have the same numbers on every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1


class Right(IntFlag):
    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15
    RESOLVE_UNIX = 1 << 16


_FIRST_ABI = Right((1 << 13) - 1)
_ON_FILES = Right.EXECUTE | Right.WRITE_FILE | Right.READ_FILE | Right.TRUNCATE | Right.IOCTL_DEV | Right.RESOLVE_UNIX
READ = Right.EXECUTE | Right.READ_FILE | Right.READ_DIR
# No device nodes: as root, one in a writable folder would be a way to any disk.
WRITE = READ | (_FIRST_ABI | Right.REFER | Right.TRUNCATE) & ~(Right.MAKE_CHAR | Right.MAKE_BLOCK)
# /dev/null and its kin.
DEVICE = Right.READ_FILE | Right.WRITE_FILE | Right.TRUNCATE | Right.IOCTL_DEV

BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
SCOPE_ABSTRACT_UNIX, SCOPE_SIGNAL = 1 << 0, 1 << 1


@cache
def landlock_abi() -> int:
    """The version the kernel speaks; 0 where there is none (old kernel, disabled at boot, a container's filter)."""
    version = _syscall(CREATE_RULESET, None, 0, _VERSION_FLAG)
    return max(version, 0)


def handled_rights(version: int) -> Right:
    """Every right that this version knows: what is handled and not granted is denied."""
    later = {2: Right.REFER, 3: Right.TRUNCATE, 5: Right.IOCTL_DEV, 9: Right.RESOLVE_UNIX}
    rights = _FIRST_ABI
    for since, right in later.items():
        if version >= since:
            rights |= right
    return rights


class Ruleset:
    """A descriptor that a child restricts itself with. Close it once the child has it."""

    def __init__(self, *, paths: bool, tcp: bool, unix: bool, version: int | None = None) -> None:
        """What to deny unless granted: access to paths, TCP, sockets and signals of processes outside."""
        version = landlock_abi() if version is None else version
        self._rights = handled_rights(version) if paths else Right(0)
        if not unix:
            self._rights &= ~Right.RESOLVE_UNIX
        ports = BIND_TCP | CONNECT_TCP if tcp and version >= 4 else 0
        scopes = (SCOPE_ABSTRACT_UNIX * unix | SCOPE_SIGNAL) if version >= 6 else 0
        fields = struct.pack("=QQQ", self._rights, ports, scopes)
        size = 24 if version >= 6 else 16 if version >= 4 else 8
        self.is_empty = not (self._rights or ports or scopes)
        self.descriptor = -1
        if not self.is_empty:
            self.descriptor = _syscall(CREATE_RULESET, fields, size, 0)
            if self.descriptor < 0:
                raise Unavailable(f"Landlock refuses a ruleset: {os.strerror(ctypes.get_errno())}", "use sandbox: off")

    def allow(self, path: Path, rights: Right) -> None:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError as error:
            raise Unavailable(
                f"cannot allow {path}: {error.strerror}", "create it, or take it out of allowedPaths"
            ) from None
        try:
            granted = rights & self._rights
            if not path.is_dir():
                granted &= _ON_FILES
            if not granted:
                return
            rule = struct.pack("=Qi", granted, place)
            if _syscall(ADD_RULE, self.descriptor, _PATH_BENEATH, rule, 0) < 0:
                raise Unavailable(f"Landlock refuses {path}: {os.strerror(ctypes.get_errno())}", "use sandbox: off")
        finally:
            os.close(place)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def allow_all_but(
    rules: Ruleset, hidden: Sequence[Path], version: int, rights: Right | None = None, below: Path = Path("/")
) -> None:
    """Grant these rights, by default all, to everything below a folder that does not lie in one of these (real) paths.

    Landlock only grants, and whatever is granted for a folder holds below it: so all that lies beside the hidden paths
    is granted one by one. In the folders above them names can be listed, and what is there now can be used; a new file
    directly in one of them (in the home itself) cannot be made.
    """
    every = handled_rights(version) & ~Right.RESOLVE_UNIX if rights is None else rights
    # One that lies in another is hidden with it; its neighbours must not be granted on its account.
    hidden = [path for path in hidden if not any(folder in hidden for folder in path.parents)]
    above = {folder for path in hidden for folder in path.parents if folder.is_relative_to(below)}
    if not above:
        rules.allow(below, every)
    for folder in above:
        rules.allow(folder, Right.READ_DIR)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            path = Path(entry.path)
            # A link is followed to where it leads, and what is granted there counts.
            if path in above or path in hidden or entry.is_symlink():
                continue
            try:
                rules.allow(path, every)
            except Unavailable:
                continue  # it is gone, or nobody may open it


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    try:
        library = ctypes.CDLL(None, use_errno=True)
        call = library.syscall
    except (AttributeError, OSError, TypeError):  # no such C library: not Linux
        return -1
    call.restype = ctypes.c_long
    words = [ctypes.c_long(word) if isinstance(word, int) else ctypes.c_char_p(word) for word in arguments]
    return int(call(ctypes.c_long(number), *words))
