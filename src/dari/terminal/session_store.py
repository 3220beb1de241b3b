"""Sessions on disk: one 0600 file each, replaced as a whole, so that a full disk loses nothing that was there."""

from __future__ import annotations

import errno
import re
import secrets
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.errors import Failed, InvalidInput, NotFound
from dari.paths import private_dir, write_private
from dari.struct_types import ready
from dari.terminal.layout.cells import Cell, Leaf, Orientation, Split

FORMAT = 1


class SavedCell(Struct, frozen=True, omit_defaults=True):
    """A pane (`pane` is its id when it was saved) or a split of several."""

    cols: int
    rows: int
    pane: str = ""
    orientation: Orientation = "horizontal"
    children: tuple[SavedCell, ...] = ()


class SavedTab(Struct, frozen=True):
    root: SavedCell
    recent: tuple[str, ...]
    """Panes by when they had the focus, the focused one first."""
    name: str = ""
    is_zoomed: bool = False


class SavedWindow(Struct, frozen=True):
    cols: int
    rows: int
    tabs: tuple[SavedTab, ...]
    active: int = 0
    name: str = ""


class SavedPane(Struct, frozen=True, kw_only=True):
    """`screen` is a snapshot of the engine, compressed; `command` was running in the shell."""

    id: str
    name: str
    cwd: str
    argv: tuple[str, ...] = ()
    shell: str = ""
    env: dict[str, str] = {}
    command: str = ""
    screen: bytes = b""


class SavedSession(Struct, frozen=True, kw_only=True):
    format: int = FORMAT
    name: str = ""
    saved_unix: float = 0
    windows: tuple[SavedWindow, ...] = ()
    panes: tuple[SavedPane, ...] = ()
    focused: str = ""


def to_saved(cell: Cell) -> SavedCell:
    if isinstance(cell, Leaf):
        return SavedCell(cell.cols, cell.rows, cell.pane)
    return SavedCell(cell.cols, cell.rows, "", cell.orientation, tuple(map(to_saved, cell.children)))


def to_cell(saved: SavedCell, names: dict[str, str]) -> Cell:
    """The tree with the panes' new ids."""
    if not saved.children:
        if saved.pane not in names:
            raise InvalidInput(f"the session's layout names pane {saved.pane!r}, which it does not hold", "save anew")
        return Leaf(names[saved.pane], saved.cols, saved.rows)
    return Split(saved.orientation, tuple(to_cell(child, names) for child in saved.children), saved.cols, saved.rows)


def panes_in(saved: SavedCell) -> list[str]:
    if not saved.children:
        return [saved.pane]
    return [pane for child in saved.children for pane in panes_in(child)]


SUFFIX = ".session"
MAX_SESSION_BYTES = 1 << 30
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ready(SavedSession))


class SessionStore:
    """The directory is made with the first session."""

    def __init__(self, directory: Path, noun: str = "session") -> None:
        self._directory = directory
        self._noun = noun

    def save(self, session: SavedSession) -> tuple[str, int]:
        """Write it; its id (its name, or one that is made) and its size."""
        session_id = session.name or f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        data = zlib.compress(_encoder.encode(session), 1)
        path = self._path(session_id)
        try:
            private_dir(self._directory)
            write_private(path, data)
        except OSError as error:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            fact = "the disk is full" if is_full else (error.strerror or str(error))
            raise Failed(
                f"{self._noun} {session_id} was not saved, {len(data)} bytes: {fact}",
                f"make room below {self._directory}, then save again; an earlier one of that name is unchanged",
            ) from error
        return session_id, len(data)

    def load(self, session_id: str) -> SavedSession:
        path = self._path(session_id)
        try:
            packed = path.read_bytes()
        except FileNotFoundError:
            known = ", ".join(sorted(name for name, _ in self.files())[:20]) or "none"
            raise NotFound(f"no {self._noun} has the id {session_id!r}", f"kept: {known}") from None
        except OSError as error:
            raise Failed(f"{path} cannot be read: {error.strerror}", "check the file") from error
        try:
            session = _decoder.decode(_unpacked(packed))
        except (zlib.error, msgspec.DecodeError, ValueError) as error:
            raise Failed(f"{path} must be a session of this version: {error}", "save the session again") from error
        if session.format != FORMAT:
            raise Failed(f"{path} has format {session.format}, this release reads {FORMAT}", "save it anew")
        return session

    def remove(self, session_id: str) -> None:
        try:
            self._path(session_id).unlink()
        except FileNotFoundError:
            raise NotFound(f"no {self._noun} has the id {session_id!r}", f"list the {self._noun}s") from None

    def files(self) -> Iterator[tuple[str, Path]]:
        """Ids with their files."""
        try:
            found = list(self._directory.iterdir())
        except OSError:
            return
        for path in found:
            if path.suffix == SUFFIX and _NAME.fullmatch(path.stem):
                yield path.stem, path

    def _path(self, session_id: str) -> Path:
        if not _NAME.fullmatch(session_id):
            raise InvalidInput(
                f"a {self._noun} name must have letters, digits, '.', '-' and '_' only, got {session_id[:80]!r}",
                "rename it",
            )
        return self._directory / f"{session_id}{SUFFIX}"


def _unpacked(packed: bytes) -> bytes:
    """No more than MOST_BYTES, whatever a file that somebody else made says."""
    machine = zlib.decompressobj()
    data = machine.decompress(packed, MAX_SESSION_BYTES)
    if machine.unconsumed_tail or not machine.eof:
        raise ValueError("it is cut off or too large")
    return data
