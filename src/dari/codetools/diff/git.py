"""git on a repository that may be hostile: no program that its configuration or its attributes name is ever run.

The repository's own folder is asked only where it is and what a name means. Everything that looks at files runs with a
git folder of ours, which shares the repository's objects and index and has a configuration of ours: filters, textconv
and diff drivers, fsmonitor, hooks, aliases, pagers and remotes of the repository do not exist there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from dari.codetools.engines.locate import EngineProgram, find_engine
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace
from dari.errors import DariError, Denied, InvalidInput, TimedOut, Unavailable

TIMEOUT_S = 90.0
MAX_OUTPUT_BYTES = 64 << 20
_MAX_COPIED_BYTES = 1 << 20
# Beside our own folder's configuration: for what is asked of the repository itself.
_SAFE = ("--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat")
_ENV = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
_OWN_ENV = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
# Settings that only say how files compare. Everything else of the repository's configuration is left behind.
_KEPT_SETTINGS = frozenset(
    (
        *("core.autocrlf", "core.eol", "core.filemode", "core.symlinks", "core.ignorecase", "core.trustctime"),
        *("core.precomposeunicode", "core.excludesfile", "core.attributesfile", "core.checkstat", "core.longpaths"),
    )
)


class Repository(Struct, frozen=True):
    """Where a work tree and its git folder are. `common` holds objects and refs; of a linked work tree it differs."""

    top: Path
    git_folder: Path
    common: Path
    object_format: str
    settings: tuple[tuple[str, str], ...]


class Git:
    def __init__(self, session: CodeSession, engine: EngineProgram) -> None:
        self._session = session
        self.engine = engine

    async def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        accepts: tuple[int, ...] = (0,),
    ) -> bytes:
        """What it prints. InvalidInput when it fails or prints too much, TimedOut when it takes too long."""
        run = await self._session.run(
            self.engine,
            (*_SAFE, *arguments),
            cwd,
            stdin=stdin,
            timeout_s=TIMEOUT_S,
            max_output_bytes=MAX_OUTPUT_BYTES,
            env={**_ENV, **(env or {})},
            is_single=True,
        )
        if run.end == "timed_out":
            raise TimedOut(f"git {arguments[0]} took longer than {TIMEOUT_S:g} s", "narrow paths")
        if run.end == "output_limit":
            raise OutputTooLarge(f"git {arguments[0]} printed more than {MAX_OUTPUT_BYTES >> 20} MB", "narrow paths")
        if run.returncode not in accepts:
            raise GitFailed(f"git {arguments[0]} failed: {run.stderr.strip()[-500:]}", "check the arguments")
        return run.stdout


class GitFailed(InvalidInput):
    """It ended with an error; the message is its own."""


class OutputTooLarge(InvalidInput):
    """It printed more than is read."""


def find_git(session: CodeSession, workspace: Workspace) -> Git:
    """The caller's git, never one that a project brings."""
    engine = find_engine("git", workspace, workspace.base, session.environ, origins=("path",))
    if engine is None:
        raise Unavailable("git is not installed", "install it: apt install git, brew install git, or git-scm.com")
    return Git(session, engine)


async def find_repository(git: Git, folder: Path) -> Repository | None:
    """The repository that holds the folder; None where there is none."""
    asked = ("--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    try:
        printed = await git.run(("rev-parse", *asked, "--show-object-format"), folder)
    except GitFailed as error:
        if "not a git repository" in error.message or "must be run in a work tree" in error.message:
            return None
        if "dubious ownership" in error.message:
            raise Denied(
                f"git does not trust the repository of {folder}: another user owns it",
                "a person who trusts it runs: git config --global --add safe.directory <its folder>",
            ) from None
        raise
    # Not splitlines(): a path may hold a form feed, or a line separator of Unicode.
    lines = printed.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
    if len(lines) != 4:
        raise InvalidInput(
            f"git printed {len(lines)} lines for the paths of {folder}", "check whether its path has a line break"
        )
    top, own, common = (Path(os.path.realpath(line)) for line in lines[:3])
    if folder != top and top not in folder.parents:
        raise Denied(f"the repository of {folder} names another work tree", "core.worktree must be a folder above it")
    if top not in own.parents and not _belongs(own, top):
        raise Denied(f"{top}/.git leads to {own}, which does not lead back", "repair it: git worktree repair")
    if common != own and own.parent != common / "worktrees":
        raise Denied(f"{own}/commondir leads to {common}, which does not lead back", "repair it: git worktree repair")
    if link := await asyncio.to_thread(_link_out, own, common):
        raise Denied(f"{link} leads out of the repository", "put the files themselves there, or clone it anew")
    listed = await git.run(("config", "--list", "--null", "--includes"), folder)
    return Repository(top, own, common, lines[3], _kept(listed))


def _belongs(own: Path, top: Path) -> bool:
    """Of a linked work tree and of a submodule the git folder is elsewhere, and names the work tree."""
    if back := _head_of(own / "gitdir").strip():
        return os.path.realpath(back) == str(top / ".git")
    lines = _head_of(own / "config").splitlines()
    named = [line.partition("=")[2].strip() for line in lines if line.strip().lower().startswith("worktree")]
    return any(os.path.realpath(own / one) == str(top) for one in named)


def _link_out(own: Path, common: Path) -> str:
    """A symbolic link in a git folder to somewhere else, such as to branches of another repository: its history would
    be shown as that of this one. Empty where there is none."""
    inside = tuple(os.path.join(one, "") for one in {own, common})
    for folder in {own, common}:
        for top, depth in ((folder, 1), (folder / "objects", 1), (folder / "refs", 20), (folder / "logs", 20)):
            for at, folders, files in os.walk(top):
                for name in (*folders, *files):
                    path = os.path.join(at, name)
                    if os.path.islink(path) and not os.path.realpath(path).startswith(inside):
                        return path
                if at.count("/") - str(top).count("/") + 1 >= depth:
                    folders.clear()
    return ""


def _head_of(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_COPIED_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _kept(listed: bytes) -> tuple[tuple[str, str], ...]:
    kept: dict[str, str] = {}
    for entry in listed.decode("utf-8", "surrogateescape").split("\0"):
        name, _, value = entry.partition("\n")
        if name not in _KEPT_SETTINGS or "\n" in value:
            continue
        # git would wait for ever at a pipe.
        if not name.endswith("file") or os.path.isfile(os.path.expanduser(value)):
            kept[name] = value
    return tuple(kept.items())


class PrivateFolder:
    """A git folder of ours: `git.run(…, env=folder.env)`. What is hashed goes into its own objects."""

    def __init__(self, repository: Repository | None, top: Path, objects: Sequence[Path] = ()) -> None:
        """`objects`: further folders of objects to read, such as those of a snapshot."""
        self.path = Path(tempfile.mkdtemp(prefix=f"dari-diff-{os.getpid()}-"))
        self.top = top
        try:
            self._make(repository, objects)
        except BaseException:
            self.remove()
            raise

    @property
    def env(self) -> dict[str, str]:
        return {
            **_OWN_ENV,
            "GIT_DIR": str(self.path),
            "GIT_WORK_TREE": str(self.top),
            "GIT_INDEX_FILE": str(self.path / "index"),
        }

    @property
    def objects(self) -> Path:
        return self.path / "objects"

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _make(self, repository: Repository | None, objects: Sequence[Path]) -> None:
        for name in ("objects/info", "refs/heads", "info"):
            (self.path / name).mkdir(parents=True)
        (self.path / "HEAD").write_text("ref: refs/heads/none\n")
        config = [
            "[core]",
            "\trepositoryformatversion = 1",
            "\tbare = false",
            "\tsafecrlf = false",
            "\tquotepath = false",
        ]
        shared = [*objects]
        if repository is not None:
            config += [f"\t{name.partition('.')[2]} = {_quoted(value)}" for name, value in repository.settings]
            shared.append(repository.common / "objects")
            if repository.object_format != "sha1":
                config += ["[extensions]", f"\tobjectFormat = {repository.object_format}"]
            for name in ("info/exclude", "info/attributes", "shallow"):
                _copy(repository.common / name, self.path / name)
            _copy(repository.git_folder / "index", self.path / "index", None)
            for part in repository.git_folder.glob("sharedindex.*"):
                _copy(part, self.path / part.name, None)
        (self.path / "config").write_text("\n".join(config) + "\n", "utf-8", "surrogateescape")
        (self.path / "objects/info/alternates").write_text(
            "".join(f"{_quoted(str(one))}\n" for one in shared), "utf-8", "surrogateescape"
        )


def _copy(source: Path, target: Path, max_bytes: int | None = _MAX_COPIED_BYTES) -> None:
    """A regular file, where it is there."""
    try:
        file = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with os.fdopen(file, "rb") as stream:
        if max_bytes is None or os.fstat(file).st_size <= max_bytes:
            try:
                with open(target, "wb") as copy:
                    shutil.copyfileobj(stream, copy, 1 << 20)
                # A file that is as old as the index may have changed since: git looks at the index's own time.
                info = os.fstat(file)
                os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
            except IsADirectoryError:
                pass


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{escaped}"'


def remove_left_folders() -> None:
    """Those of processes that were killed."""
    if not Path("/proc/self").exists():
        return
    folders = Path(tempfile.gettempdir())
    for one in (one for what in ("diff", "tests", "empty") for one in folders.glob(f"dari-{what}-*-*")):
        number = one.name.split("-")[2]
        try:
            is_ours = number.isdecimal() and one.lstat().st_uid == os.getuid()
        except OSError:
            continue
        if is_ours and not Path(f"/proc/{number}").exists():
            shutil.rmtree(one, ignore_errors=True)


async def resolve_commit(git: Git, repository: Repository, name: str) -> str:
    """The object that a branch, a tag or a commit is; InvalidInput when there is none."""
    if not name or name.startswith("-") or any(char.isspace() or char == "\0" for char in name):
        raise InvalidInput(f"since must name a commit, a branch or a time, got {name!r}", "such as HEAD or main")
    try:
        printed = await git.run(
            ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"), repository.top
        )
    except DariError:
        raise InvalidInput(
            f"{name!r} is not a commit of this repository",
            "name a branch, a tag, a commit, a time such as '2 hours ago', or 'session'",
        ) from None
    found = printed.decode().strip()
    if not found or not all(char in "0123456789abcdef" for char in found):
        raise InvalidInput(f"since must name one commit, got {name!r}", "a range has two: name where it begins")
    return found
