"""Which files hold a word: by ripgrep where it is installed, otherwise by reading them."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence

from dari.codetools.engines.locate import Engine, find_engine
from dari.codetools.engines.versions import version_of
from dari.codetools.session import CodeSession
from dari.codetools.symbols.source import MAX_SOURCE_BYTES
from dari.codetools.workspace import VERSION_CONTROL, Workspace, WorkspacePath
from dari.errors import DariError, InvalidInput
from dari.files.secrets import is_secret_folder, is_secret_name
from dari.syntax.languages import has_language

_TIMEOUT_S = 60.0
_CHUNK = 1_000
_WORD = re.compile(r"\w+")
_OPTIONS = (
    *("--no-config", "--no-messages", "--files-with-matches", "--null", "--fixed-strings", "--case-sensitive"),
    *("--hidden", "--no-require-git", "--no-ignore-dot", "--no-ignore-global", "--color=never"),
    *("--max-filesize", str(MAX_SOURCE_BYTES)),
    *(f"--glob=!{name}" for name in sorted(VERSION_CONTROL)),
)


async def files_with(
    session: CodeSession, workspace: Workspace, patterns: Sequence[str], word: str
) -> tuple[list[WorkspacePath], str]:
    """Files in a language that has a name, in order, and the engine that looked, with its version."""
    # A program of the project is code of the project; this only reads.
    engine = find_engine("rg", workspace, workspace.base, session.environ, origins=("path", "dari"))
    if engine is None:
        return await asyncio.to_thread(_read_all, workspace, patterns, word), "python"
    folders, files = await asyncio.to_thread(_split, workspace, patterns)
    found: set[WorkspacePath] = set()
    for places in (folders, *(files[at : at + _CHUNK] for at in range(0, len(files), _CHUNK))):
        if places:
            found.update(await _ripgrep(session, workspace, engine, places, word))
    return sorted(found), f"ripgrep {await version_of(session, engine, workspace.base)}".rstrip()


def _split(workspace: Workspace, patterns: Sequence[str]) -> tuple[list[WorkspacePath], list[WorkspacePath]]:
    """Folders for ripgrep to walk, and single files: those that were named, and those of globs."""
    folders: list[WorkspacePath] = []
    files: list[WorkspacePath] = []
    for pattern in patterns or (".",):
        place = workspace.locate(pattern)
        if place.absolute.is_dir():
            folders.append(place)
        else:
            files += workspace.files([pattern])
    return folders, files


async def _ripgrep(
    session: CodeSession, workspace: Workspace, engine: Engine, places: Sequence[WorkspacePath], word: str
) -> list[WorkspacePath]:
    whole = ("--word-regexp",) if _WORD.fullmatch(word) else ()
    arguments = (*_OPTIONS, *whole, "--", word, *(str(one.absolute) for one in places))
    run = await session.run(
        engine, arguments, workspace.base, timeout_s=_TIMEOUT_S, max_output_bytes=64 << 20, is_single=True
    )
    if run.returncode not in (0, 1) and not run.stdout:
        raise InvalidInput(f"ripgrep failed: {run.stderr.strip()[:300]}", "narrow paths")
    named = set(places)
    found = []
    for name in run.stdout.split(b"\0"):
        if not name:
            continue
        path = _inside(workspace, places, os.fsdecode(name))
        if path is not None and (path in named or _is_wanted(path)):
            found.append(path)
    return found


def _inside(workspace: Workspace, places: Sequence[WorkspacePath], name: str) -> WorkspacePath | None:
    """ripgrep follows no links, so a name below a place is a file there."""
    for place in places:
        root = str(place.root)
        if name.startswith(f"{root}/"):
            return WorkspacePath(place.root, name[len(root) + 1 :])
    return None


def _is_wanted(path: WorkspacePath) -> bool:
    *folders, name = path.names
    if any(one in VERSION_CONTROL or is_secret_folder(one) for one in folders) or is_secret_name(name):
        return False
    return has_language(name)


def _read_all(workspace: Workspace, patterns: Sequence[str], word: str) -> list[WorkspacePath]:
    wanted = word.encode()
    found = []
    for path in workspace.files(patterns, wants=has_language):
        try:
            if wanted in workspace.read(path, MAX_SOURCE_BYTES):
                found.append(path)
        except (DariError, OSError):
            continue  # too large, removed since, or not ours to read
    return sorted(found)
