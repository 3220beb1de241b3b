"""A private copy of some files of a workspace, for engines that rewrite files in place.

The files are copies; everything beside them in their folders is a link to the real thing, so that an engine finds
configuration, plugins and packages where it looks for them. The engine is given the copies by name, and only those are
read back: what it does to the copies reaches the workspace through `edits/write.py` alone.
"""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from dari.codetools.engines.catalog import CONFIGURATION_FILES
from dari.codetools.workspace import VERSION_CONTROL, WorkspacePath

_MAX_BYTES = 64 << 20
_PREFIX = "dari-mirror-"
_MAX_LINKS = 10_000
"""Per folder; a larger one has its settings and folders linked, not its files."""
_MEMORY = "/dev/shm"  # a file system in memory: 4,000 links and copies there never wait for a disk


class MirroredFile(Struct, frozen=True):
    """A file as it was read."""

    path: WorkspacePath
    data: bytes


class Mirror:
    """Made by `open_mirror`. Without `has_links` the copies are alone: no configuration is found."""

    def __init__(self, sources: Sequence[MirroredFile], *, has_links: bool) -> None:
        self._sources = sources
        self._has_links = has_links
        self._top = Path()

    def fill(self) -> None:
        size = sum(len(source.data) for source in self._sources)
        name = f"{_PREFIX}{os.getpid()}-"
        self._top = Path(os.path.realpath(tempfile.mkdtemp(prefix=name, dir=_choose_parent(size))))
        self._fill()

    def remove(self) -> None:
        if self._top != Path():
            shutil.rmtree(self._top, ignore_errors=True)

    def hide_paths(self, text: str) -> str:
        """What an engine said about copies, with the names of the real files."""
        return text.replace(str(self._top), "")

    def path_of(self, real: Path) -> Path:
        """Where a file or folder of the workspace is in here."""
        return self._top / real.relative_to("/")

    def read(self, source: MirroredFile) -> bytes:
        """What became of a copy. OSError where the engine put something else in its place."""
        path = self.path_of(source.path.absolute)
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(file, "rb") as stream:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(f"{path.name} is not a regular file any more")
            return stream.read(_MAX_BYTES)

    def _fill(self) -> None:
        copies = {source.path.absolute for source in self._sources}
        folders: set[Path] = set()
        for source in self._sources:
            folder = source.path.absolute.parent
            while folder not in folders and folder != source.path.root.parent:
                folders.add(folder)
                folder = folder.parent
        for folder in sorted(folders):
            self.path_of(folder).mkdir(parents=True, exist_ok=True)
            if self._has_links:
                self._link(folder, folders | copies)
        if self._has_links:
            for above in {above for source in self._sources for above in source.path.root.parents}:
                self._link_configuration(above)
        for source in self._sources:
            self.path_of(source.path.absolute).write_bytes(source.data)

    def _link(self, folder: Path, own: set[Path]) -> None:
        inside = self.path_of(folder)
        try:
            names = os.listdir(folder)
        except OSError:
            return  # not ours to list: the engine would not find anything there either
        if len(names) > _MAX_LINKS:
            names = [name for name in names if name in CONFIGURATION_FILES or (folder / name).is_dir()][:_MAX_LINKS]
        for name in names:
            # A name that is not UTF-8 ends biome, whichever file it was asked for.
            if folder / name not in own and name not in VERSION_CONTROL and _is_text(name):
                os.symlink(folder / name, inside / name)

    def _link_configuration(self, above: Path) -> None:
        """Above the workspace only what engines look for is there."""
        inside = self.path_of(above)
        for name in CONFIGURATION_FILES:
            if os.path.lexists(above / name) and not os.path.lexists(inside / name):
                os.symlink(above / name, inside / name)


@asynccontextmanager
async def open_mirror(sources: Sequence[MirroredFile], *, has_links: bool = True) -> AsyncIterator[Mirror]:
    """A mirror, and nothing of it left afterwards, also when the caller is cancelled while it is made."""
    await asyncio.to_thread(_remove_left_over)
    mirror = Mirror(sources, has_links=has_links)
    filling = asyncio.ensure_future(asyncio.to_thread(mirror.fill))
    try:
        await asyncio.shield(filling)
        yield mirror
    finally:
        if not filling.done():
            await asyncio.wait([filling])
        await asyncio.shield(asyncio.to_thread(mirror.remove))


@functools.cache
def _remove_left_over() -> None:
    """Mirrors of processes that were killed: those in memory would stay there until the machine restarts."""
    for parent in (_MEMORY, tempfile.gettempdir()):
        try:
            with os.scandir(parent) as entries:
                left = [entry for entry in entries if entry.name.startswith(_PREFIX)]
        except OSError:
            continue
        for entry in left:
            pid = entry.name.removeprefix(_PREFIX).partition("-")[0]
            try:
                if entry.stat(follow_symlinks=False).st_uid == os.getuid() and not os.path.exists(f"/proc/{pid}"):
                    shutil.rmtree(entry.path, ignore_errors=True)
            except OSError:
                continue


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _choose_parent(size_bytes: int) -> str | None:
    """Memory where there is room for ten times as much, else where temporary files go."""
    try:
        room = os.statvfs(_MEMORY)
    except OSError:
        return None
    is_ours = os.access(_MEMORY, os.W_OK | os.X_OK)
    return _MEMORY if is_ours and room.f_bavail * room.f_frsize > 10 * size_bytes + (8 << 20) else None
