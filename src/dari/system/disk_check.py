"""Whether what we keep can be written: tried, because a quota or a read-only disk shows nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from dari.os_errors import from_os_error, name_file_in_errors
from dari.system.check import Check, worst_status

PROBE_BYTES = 64 * 1024
MIN_FREE_BYTES = 50 * 1000 * 1000


def check_disk(folders: Iterable[Path]) -> Check:
    """Each folder, or what is there of it, takes a file; little room is a warning."""
    existing = dict.fromkeys(_existing(folder) for folder in folders)
    found = [_check(folder) for folder in existing]
    status = worst_status(found)
    return next(check for check in found if check.status == status)


def _check(folder: Path) -> Check:
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check("disk", "failed", f"{folder} cannot be written to", "check its owner and mode, or set DARI_HOME")
    try:
        _write_probe(folder)
        free_bytes = _free_bytes(folder)
    except OSError as error:
        refused = from_os_error(error)
        fact, hint = (str(error), "check the disk") if refused is None else (refused.message, refused.hint)
        return Check("disk", "failed", fact, hint)
    shown = f"{free_bytes / 1e6:.0f} MB are free in {folder}"
    if free_bytes < MIN_FREE_BYTES:
        return Check("disk", "warning", shown, "free some space: recordings, sessions and logs need it")
    return Check("disk", "ok", shown)


def _write_probe(folder: Path) -> None:
    probe = folder / f".dari-doctor.{os.getpid()}.{os.urandom(4).hex()}"
    with name_file_in_errors(folder, instead_of=probe):
        file = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with open(file, "wb") as stream:
                stream.write(b"\0" * PROBE_BYTES)
                stream.flush()
                os.fsync(stream.fileno())
        finally:
            probe.unlink(missing_ok=True)


def _free_bytes(folder: Path) -> int:
    info = os.statvfs(folder)
    return info.f_bavail * info.f_frsize


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(level for level in (folder, *folder.parents) if os.path.isdir(level))
