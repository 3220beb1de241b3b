"""What differs between a work tree and what it was: the files first, then content for those who ask."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from dari.codetools.diff.git import Git, PrivateFolder, Repository, find_git, find_repository, resolve_commit
from dari.codetools.diff.patch import Patch, RawChange, read_patches, read_raw
from dari.codetools.diff.snapshot import (
    TreeSnapshot,
    hash_files,
    list_files,
    split_by_size,
    stamp_of,
    untracked,
)
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import DariError, InvalidInput
from dari.files.globs import compile_parts, expand_braces, glob_matches

MAX_OLD_BYTES = 4 << 20
MAX_COUNTED = 5_000
"""To count lines git reads both contents of every file."""
_OPTIONS = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-abbrev", "-M", "--ignore-submodules=dirty")
_GLOB = frozenset("*?[{")
_BY_TIME = "no repository is here: files by their time of change, without their old content"


class Base(Struct, frozen=True):
    """What is compared with: a tree of git, or the stamps of a folder."""

    label: str
    tree: str = ""
    objects: tuple[Path, ...] = ()
    left_out: dict[str, tuple[int, int]] = {}
    after: float | None = None
    """Only what changed after this time."""


class TreeComparison:
    """`changes` are sorted by path. `note` says what it could not see."""

    def __init__(self, workspace: Workspace, top: Path, base: Base, note: str = "") -> None:
        self.workspace = workspace
        self.top = top
        self.base = base
        self.note = note
        self.changes: list[RawChange] = []
        self.untracked: frozenset[bytes] = frozenset()
        self.git: Git | None = None
        self._folder: PrivateFolder | None = None

    def place(self, name: bytes) -> WorkspacePath:
        return WorkspacePath(self.top, os.fsdecode(name))

    def show(self, name: bytes) -> str:
        return self.workspace.show(self.place(name))

    async def patches(self, changes: Sequence[RawChange], context: int) -> dict[bytes, Patch]:
        """The hunks of these files; none for what has no content to compare."""
        if self.git is None or self._folder is None or not changes:
            return {}
        names = dict.fromkeys(os.fsdecode(name) for one in changes for name in (one.path, one.old_path))
        arguments = ("diff", *_OPTIONS, "--patch", f"--unified={context}", "--src-prefix=a/", "--dst-prefix=b/")
        printed = await self.git.run((*arguments, self.base.tree, "--", *names), self.top, env=self._folder.env)
        return await asyncio.to_thread(read_patches, printed)

    async def old_contents(self, changes: Sequence[RawChange]) -> dict[bytes, bytes]:
        """By the path now, of those up to `MAX_OLD_BYTES`."""
        objects = {one.path: one.old_object for one in changes if one.old_object.strip("0")}
        if self.git is None or self._folder is None or not objects:
            return {}
        sizes = await self._cat("--batch-check=%(objectname) %(objecttype) %(objectsize)", objects.values())
        small = set()
        for line in sizes.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] == b"blob" and int(words[2]) <= MAX_OLD_BYTES:
                small.add(words[0].decode())
        wanted = [one for one in dict.fromkeys(objects.values()) if one in small]
        contents = _read_batch(await self._cat("--batch", wanted)) if wanted else {}
        return {path: contents[one] for path, one in objects.items() if one in contents}

    async def _cat(self, option: str, objects: Iterable[str]) -> bytes:
        assert self.git is not None and self._folder is not None
        feed = "".join(f"{one}\n" for one in dict.fromkeys(objects)).encode()
        return await self.git.run(("cat-file", option), self.top, env=self._folder.env, stdin=feed)

    async def fill(self, git: Git, repository: Repository | None, paths: Sequence[str]) -> None:
        """Find the changes. Our folder stays until `close`."""
        self.git = git
        self._folder = await asyncio.to_thread(PrivateFolder, repository, self.top, self.base.objects)
        specs = _specs(self.workspace, self.top, paths)
        if repository is not None:
            unknown = await untracked(git, self.top, self._folder, specs)
        else:  # as the snapshot listed them: git does not look into repositories inside
            listed, _ = await list_files(Workspace([self.top]))
            unknown = [os.fsencode(one.relative) for one in listed]
        hashed, large = await asyncio.to_thread(split_by_size, self.top, unknown)
        await hash_files(git, self.top, self._folder, hashed)
        arguments = ("-z", self.base.tree, "--", *specs)
        printed = await git.run(("diff", *_OPTIONS, "--raw", *arguments), self.top, env=self._folder.env)
        if printed.count(b"\0:") < MAX_COUNTED:
            printed += await git.run(("diff", *_OPTIONS, "--numstat", *arguments), self.top, env=self._folder.env)
        else:
            self.note = f"more than {MAX_COUNTED} files changed: their lines are not counted"
        changes = read_raw(printed)
        changes += [_bare("added", os.fsencode(name)) for name in large]
        self.untracked = frozenset(unknown if repository is not None else ())
        changes = [one for one in changes if not self._is_as_it_was(one)]
        if self.base.after is not None:
            changes = await self._only_after(git, changes, self.base.after)
        self.changes = sorted(self._chosen(changes, paths), key=lambda one: one.path)

    async def close(self) -> None:
        if self._folder is not None:
            await asyncio.to_thread(self._folder.remove)

    def fill_from_stamps(self, stamps: dict[str, tuple[int, int]], now: Iterable[WorkspacePath]) -> None:
        """Of a folder that is too large to be hashed: what came, went, or has another size or time."""
        left = dict(stamps)
        for path in now:
            before = left.pop(path.relative, None)
            if before is None:
                self.changes.append(_bare("added", os.fsencode(path.relative)))
            elif before != stamp_of(path.root, path.relative):
                self.changes.append(_bare("modified", os.fsencode(path.relative)))
        self.changes += [_bare("deleted", os.fsencode(name)) for name in left]
        self.changes.sort(key=lambda one: one.path)

    def fill_from_times(self, after: float, now: Iterable[WorkspacePath]) -> None:
        for path in now:
            stamp = stamp_of(path.root, path.relative)
            if stamp is not None and stamp[1] / 1e9 >= after:
                self.changes.append(_bare("modified", os.fsencode(path.relative)))

    def _is_as_it_was(self, one: RawChange) -> bool:
        """A file that the snapshot has no content of, with the stamp that it had then."""
        before = self.base.left_out.get(os.fsdecode(one.path))
        return before is not None and before == stamp_of(self.top, os.fsdecode(one.path))

    async def _only_after(self, git: Git, changes: list[RawChange], after: float) -> list[RawChange]:
        """A file that no commit has changed since, and that was written before, had this content already then."""
        assert self._folder is not None
        arguments = ("diff", *_OPTIONS, "--cached", "--name-only", "-z", self.base.tree, "--")
        committed = set((await git.run(arguments, self.top, env=self._folder.env)).split(b"\0"))
        kept = []
        for one in changes:
            stamp = stamp_of(self.top, os.fsdecode(one.path))
            if stamp is None or stamp[1] / 1e9 >= after or (one.path in committed and one.path not in self.untracked):
                kept.append(one)
        return kept

    def _chosen(self, changes: Iterable[RawChange], paths: Sequence[str]) -> list[RawChange]:
        """Inside the workspace, and matched by a glob where the caller gave globs."""
        every = [one for path in paths for one in ([path] if _is_there(self.workspace, path) else expand_braces(path))]
        globs = [compile_parts(os.path.normpath(one).split("/")) for one in every if _GLOB.intersection(one)]
        plain = [self.workspace.locate(one) for one in every]  # also `app/[id]`, whether it is still there or not
        chosen = []
        for one in changes:
            absolute = str(self.top / os.fsdecode(one.path))
            if not any(absolute.startswith(os.path.join(root, "")) for root in self.workspace.roots):
                continue
            is_named = any(absolute == str(p.absolute) or absolute.startswith(f"{p.absolute}/") for p in plain)
            names = self.show(one.path).split("/")
            if not paths or is_named or any(glob_matches(words, names) for words in globs):
                chosen.append(one)
        return chosen


@asynccontextmanager
async def compare(
    session: CodeSession, workspace: Workspace, since: str, paths: Sequence[str] = ()
) -> AsyncIterator[TreeComparison]:
    """The work tree of `workspace.base` against `since`: a commit, branch or tag, a time, or `session`."""
    git = find_git(session, workspace)
    repository = await find_repository(git, workspace.base)
    if repository is None:
        comparison = await _without_repository(session, workspace, since)
    else:
        comparison = TreeComparison(workspace, repository.top, await _base(session, git, repository, workspace, since))
    try:
        if comparison.base.tree:
            await comparison.fill(git, repository, paths)
        yield comparison
    finally:
        await comparison.close()


async def _base(session: CodeSession, git: Git, repository: Repository, workspace: Workspace, since: str) -> Base:
    if since == SESSION:
        snapshot = await _snapshot(session, workspace)
        if snapshot.folder != repository.top:
            raise InvalidInput(
                f"the session's snapshot is of {snapshot.folder}, not of the repository {repository.top} in it",
                "name a commit or a time, or leave root out",
            )
        return _base_of(snapshot)
    if (moment := parse_time(since)) is not None:
        head = await _head(git, repository)
        before = ""
        if head:
            arguments = ("rev-list", "-1", f"--before={int(moment)}", head)
            before = (await git.run(arguments, repository.top)).decode().strip()
        label = f"{before[:12]}, the last commit before then" if before else "before the first commit"
        return Base(label, before or await _empty_tree(git, repository), after=moment)
    if since == "HEAD" and not await _head(git, repository):
        return Base("before the first commit", await _empty_tree(git, repository))
    commit = await resolve_commit(git, repository, since)
    return Base(commit[:12], commit)


async def _head(git: Git, repository: Repository) -> str:
    """Empty before the first commit."""
    try:
        return await resolve_commit(git, repository, "HEAD")
    except InvalidInput:
        return ""


async def _empty_tree(git: Git, repository: Repository) -> str:
    """Its name is known without being written: it is the hash of nothing."""
    printed = await git.run(("hash-object", "-t", "tree", "--stdin"), repository.top)
    return printed.decode().strip()


async def _snapshot(session: CodeSession, workspace: Workspace) -> TreeSnapshot:
    found = await session.snapshots.of(workspace.base) if session.snapshots is not None else None
    if found is None:
        raise InvalidInput(
            "this session has no snapshot of the folder",
            "since 'session' is for sessions that last; name a commit or a time",
        )
    if isinstance(found, DariError):
        raise found
    return found


def _base_of(snapshot: TreeSnapshot) -> Base:
    objects = (snapshot.objects,) if snapshot.objects is not None else ()
    return Base("the begin of this session", snapshot.tree, objects, snapshot.left_out)


async def _without_repository(session: CodeSession, workspace: Workspace, since: str) -> TreeComparison:
    if since == SESSION:
        snapshot = await _snapshot(session, workspace)
        base = _base_of(snapshot)
        if base.tree:
            return TreeComparison(workspace, snapshot.folder, base)
        comparison = TreeComparison(
            workspace, snapshot.folder, base, "too many files for their content: sizes and times only"
        )
        await asyncio.to_thread(comparison.fill_from_stamps, snapshot.left_out, Workspace([snapshot.folder]).files())
        return comparison
    moment = parse_time(since)
    if moment is None:
        raise InvalidInput(
            f"{workspace.base} is in no git repository, so since must be 'session' or a time, got {since!r}",
            "such as '2 hours ago' or 2026-01-31T12:00",
        )
    comparison = TreeComparison(workspace, workspace.base, Base("that time"), _BY_TIME)
    await asyncio.to_thread(comparison.fill_from_times, moment, Workspace([workspace.base]).files())
    return comparison


def _specs(workspace: Workspace, top: Path, paths: Sequence[str]) -> list[str]:
    """What git looks at: the named files and folders; with a glob the folder that names are relative to."""
    specs: list[str] = []
    for path in paths or (".",):
        is_glob = _GLOB.intersection(path) and not _is_there(workspace, path)
        place = workspace.base if is_glob else workspace.locate(path).absolute
        if place != top and top not in place.parents:
            raise InvalidInput(
                f"{path!r} is in another repository than {top}", "name the folder of that repository as root"
            )
        specs.append(os.path.relpath(place, top))
    return list(dict.fromkeys(specs))


def _is_there(workspace: Workspace, path: str) -> bool:
    return os.path.lexists(workspace.locate(path).absolute)


def _bare(status: str, name: bytes) -> RawChange:
    return RawChange(status, name, name, "", "", "")


def _read_batch(printed: bytes) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    at = 0
    while at < len(printed):
        end = printed.index(b"\n", at)
        words = printed[at:end].split()
        at = end + 1
        if len(words) != 3:
            continue  # missing
        size = int(words[2])
        contents[words[0].decode()] = printed[at : at + size]
        at += size + 1
    return contents


SESSION = "session"
_AGO = re.compile(r"(\d{1,6}|an?|one)\s*(s|sec|second|m|min|minute|h|hour|d|day|w|week|month|year)s?(?:\s+ago)?")
_SECONDS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_SECONDS |= {"d": 86400, "day": 86400, "w": 604800, "week": 604800, "month": 2629800, "year": 31557600}
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?\s*(?:Z|[+-]\d\d:?\d\d)?")


def parse_time(since: str, now: float | None = None) -> float | None:
    """Seconds since 1970 when it is a time: ISO 8601 (local time without an offset), `2 hours ago`, `yesterday`."""
    now = time.time() if now is None else now
    words = " ".join(since.strip().lower().split())
    if words in ("today", "yesterday"):
        start = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        return start if words == "today" else start - 86400
    if (found := _AGO.fullmatch(words)) and ("ago" in words or " " in words):
        count = int(found[1]) if found[1].isdigit() else 1
        return now - count * _SECONDS[found[2]]
    if _ISO.fullmatch(since.strip()):
        try:
            return datetime.fromisoformat(since.strip().replace("Z", "+00:00")).timestamp()
        except (ValueError, OverflowError, OSError):
            raise InvalidInput(
                f"since must be a time such as 2026-01-31T12:00, got {since!r}", "check the date"
            ) from None
    return None
