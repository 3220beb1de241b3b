"""One linter on some files: where they are, or with other content in a mirror of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.codetools.engines.choose import EngineChoice
from dari.codetools.engines.locate import Engine
from dari.codetools.engines.mirror import MirroredFile, open_mirror
from dari.codetools.lint.diagnostic import Diagnostic
from dari.codetools.lint.linters import LINTERS, Linter, read_eslint_fixes
from dari.codetools.lint.rules import RuleFilter
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import DariError
from dari.process.run import ProgramRun
from dari.text.sanitize import escape_and_shorten, escape_hidden

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
            return await self._run(choice, names, mirror.path_of(choice.folder), [])

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


def _joined(engine: Engine) -> Engine:
    return msgspec.structs.replace(engine, command=(*_JOINED, *engine.command), is_single=False)
