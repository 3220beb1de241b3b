"""The way back: before anything is written, the old content of every file is on disk under a token.

A record is a folder: `record.json`, and one file per old content. It is complete before the first file is replaced, so
a kill at any moment leaves either nothing changed or a record that takes all of it back. While it is written, or taken
back, its folder is locked.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from dari.codetools.edits.change import FileChange
from dari.codetools.edits.replace import MAX_BYTES, FileAttributes, HalfTakenBack, sweep
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict, NotFound
from dari.paths import home, private_dir, read_regular, write_private
from dari.struct_types import ready

LAST = "last"
"""The token that names the newest record of the workspace that was not taken back."""
MAX_RECORDS = 200
MAX_AGE_S = 14 * 24 * 3600
MAX_STORE_BYTES = 512 << 20
"""Of all old contents; the newest record stays whatever its size."""
_STALE_S = 3600
_MAX_RECORD_BYTES = 64 << 20
_RECORD = "record.json"


class UndoFile(Struct, frozen=True):
    path: bytes
    """Absolute; as bytes, since a name need not be UTF-8."""
    before: str | None
    """The name of the file with the old content; None when there was no file."""
    attributes: FileAttributes | None
    before_hash: str
    after_hash: str


class UndoRecord(Struct, frozen=True):
    token: str
    what: str
    at: float
    files: tuple[UndoFile, ...]
    folders: tuple[bytes, ...] = ()
    """Those that were made for new files."""
    size_bytes: int = 0
    state: Literal["begun", "written", "undone"] = "begun"
    """`begun` without a process that holds the lock is a write that was cut off."""


class UndoStore:
    """Records of all workspaces of this user. `folder` is made with the first record."""

    def __init__(
        self,
        folder: Path | None = None,
        clock: Callable[[], float] = time.time,
        max_store_bytes: int = MAX_STORE_BYTES,
        max_records: int = MAX_RECORDS,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._max_store_bytes = max_store_bytes
        self._max_records = max_records

    @property
    def folder(self) -> Path:
        return home() / "codetools" / "undo" if self._folder is None else self._folder

    @contextmanager
    def recording(
        self,
        changes: Sequence[FileChange],
        states: Sequence[FileAttributes | None],
        folders: Sequence[WorkspacePath],
        workspace: Workspace,
        what: str,
    ) -> Iterator[UndoRecord]:
        """Keep the old content of all files, then let the caller write them. A caller that fails leaves no record."""
        size = sum(len(change.before or b"") for change in changes)
        self._prune(size, workspace)
        token = secrets.token_hex(8)
        folder = private_dir(self.folder / token)
        with self.locked(token):
            try:
                files = tuple(
                    _keep(folder, number, change, state)
                    for number, (change, state) in enumerate(zip(changes, states, strict=True))
                )
                made = tuple(os.fsencode(one.absolute) for one in folders)
                record = UndoRecord(token, what, self._clock(), files, made, size)
                self._save(record)
                yield record
            except HalfTakenBack:
                raise
            except BaseException:
                self._remove(token)
                raise
            self._save(msgspec.structs.replace(record, state="written"))

    def mark_undone(self, record: UndoRecord) -> None:
        """`last` is the one before it from now on; its token still names it."""
        self._save(msgspec.structs.replace(record, state="undone"))

    @contextmanager
    def locked(self, token: str) -> Iterator[None]:
        """Conflict while another process writes these files, or takes them back."""
        directory = os.open(self.folder / token, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Conflict(f"the write {token} is going on", "wait until it is done, then try again") from None
            yield
        finally:
            os.close(directory)

    def find(self, token: str, workspace: Workspace) -> UndoRecord:
        """The record of a token, or the newest of the workspace for `last`. NotFound names those that there are."""
        records = [one for one in self.records() if _is_of(one, workspace)]
        for record in records:
            if record.token == token or (token == LAST and record.state != "undone"):
                return record
        known = ", ".join(f"{one.token} ({one.what}, {len(one.files)} files, {one.state})" for one in records[:5])
        hint = f"newest first: {known}" if known else "nothing was written in this workspace by these tools"
        raise NotFound(f"no undo record {token[:40]!r} in this workspace", hint)

    def records(self) -> list[UndoRecord]:
        """Newest first."""
        found = []
        for token in self._tokens():
            try:
                data = read_regular(self.folder / token / _RECORD, _MAX_RECORD_BYTES)
                found.append(msgspec.json.decode(data, type=ready(UndoRecord)))
            except (OSError, msgspec.MsgspecError):
                continue  # it was being made when we were killed: nothing had been written yet
        return sorted(found, key=lambda one: one.at, reverse=True)

    def old_content(self, record: UndoRecord, file: UndoFile) -> bytes | None:
        if file.before is None:
            return None
        try:
            data = read_regular(self.folder / record.token / file.before, MAX_BYTES)
        except FileNotFoundError:
            data = None
        if hash_content(data) != file.before_hash:
            name = os.fsdecode(file.path)
            raise Conflict(f"the old content of {name} is gone or damaged", "git may still have it")
        return data

    def _tokens(self) -> list[str]:
        try:
            return os.listdir(self.folder)
        except FileNotFoundError:
            return []

    def _save(self, record: UndoRecord) -> None:
        write_private(self.folder / record.token / _RECORD, msgspec.json.encode(record))

    def _remove(self, token: str) -> None:
        """The record first: without it the rest means nothing, with it alone nothing could be restored."""
        try:
            os.unlink(self.folder / token / _RECORD)
        except FileNotFoundError:
            pass
        shutil.rmtree(self.folder / token, ignore_errors=True)

    def _prune(self, coming_bytes: int, workspace: Workspace) -> None:
        """Make room for one more: by number, by age and by bytes. What a kill left behind goes, too: records that were
        not complete, and drafts beside the files of the workspace."""
        now = self._clock()
        left = self._max_store_bytes - coming_bytes
        records = self.records()
        for number, record in enumerate(records):
            left -= record.size_bytes
            if number >= self._max_records - 1 or record.at < now - MAX_AGE_S or left < 0:
                self._remove_unused(record.token)
            elif record.state == "begun":
                self._sweep_drafts(record, workspace)
        for token in set(self._tokens()).difference(one.token for one in records):
            try:
                if os.lstat(self.folder / token).st_mtime < time.time() - _STALE_S:
                    self._remove_unused(token)
            except OSError:
                pass

    def _sweep_drafts(self, record: UndoRecord, workspace: Workspace) -> None:
        paths = [workspace.place(os.fsdecode(file.path)) for file in record.files]
        try:
            with self.locked(record.token):
                sweep(((number, path) for number, path in enumerate(paths) if path is not None), record.token)
        except (OSError, Conflict):
            pass  # that write goes on

    def _remove_unused(self, token: str) -> None:
        try:
            with self.locked(token):
                self._remove(token)
        except (OSError, Conflict):
            pass  # another process removed it, or writes it right now


def hash_content(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _keep(folder: Path, number: int, change: FileChange, state: FileAttributes | None) -> UndoFile:
    if change.before is not None:
        write_private(folder / str(number), change.before)
    return UndoFile(
        os.fsencode(change.path.absolute),
        None if change.before is None else str(number),
        state,
        hash_content(change.before),
        hash_content(change.after),
    )


def _is_of(record: UndoRecord, workspace: Workspace) -> bool:
    return all(workspace.place(os.fsdecode(file.path)) is not None for file in record.files)
