"""Lint files: all linters that a project asks for, their fixes, and what remains after those."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from dari.codetools.edits.change import FileChange
from dari.codetools.engines.catalog import language_of
from dari.codetools.engines.choose import EngineChoice, EngineChooser
from dari.codetools.engines.locate import EngineProgram
from dari.codetools.engines.mirror import MirroredFile, open_mirror
from dari.codetools.engines.rewrite import EnginePlace, FileError, rewrite
from dari.codetools.engines.select import FileSelection
from dari.codetools.engines.usage import EngineUse, EngineUses, missing_engine
from dari.codetools.format.run import read_sources
from dari.codetools.lint.diagnostic import Diagnostic, sort_diagnostics
from dari.codetools.lint.linters import LINTERS, Linter, read_eslint_fixes
from dari.codetools.lint.rules import RuleFilter
from dari.codetools.session import CodeSession
from dari.codetools.workspace import MAX_FILE_BYTES, Workspace, WorkspacePath
from dari.errors import DariError
from dari.process.run import ProgramRun
from dari.text.sanitize import escape_and_shorten, escape_hidden

FixLevel = Literal["none", "safe", "unsafe"]
Tell = Callable[[int, int, str], None]
FILES_AT_ONCE = 1000
MAX_PROBED_FILES = 100
"""How many files are repaired on trial to tell whether biome could: its reports do not say."""

_Found = dict[WorkspacePath, list[Diagnostic]]


class LintPlan(Struct, frozen=True):
    diagnostics: list[Diagnostic]
    changes: list[FileChange]
    errors: list[FileError]
    engines: list[EngineUse]
    fixed: int


async def plan_lint(
    session: CodeSession,
    workspace: Workspace,
    selection: FileSelection,
    *,
    fix: FixLevel,
    rules: RuleFilter,
    tell: Tell,
) -> LintPlan:
    """What the project's linters say; with `fix`, what their fixes would change and what remains then."""
    chooser = EngineChooser(session, workspace)
    groups, errors = await asyncio.to_thread(_group, workspace, chooser, selection)
    work = _Work(session, workspace, rules, fix)
    uses = EngineUses(session)
    total, done = sum(len(files) for _, files in groups), 0
    for choice, files in groups:
        if rules.of(choice.name) is None:
            continue
        if choice.engine is None:
            errors.append(missing_engine(choice, [workspace.show(file) for file in files]))
            continue
        uses.count(choice, len(files))
        for at in range(0, len(files), FILES_AT_ONCE):
            tell(done, total, f"{choice.name}: {workspace.show(files[at])}")
            await work.lint(choice, files[at : at + FILES_AT_ONCE])
            done += len(files[at : at + FILES_AT_ONCE])
    await work.check_again()
    tell(total, total, "linted")
    changes = [
        FileChange(path, work.before[path], data)
        for path, data in sorted(work.after.items())
        if work.before[path] != data
    ]
    return LintPlan(work.diagnostics(), changes, errors + work.errors, await uses.list(), work.fixed)


def _group(
    workspace: Workspace, chooser: EngineChooser, selection: FileSelection
) -> tuple[list[tuple[EngineChoice, list[WorkspacePath]]], list[FileError]]:
    """Files by linter: a file may go to several."""
    groups: dict[object, tuple[EngineChoice, list[WorkspacePath]]] = {}
    errors: list[FileError] = []
    for file in selection.files:
        if (size := _size(file)) > MAX_FILE_BYTES:
            errors.append(FileError(workspace.show(file), f"too large: {size} bytes, {MAX_FILE_BYTES} are the most"))
            continue
        language = language_of(file.names[-1])
        choices = () if language is None else chooser.linters(language, file.absolute.parent)
        if not choices and file in selection.named:
            errors.append(FileError(workspace.show(file), "no linter is known, or set up, for files of this name"))
        for choice in choices:
            if language and language.needs_configuration and file not in selection.named and not choice.is_configured:
                continue
            groups.setdefault(choice.key, (choice, []))[1].append(file)
    return list(groups.values()), errors


def _size(file: WorkspacePath) -> int:
    try:
        return os.lstat(file.absolute).st_size
    except OSError:
        return 0  # gone since: the linter says so


class _Work:
    """What was found and repaired so far. `after` has the content of files that a fix changed."""

    def __init__(self, session: CodeSession, workspace: Workspace, rules: RuleFilter, fix: FixLevel) -> None:
        self.before: dict[WorkspacePath, bytes] = {}
        self.after: dict[WorkspacePath, bytes] = {}
        self.errors: list[FileError] = []
        self.fixed = 0
        self._session = session
        self._workspace = workspace
        self._rules = rules
        self._fix = fix
        self._runner = LintRunner(session, workspace, rules)
        self._found: list[tuple[EngineChoice, _Found]] = []
        self._final: set[tuple[int, WorkspacePath]] = set()

    async def lint(self, choice: EngineChoice, files: Sequence[WorkspacePath]) -> None:
        checked = await self._runner.check(choice, files)
        if checked.error:
            self.errors.append(FileError(self._workspace.show(files[0]), checked.error))
        found = checked.found
        number = len(self._found)
        self._found.append((choice, found))
        if choice.name == "eslint" and self._fix != "none":
            await self._fix_with_eslint(choice, number, found)
        elif LINTERS[choice.name].fixer is not None:
            if self._fix != "none":
                await self._fix_with(choice, found)
            elif choice.name == "biome":
                await self._mark_fixable(choice, found)

    def diagnostics(self) -> list[Diagnostic]:
        return sort_diagnostics(one for _, found in self._found for some in found.values() for one in some)

    async def check_again(self) -> None:
        """What is left in the files that were repaired, and where it is now."""
        for number, (choice, found) in enumerate(self._found):
            changed = [path for path in found if path in self.after and (number, path) not in self._final]
            if not changed:
                continue
            sources = [MirroredFile(path, self.after[path]) for path in changed]
            checked = await self._runner.check_content(choice, sources)
            if checked.error:  # what it found before stays: nothing shows that it is gone
                self.errors.append(FileError(self._workspace.show(changed[0]), checked.error))
                continue
            again = checked.found
            self.fixed += sum(max(0, len(found[path]) - len(again.get(path, []))) for path in changed)
            for path in changed:
                found[path] = again.get(path, [])

    async def _fix_with(self, choice: EngineChoice, found: _Found) -> None:
        worth = [path for path, some in found.items() if choice.name == "biome" or any(map(self._can_fix, some))]
        for path, data in (await self._rewrite(choice, worth, self._fix)).items():
            self.after[path] = data

    async def _fix_with_eslint(self, choice: EngineChoice, number: int, found: _Found) -> None:
        """It looks at files where they are: what another linter has just repaired is left for the next call."""
        worth = [path for path, some in found.items() if path not in self.after and any(one.fixable for one in some)]
        if not worth:
            return
        if (rules := self._rules.of(choice.name)) is None or rules.is_narrow:
            count = f" ({len(worth)} files)" if len(worth) > 1 else ""
            message = f"eslint cannot fix single rules, so it fixed nothing{count}: leave rules out to fix all"
            self.errors.append(FileError(self._workspace.show(worth[0]), message))
            return
        sources, _ = await asyncio.to_thread(read_sources, self._workspace, worth)
        checked = await self._runner.check(choice, [source.path for source in sources], fix_dry_run=True)
        if checked.error:
            self.errors.append(FileError(self._workspace.show(worth[0]), checked.error))
            return
        for source in sources:
            self._final.add((number, source.path))
            left = checked.found.get(source.path, [])
            self.fixed += max(0, len(found[source.path]) - len(left))
            found[source.path] = left
            if source.path in checked.fixes:
                self.before[source.path] = source.data
                self.after[source.path] = checked.fixes[source.path]

    async def _mark_fixable(self, choice: EngineChoice, found: _Found) -> None:
        worth = list(found)[:MAX_PROBED_FILES]
        changed = await self._rewrite(choice, worth, "safe")
        if not changed:
            return
        sources = [MirroredFile(path, data) for path, data in changed.items()]
        checked = await self._runner.check_content(choice, sources)
        for path in changed if not checked.error else ():
            left = Counter((one.rule, one.message) for one in checked.found.get(path, []))
            marked = []
            for one in found[path]:
                stays = left[one.rule, one.message] > 0
                left[one.rule, one.message] -= 1
                marked.append(one if stays else msgspec.structs.replace(one, fixable=True))
            found[path] = marked

    async def _rewrite(
        self, choice: EngineChoice, paths: Sequence[WorkspacePath], level: FixLevel
    ) -> dict[WorkspacePath, bytes]:
        fixer, rules = LINTERS[choice.name].fixer, self._rules.of(choice.name)
        if fixer is None or rules is None or choice.engine is None or not paths:
            return {}
        sources, _ = await asyncio.to_thread(read_sources, self._workspace, [p for p in paths if p not in self.after])
        for source in sources:
            self.before.setdefault(source.path, source.data)
        sources += [MirroredFile(path, self.after[path]) for path in paths if path in self.after]
        done = await rewrite(self._session, choice.engine, fixer(rules, level), sources, EnginePlace(choice.folder))
        return {one.source.path: one.data for one in done if one.data is not None and one.data != one.source.data}

    def _can_fix(self, one: Diagnostic) -> bool:
        return one.fixable or (self._fix == "unsafe" and one.unsafe_fix)


TIMEOUT_S = 300.0
MAX_MESSAGE_CHARS = 400
_BAR = "\u2501"  # of biome's headings
_JOINED = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh")


class Checked(Struct, frozen=True):
    found: dict[WorkspacePath, list[Diagnostic]]
    error: str = ""
    fixes: dict[WorkspacePath, bytes] = {}
    """Of an engine that repairs while it looks (eslint)."""


class LintRunner:
    """Linters of one call, with the names that its caller reads."""

    def __init__(self, session: CodeSession, workspace: Workspace, rules: RuleFilter) -> None:
        self._session = session
        self._workspace = workspace
        self._rules = rules

    async def check(
        self, choice: EngineChoice, files: Sequence[WorkspacePath], *, fix_dry_run: bool = False
    ) -> Checked:
        """The files as they are on disk. `fix_dry_run`: eslint's option, which writes nothing."""
        names = {str(file.absolute): file for file in files}
        return await self._run(choice, names, choice.folder, ["--fix-dry-run"] if fix_dry_run else [])

    async def check_content(self, choice: EngineChoice, sources: Sequence[MirroredFile]) -> Checked:
        """The files as if they had this content."""
        async with open_mirror(sources) as mirror:
            names = {str(mirror.path_of(source.path.absolute)): source.path for source in sources}
            checked = await self._run(choice, names, mirror.path_of(choice.folder), [])
            return msgspec.structs.replace(checked, error=mirror.hide_paths(checked.error))

    async def _run(
        self, choice: EngineChoice, names: Mapping[str, WorkspacePath], folder: Path, options: Sequence[str]
    ) -> Checked:
        linter, rules = LINTERS[choice.name], self._rules.of(choice.name)
        if rules is None or choice.engine is None:
            return Checked({})
        engine = _joined(choice.engine) if linter.reads_stderr else choice.engine
        arguments = [*options, *linter.arguments(rules, list(names), folder)]
        try:
            run = await self._session.run(
                engine, arguments, folder, timeout_s=TIMEOUT_S, env=linter.env, is_single=engine.is_single
            )
        except DariError as error:
            return Checked({}, f"{choice.name}: {error.message}")
        return self._read(choice, linter, rules, run, names, folder)

    def _read(
        self,
        choice: EngineChoice,
        linter: Linter,
        rules: RuleFilter,
        run: ProgramRun,
        names: Mapping[str, WorkspacePath],
        folder: Path,
    ) -> Checked:
        if run.end == "timed_out":
            return Checked({}, f"{choice.name} took longer than {TIMEOUT_S:g} s: name fewer paths")
        failed = ""
        if run.end == "exited" and run.returncode not in linter.success:
            failed = run.stderr or f"it ended with code {run.returncode}"
        try:
            all_found = linter.read(run.stdout, folder)
            fixes = read_eslint_fixes(run.stdout) if choice.name == "eslint" else {}
        except (msgspec.MsgspecError, ValueError) as error:
            failed, all_found, fixes = failed or run.stderr or str(error), [], {}
        found: dict[WorkspacePath, list[Diagnostic]] = {}
        for one in all_found:
            path = names.get(one.path)
            if path is not None and (linter.filters or rules.keeps(one.rule)):
                shown = msgspec.structs.replace(
                    one, path=self._workspace.show(path), message=escape_hidden(one.message)
                )
                found.setdefault(path, []).append(shown)
        if run.end == "output_limit":
            failed = f"it found more than fits ({len(all_found)} are shown): name fewer paths, or rules"
        words = escape_and_shorten(" ".join(failed.replace(_BAR, "").split()), MAX_MESSAGE_CHARS).text
        message = f"{choice.name}: {words}" if failed else ""
        return Checked(found, message, {names[name]: data for name, data in fixes.items() if name in names})


def _joined(engine: EngineProgram) -> EngineProgram:
    return msgspec.structs.replace(engine, command=(*_JOINED, *engine.command), is_single=False)
