"""The way back: before anything is written, the old content of every file is on disk under a token.

A record is a folder: `record.json`, and one file per old content. It is complete before the first file is replaced, so
a kill at any moment leaves either nothing changed or a record that takes all of it back.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.codetools.edits.change import FileChange
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict, NotFound
from dari.paths import home, private_dir, read_regular, write_private

LAST = "last"
"""The token that names the newest record of the workspace."""
MAX_RECORDS = 200
MAX_AGE_S = 14 * 24 * 3600
_MAX_RECORD_BYTES = 64 << 20
_RECORD = "record.json"


class UndoFile(Struct, frozen=True):
    root: str
    relative: str
    before: str | None
    """The name of the file with the old content; None when there was no file."""
    mode: int | None
    before_hash: str
    after_hash: str


class UndoRecord(Struct, frozen=True):
    token: str
    what: str
    at: float
    files: tuple[UndoFile, ...]
    roots: tuple[str, ...]
    is_finished: bool = False

    def mode_of(self, path: WorkspacePath) -> int | None:
        return next(
            (one.mode for one in self.files if (one.root, one.relative) == (str(path.root), path.relative)), None
        )


class UndoStore:
    """Records of all workspaces of this user. `folder` is made with the first record."""

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    @property
    def folder(self) -> Path:
        return home() / "codetools" / "undo" if self._folder is None else self._folder

    def record(self, changes: Sequence[FileChange], workspace: Workspace, what: str) -> UndoRecord:
        """Keep the old content of all files. Raises OSError when the disk is full: then nothing was changed."""
        self._prune()
        token = secrets.token_hex(8)
        folder = private_dir(self.folder / token)
        try:
            files = [self._keep(folder, number, change) for number, change in enumerate(changes)]
            record = UndoRecord(token, what, self._clock(), tuple(files), tuple(map(str, workspace.roots)))
            self._save(record)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return record

    def finish(self, record: UndoRecord) -> None:
        """Everything was written. A record without this is of a write that was cut off."""
        self._save(msgspec.structs.replace(record, is_finished=True))

    def forget(self, record: UndoRecord) -> None:
        shutil.rmtree(self.folder / record.token, ignore_errors=True)

    def find(self, token: str, workspace: Workspace) -> UndoRecord:
        """The record of a token, or the newest of the workspace for `last`. NotFound names those that there are."""
        records = [one for one in self.records() if set(one.roots) & set(map(str, workspace.roots))]
        if token == LAST and records:
            return records[0]
        for record in records:
            if record.token == token:
                return record
        known = ", ".join(f"{one.token} ({one.what}, {len(one.files)} files)" for one in records[:5])
        hint = f"newest first: {known}" if known else "nothing was written in this workspace by these tools"
        raise NotFound(f"no undo record {token[:40]!r} in this workspace", hint)

    def records(self) -> list[UndoRecord]:
        """Newest first."""
        found = []
        try:
            tokens = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        for token in tokens:
            try:
                data = read_regular(self.folder / token / _RECORD, _MAX_RECORD_BYTES)
                found.append(msgspec.json.decode(data, type=UndoRecord))
            except (OSError, msgspec.MsgspecError):
                continue  # it was being made when we were killed: nothing had been written yet
        return sorted(found, key=lambda one: one.at, reverse=True)

    def old_content(self, record: UndoRecord, file: UndoFile) -> bytes | None:
        if file.before is None:
            return None
        try:
            return read_regular(self.folder / record.token / file.before, 1 << 30)
        except FileNotFoundError:
            raise Conflict(f"the old content of {file.relative} is gone", "git may still have it") from None

    def _keep(self, folder: Path, number: int, change: FileChange) -> UndoFile:
        mode = None
        if change.before is not None:
            write_private(folder / str(number), change.before)
            mode = stat.S_IMODE(os.lstat(change.path.absolute).st_mode)
        return UndoFile(
            str(change.path.root),
            change.path.relative,
            None if change.before is None else str(number),
            mode,
            hash_content(change.before),
            hash_content(change.after),
        )

    def _save(self, record: UndoRecord) -> None:
        write_private(self.folder / record.token / _RECORD, msgspec.json.encode(record))

    def _prune(self) -> None:
        oldest = self._clock() - MAX_AGE_S
        for number, record in enumerate(self.records()):
            if number >= MAX_RECORDS - 1 or record.at < oldest:
                self.forget(record)


def hash_content(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()
