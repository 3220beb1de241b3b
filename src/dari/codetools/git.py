"""Questions to git about the working tree: no hook, no pager, no external diff, no lock, no network."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from dari.codetools.engines.locate import Engine, find_engine
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import DariError, Failed, InvalidInput, TimedOut, Unavailable

_TIMEOUT_S = 60.0
_SAFE = (
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.quotePath=false",
)
_ENV = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}


class Git:
    """git in one folder of the workspace."""

    def __init__(self, session: CodeSession, workspace: Workspace, folder: Path) -> None:
        self._session = session
        self._workspace = workspace
        self._folder = folder

    async def run(self, *arguments: str) -> bytes:
        """Its stdout; Failed with what it said when it ended otherwise than well."""
        run = await self._session.run(
            self._engine(), (*_SAFE, *arguments), self._folder, timeout_s=_TIMEOUT_S, env=_ENV, is_single=True
        )
        if run.end == "timed_out":
            raise TimedOut(f"git took longer than {_TIMEOUT_S:g} s", "name paths instead")
        if run.end != "exited" or run.returncode:
            raise Failed(f"git {arguments[0]}: {run.stderr or run.end}", "is this folder in a git repository?")
        return run.stdout

    async def changed_files(self, since: str) -> list[WorkspacePath]:
        """Files below the folder that differ from a commit or are new and not ignored, and are there."""
        if since.startswith("-") or not since.strip():
            raise InvalidInput(f"since must be a commit, a branch or a tag, got {since!r}", "such as HEAD or main")
        try:
            found = await self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}")
        except Failed as error:
            if since == "HEAD":
                return await self._new_files()  # nothing is committed yet: everything is new, or this is no repository
            raise InvalidInput(f"git knows no commit {since!r}", "such as HEAD, main, HEAD~3 or a hash") from error
        commit = found.decode().strip()
        differ = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--relative")
        changed, new = await asyncio.gather(self.run(*differ, "--diff-filter=d", commit, "--", "."), self._new_files())
        return sorted({*self._to_paths(changed), *new})

    async def _new_files(self) -> list[WorkspacePath]:
        return self._to_paths(await self.run("ls-files", "-z", "--others", "--exclude-standard", "--", "."))

    def _to_paths(self, names: bytes) -> list[WorkspacePath]:
        found = []
        for name in names.split(b"\0"):
            path = self._folder / os.fsdecode(name)
            if not name or path.is_symlink() or not path.is_file():
                continue
            try:
                found.append(self._workspace.locate(str(path)))
            except DariError:
                continue  # below a link that leads out
        return found

    def _engine(self) -> Engine:
        found = find_engine("git", self._workspace, self._folder, self._session.environ, origins=("path",))
        if found is None:
            raise Unavailable("git is not installed", "apt-get install git, or name paths instead")
        return found


async def changed_files(session: CodeSession, workspace: Workspace, since: str) -> Sequence[WorkspacePath]:
    return await Git(session, workspace, workspace.base).changed_files(since)
