"""What a work tree looked like when a session began, kept outside of the repository.

In a repository: the files that differ from its index and those that git does not know are hashed into objects of ours,
and a tree of them is written; everything else is in the repository's own objects. A small folder without a repository
is hashed whole; of a large one sizes and times are kept, without content.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from dari.codetools.diff.git import (
    Git,
    GitFailed,
    PrivateFolder,
    Repository,
    find_git,
    find_repository,
    remove_left_folders,
)
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import DariError, InvalidInput
from dari.files.secrets import is_secret_folder, is_secret_name

MAX_FILE_BYTES = 4 << 20
MAX_TOTAL_BYTES = 256 << 20
MAX_HASHED_FILES = 20_000
MAX_LISTED_FILES = 400_000
MAX_SNAPSHOTS = 8

Stamp = tuple[int, int]
"""Size and time of change."""


class TreeSnapshot(Struct, frozen=True):
    folder: Path
    """The top of the work tree."""
    taken_at: float
    tree: str = ""
    """Empty where only stamps are kept."""
    objects: Path | None = None
    left_out: dict[str, Stamp] = {}
    """Files without content, with their stamps: too large, or too many."""
    is_partial: bool = False
    """There are more files than are listed."""


class Snapshots:
    """Of one session: taken with its first call, one per repository or folder."""

    def __init__(self, session: CodeSession) -> None:
        self._session = session
        self._tasks: dict[Path, asyncio.Task[TreeSnapshot | DariError]] = {}

    def begin(self, workspace: Workspace) -> None:
        """Take one of each new root, beside what the call does."""
        for root in workspace.roots:
            if root not in self._tasks and len(self._tasks) < MAX_SNAPSHOTS:
                self._tasks[root] = asyncio.get_running_loop().create_task(self._take(root))

    async def taken(self) -> None:
        """Wait for those that were begun: nothing may be written before."""
        for task in list(self._tasks.values()):
            await asyncio.wait([task])

    async def of(self, folder: Path) -> TreeSnapshot | DariError | None:
        """The one that covers the folder; None when none was begun."""
        for root, task in self._tasks.items():
            if folder == root or root in folder.parents:
                return await asyncio.shield(task)
        return None

    async def _take(self, root: Path) -> TreeSnapshot | DariError:
        try:
            return await take_snapshot(self._session, root)
        except DariError as error:
            return error


async def take_snapshot(session: CodeSession, root: Path) -> TreeSnapshot:
    workspace = Workspace([root])
    home = Path.home()
    if root == home or root in home.parents:
        raise InvalidInput(
            f"no snapshot is taken of {root}: it holds whole home folders", "start the session in a project's folder"
        )
    taken_at = time.time()
    git = find_git(session, workspace)
    repository = await find_repository(git, root)
    await asyncio.to_thread(remove_left_folders)
    top = root if repository is None else repository.top
    if repository is None:
        paths, is_partial = await list_files(workspace)
        if is_partial or len(paths) > MAX_HASHED_FILES:
            stamps = await asyncio.to_thread(_stamps, root, (one.relative for one in paths))
            return TreeSnapshot(root, taken_at, left_out=stamps, is_partial=is_partial)
        names = [os.fsencode(one.relative) for one in paths]
    folder = await asyncio.to_thread(PrivateFolder, repository, top)
    try:
        if repository is not None:
            names = await _unsaved(git, repository, folder)
        hashed, left_out = await asyncio.to_thread(split_by_size, top, names)
        await hash_files(git, top, folder, hashed)
        tree = (await git.run(("write-tree", "--missing-ok"), top, env=folder.env)).decode().strip()
    except BaseException:
        folder.remove()
        raise
    snapshot = TreeSnapshot(top, taken_at, tree, folder.objects, left_out)
    weakref.finalize(session, folder.remove)
    return snapshot


async def _unsaved(git: Git, repository: Repository, folder: PrivateFolder) -> list[bytes]:
    """Files whose content may differ from the index, conflicts included, and those that git does not know."""
    changed = await git.run(("diff-files", "--name-only", "-z", "--ignore-submodules"), repository.top, env=folder.env)
    conflicts = await git.run(("ls-files", "--unmerged", "-z"), repository.top, env=folder.env)
    names = dict.fromkeys(name for name in changed.split(b"\0") if name)
    names |= dict.fromkeys(entry.split(b"\t", 1)[1] for entry in conflicts.split(b"\0") if entry)
    names |= dict.fromkeys(await untracked(git, repository.top, folder, []))
    return list(names)


async def untracked(git: Git, top: Path, folder: PrivateFolder, specs: list[str]) -> list[bytes]:
    """Files that git does not know and does not ignore; no names of secrets, no repositories inside."""
    arguments = ("ls-files", "--others", "--exclude-standard", "-z", "--", *specs)
    printed = await git.run(arguments, top, env=folder.env)
    return [name for name in printed.split(b"\0") if name and not name.endswith(b"/") and not is_secret(name)]


async def hash_files(git: Git, top: Path, folder: PrivateFolder, names: Sequence[bytes]) -> None:
    """Put what is on disk into the index and the objects of our folder; what cannot be read is left out."""
    if not names:
        return
    arguments = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
    try:
        await git.run(arguments, top, env=folder.env, stdin=b"".join(name + b"\0" for name in names))
    except GitFailed:
        half = len(names) // 2
        if half:  # one that is not ours to read stops the command: find it
            await hash_files(git, top, folder, names[:half])
            await hash_files(git, top, folder, names[half:])


async def list_files(workspace: Workspace) -> tuple[list[WorkspacePath], bool]:
    """In a thread that ends with the session: a process that leaves does not wait for 200,000 files."""
    is_over = threading.Event()
    try:
        return await asyncio.to_thread(_listed, workspace, is_over)
    finally:
        is_over.set()


def is_secret(name: bytes) -> bool:
    *folders, last = os.fsdecode(name).split("/")
    return is_secret_name(last) or any(map(is_secret_folder, folders))


def split_by_size(top: Path, names: Iterable[bytes]) -> tuple[list[bytes], dict[str, Stamp]]:
    """Files to hash, and the stamps of those that are too large or too many. A file that is gone counts as small."""
    hashed: list[bytes] = []
    left_out: dict[str, Stamp] = {}
    total = 0
    for name in names:
        try:
            info = os.lstat(os.path.join(os.fsencode(top), name))
            size, stamp = info.st_size, (info.st_size, max(info.st_mtime_ns, info.st_ctime_ns))
        except OSError:
            size, stamp = 0, (0, 0)
        if size > MAX_FILE_BYTES or total + size > MAX_TOTAL_BYTES or len(hashed) >= MAX_HASHED_FILES:
            left_out[os.fsdecode(name)] = stamp
        else:
            hashed.append(name)
            total += size
    return hashed, left_out


def _listed(workspace: Workspace, is_over: threading.Event) -> tuple[list[WorkspacePath], bool]:
    paths: list[WorkspacePath] = []
    for one in workspace.files():
        paths.append(one)
        if len(paths) >= MAX_LISTED_FILES or is_over.is_set():
            return paths, True
    return paths, False


def _stamps(root: Path, names: Iterable[str]) -> dict[str, Stamp]:
    stamps: dict[str, Stamp] = {}
    for name in names:
        if (stamp := stamp_of(root, name)) is not None:
            stamps[name] = stamp
    return stamps


def stamp_of(root: Path, name: str) -> Stamp | None:
    try:
        info = os.lstat(os.path.join(root, name))
    except OSError:
        return None
    return info.st_size, max(info.st_mtime_ns, info.st_ctime_ns)
