"""Format files: choose an engine for each, run it, and collect what would change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from dari.codetools.edits.change import FileChange
from dari.codetools.engines.catalog import language_of
from dari.codetools.engines.choose import EngineChoice, EngineChooser
from dari.codetools.engines.mirror import MirroredFile
from dari.codetools.engines.rewrite import EnginePlace, FileError, rewrite
from dari.codetools.engines.select import FileSelection
from dari.codetools.engines.usage import EngineUse, EngineUses, join_errors, missing_engine
from dari.codetools.format.formatters import FormatRequest, LineRange, make_rewriter
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import DariError, InvalidInput

Style = Literal["project", "default"]
Tell = Callable[[int, int, str], None]
"""Done, total, what."""
FILES_AT_ONCE = 400
"""Per process of an engine: a tree of any size is held in memory in parts of this many files."""

_Group = tuple[tuple[EngineChoice, ...], list[WorkspacePath]]


class FormatPlan(Struct, frozen=True):
    changes: list[FileChange]
    unchanged: int
    errors: list[FileError]
    engines: list[EngineUse]


async def plan_format(
    session: CodeSession,
    workspace: Workspace,
    selection: FileSelection,
    *,
    style: Style,
    line_range: LineRange | None,
    tell: Tell,
) -> FormatPlan:
    """What the project's formatters would change. A file or an engine that fails is an entry, the rest is done."""
    chooser = EngineChooser(session, workspace, is_project=style == "project")
    groups, errors = await asyncio.to_thread(_group, workspace, chooser, selection)
    total = sum(len(files) for _, files in groups)
    if line_range is not None and total != 1:
        raise InvalidInput(f"range needs exactly one file, got {total}", "name one file in paths, or leave range out")
    changes: list[FileChange] = []
    uses = EngineUses(session)
    done = unchanged = 0
    for steps, files in groups:
        missing = [step for step in steps if step.engine is None]
        if missing:
            errors += [missing_engine(step, [workspace.show(file) for file in files]) for step in missing]
            done += len(files)
            continue
        for step in steps:
            uses.count(step, len(files))
        for at in range(0, len(files), FILES_AT_ONCE):
            part = files[at : at + FILES_AT_ONCE]
            tell(done, total, f"{steps[-1].name}: {workspace.show(part[0])}")
            changed, failed = await _format(session, workspace, chooser, steps, part, line_range)
            changes += changed
            errors += failed
            unchanged += len(part) - len(changed) - len({error.path for error in failed})
            done += len(part)
    tell(total, total, "formatted")
    changes.sort(key=lambda change: change.path)
    return FormatPlan(changes, unchanged, join_errors(errors), await uses.list())


def _group(
    workspace: Workspace, chooser: EngineChooser, selection: FileSelection
) -> tuple[list[_Group], list[FileError]]:
    """Files by the engines that they go through, in order."""
    groups: dict[tuple[object, ...], _Group] = {}
    errors: list[FileError] = []
    for file in selection.files:
        language = language_of(file.names[-1])
        if language is None or not language.format:
            if file in selection.named:
                errors.append(FileError(workspace.show(file), "no formatter is known for files of this name"))
            continue
        steps = chooser.formatters(language, file.absolute.parent)
        is_asked_for = file in selection.named or any(step.is_configured for step in steps)
        if language.needs_configuration and not is_asked_for and (chooser.is_project or steps[-1].engine is None):
            continue
        groups.setdefault(tuple(step.key for step in steps), (steps, []))[1].append(file)
    return list(groups.values()), errors


async def _format(
    session: CodeSession,
    workspace: Workspace,
    chooser: EngineChooser,
    steps: Iterable[EngineChoice],
    files: Sequence[WorkspacePath],
    line_range: LineRange | None,
) -> tuple[list[FileChange], list[FileError]]:
    sources, errors = await asyncio.to_thread(read_sources, workspace, files)
    before = {source.path: source.data for source in sources}
    for step in steps:
        assert step.engine is not None
        request = FormatRequest(step.folder, chooser.config, chooser.is_project, line_range)
        how = make_rewriter(step.name, request)
        place = EnginePlace(step.folder, chooser.is_project)
        results = await rewrite(session, step.engine, how, sources, place) if sources else []
        errors += [
            FileError(workspace.show(one.source.path), one.message, one.line) for one in results if one.data is None
        ]
        sources = [MirroredFile(one.source.path, one.data) for one in results if one.data is not None]
    changes = [
        FileChange(source.path, before[source.path], source.data)
        for source in sources
        if source.data != before[source.path]
    ]
    return changes, errors


def read_sources(workspace: Workspace, files: Iterable[WorkspacePath]) -> tuple[list[MirroredFile], list[FileError]]:
    """The content of text files; an entry for each that cannot be read or is not UTF-8."""
    sources, errors = [], []
    for file in files:
        try:
            data = workspace.read(file)
            data.decode()
        except DariError as error:
            errors.append(FileError(workspace.show(file), error.message))
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            errors.append(FileError(workspace.show(file), f"not UTF-8: byte 0x{data[error.start]:02x}", line))
        except OSError as error:
            errors.append(FileError(workspace.show(file), error.strerror or str(error)))
        else:
            sources.append(MirroredFile(file, data))
    return sources, errors
