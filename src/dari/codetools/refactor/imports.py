"""Sorting imports: ruff for Python, biome for JavaScript and TypeScript, fed through stdin so that neither writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dari.codetools.edits.change import FileChange
from dari.codetools.engines.locate import find_engine
from dari.codetools.engines.select import own_files
from dari.codetools.engines.versions import version_of
from dari.codetools.refactor.sources import check_parses, language_of, to_source
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Failed, InvalidInput, Unavailable

MAX_FILES = 1000
_AT_ONCE = 4
_ENGINES = {
    "ruff": (frozenset({"python"}), "pip install ruff"),
    "biome": (frozenset({"javascript", "typescript", "tsx"}), "npm install --save-dev --save-exact @biomejs/biome"),
}


async def organize_imports(
    session: CodeSession,
    workspace: Workspace,
    paths: Sequence[str],
    *,
    removes_unused: bool,
    include_ignored: bool,
    timeout_s: float,
) -> tuple[list[FileChange], list[str], str]:
    """The changes, notes, and the engines. Raises Unavailable where an engine is missing for all files."""
    languages = frozenset().union(*(known for known, _ in _ENGINES.values()))

    def choose() -> list[WorkspacePath]:
        return list(
            own_files(
                workspace, paths, wants=lambda name: language_of(name) in languages, include_ignored=include_ignored
            )
        )

    chosen = await asyncio.to_thread(choose)
    if len(chosen) > MAX_FILES:
        raise InvalidInput(f"{len(chosen)} files are more than {MAX_FILES}", "name fewer with paths")
    changes: list[FileChange] = []
    notes: list[str] = []
    gate = asyncio.Semaphore(_AT_ONCE)

    async def sort(path: WorkspacePath, name: str) -> None:
        async with gate:
            change = await _sort(session, workspace, path, name, removes_unused, timeout_s)
        if isinstance(change, str):
            notes.append(change)
        elif change.before != change.after:
            changes.append(change)

    used: list[str] = []
    for name, (known, install) in _ENGINES.items():
        wanted = [path for path in chosen if language_of(path.relative) in known]
        if not wanted:
            continue
        engine = find_engine(name, workspace, wanted[0].absolute.parent, session.environ)
        if engine is None:
            if len(wanted) == len(chosen):
                raise Unavailable(f"{name} is not installed", f"install it: {install}")
            notes.append(f"{len(wanted)} files were left out: {name} is not installed ({install})")
            continue
        used.append(f"{name} {await version_of(session, engine, workspace.base)}".rstrip())
        async with asyncio.TaskGroup() as group:
            for path in wanted:
                group.create_task(sort(path, name))
    return sorted(changes, key=lambda one: one.path), sorted(notes)[:20], ", ".join(used)


async def _sort(
    session: CodeSession, workspace: Workspace, path: WorkspacePath, name: str, removes_unused: bool, timeout_s: float
) -> FileChange | str:
    """The change, or a note why there is none."""
    data = await asyncio.to_thread(workspace.read, path)
    engine = find_engine(name, workspace, path.absolute.parent, session.environ)
    assert engine is not None
    if name == "ruff":
        rules = "I,F401" if removes_unused else "I"
        arguments = [
            "check",
            "--fix-only",
            "--quiet",
            "--no-cache",
            f"--select={rules}",
            f"--stdin-filename={path.absolute}",
            "-",
        ]
    else:
        arguments = ["check", "--write", "--formatter-enabled=false", "--linter-enabled=false", "--assist-enabled=true"]
        arguments.append(f"--stdin-file-path={path.absolute}")
    run = await session.run(
        engine, arguments, path.absolute.parent, stdin=data or b"\n", timeout_s=timeout_s, is_single=name == "ruff"
    )
    shown = workspace.show(path)
    if run.end != "exited":
        raise Failed(f"{name} did not end well on {shown}: {run.end}", "name fewer files with paths")
    if run.returncode != 0 or (not run.stdout and data.strip()):
        return f"{shown}: {name} says: {' '.join(run.stderr.split())[:200] or 'nothing'}"
    source = to_source(path, data)
    after = run.stdout if data else data
    await asyncio.to_thread(check_parses, source, to_source(path, after).text, shown)
    return FileChange(path, data, after)
