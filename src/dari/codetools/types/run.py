"""Check types with the checkers that the project asks for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from dari.codetools.engines.catalog import language_of
from dari.codetools.engines.choose import EngineChoice, EngineChooser
from dari.codetools.engines.rewrite import FileError
from dari.codetools.engines.usage import EngineUse, EngineUses, missing_engine
from dari.codetools.lint.diagnostic import Diagnostic, sort_diagnostics
from dari.codetools.session import CodeSession
from dari.codetools.types.checkers import CHECKERS, TypeCheck
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import DariError
from dari.text.sanitize import escape_and_shorten, escape_hidden

TIMEOUT_S = 300.0
MAX_MESSAGE_CHARS = 400


class TypesFound(Struct, frozen=True):
    diagnostics: list[Diagnostic]
    """Of all files that the checkers looked at: a change breaks callers elsewhere, too."""
    errors: list[FileError]
    engines: list[EngineUse]


async def check_types(session: CodeSession, workspace: Workspace, files: Sequence[WorkspacePath]) -> TypesFound:
    chooser = EngineChooser(session, workspace)
    groups = await asyncio.to_thread(_group, chooser, files)
    found: list[Diagnostic] = []
    errors: list[FileError] = []
    uses = EngineUses(session)

    async def one(choice: EngineChoice, some: list[WorkspacePath]) -> None:
        names = [str(file.absolute) for file in some]
        if choice.engine is None:
            errors.append(missing_engine(choice, [workspace.show(file) for file in some]))
            return
        uses.count(choice, len(some))
        diagnostics, error = await _run(session, TypeCheck(choice, names, chooser.config))
        found.extend(shown for one in diagnostics if (shown := _show(workspace, choice, one)) is not None)
        if error:
            errors.append(FileError(workspace.show(some[0]), error))

    async with asyncio.TaskGroup() as group:
        for choice, some in groups:
            group.create_task(one(choice, some))
    return TypesFound(sort_diagnostics(found), errors, await uses.list())


def _group(chooser: EngineChooser, files: Sequence[WorkspacePath]) -> list[tuple[EngineChoice, list[WorkspacePath]]]:
    groups: dict[object, tuple[EngineChoice, list[WorkspacePath]]] = {}
    for file in files:
        language = language_of(file.names[-1])
        for choice in chooser.type_checkers(language, file.absolute.parent) if language else ():
            groups.setdefault(choice.key, (choice, []))[1].append(file)
    return list(groups.values())


async def _run(session: CodeSession, check: TypeCheck) -> tuple[list[Diagnostic], str]:
    checker, name = CHECKERS[check.choice.name], check.choice.name
    assert check.choice.engine is not None
    try:
        run = await session.run(
            check.choice.engine,
            checker.arguments(check),
            check.choice.folder,
            timeout_s=TIMEOUT_S,
            env=checker.env,
        )
        found = checker.read(run.stdout)
    except (DariError, OSError) as error:
        return [], f"{name}: {error}"
    except (msgspec.MsgspecError, ValueError):
        found = []
    if run.end == "timed_out":
        return found, f"{name} took longer than {TIMEOUT_S:g} s"
    if run.end == "output_limit":
        return found, f"{name} found more than fits; the first {len(found)} are shown"
    if run.returncode not in checker.success or (run.returncode and not found):
        said = run.stderr or run.stdout.decode("utf-8", "replace") or f"it ended with code {run.returncode}"
        return found, f"{name}: {escape_and_shorten(' '.join(said.split()), MAX_MESSAGE_CHARS).text}"
    return found, ""


def _show(workspace: Workspace, choice: EngineChoice, one: Diagnostic) -> Diagnostic | None:
    """With the caller's name of the file; None for a file outside of the workspace, such as of a library."""
    try:
        path = workspace.locate(os.path.join(choice.folder, one.path))
    except DariError:
        return None
    return msgspec.structs.replace(one, path=workspace.show(path), message=escape_hidden(one.message))
