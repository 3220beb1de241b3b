"""How each type checker is called and read. What it remembers between runs is in our folder, not in the project."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.codetools.engines.catalog import language_of
from dari.codetools.engines.choose import EngineChoice, EngineChooser
from dari.codetools.engines.configured import ProjectConfig
from dari.codetools.engines.rewrite import FileError
from dari.codetools.engines.usage import EngineUse, EngineUses, missing_engine
from dari.codetools.format.formatters import NO_DOWNLOAD
from dari.codetools.lint.diagnostic import SYNTAX, Diagnostic, Severity, sort_diagnostics
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import DariError
from dari.paths import home, private_dir, read_regular
from dari.struct_types import ready
from dari.text.sanitize import escape_and_shorten, escape_hidden

_MAX_CONFIG_BYTES = 1 << 20


class TypeCheck(Struct, frozen=True):
    """One run: a checker in the folder of its configuration, for these files of it."""

    choice: EngineChoice
    files: Sequence[str]
    config: ProjectConfig

    @property
    def cache(self) -> Path:
        key = hashlib.sha256(str(self.choice.folder).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return private_dir(home() / "codetools" / "cache" / f"{self.choice.name.replace(' ', '-')}-{key}")


class TypeChecker(Struct, frozen=True):
    arguments: Callable[[TypeCheck], Sequence[str]]
    read: Callable[[bytes], list[Diagnostic]]
    """Paths are relative to the folder, or absolute."""
    success: frozenset[int] = frozenset({0, 1, 2})
    env: Mapping[str, str] = {}


def _mypy(check: TypeCheck) -> list[str]:
    fixed = ["--no-error-summary", "--no-color-output", "--show-column-numbers", "--show-error-codes"]
    fixed += ["--hide-error-context", "--no-pretty", f"--cache-dir={check.cache}"]
    folder = check.choice.folder
    fixed += ["--junit-xml=", *(f"--{name}={check.cache / 'reports'}" for name in _reports_of(folder))]
    python = folder / ".venv" / "bin" / "python"
    if check.choice.engine is not None and check.choice.engine.origin != "project" and python.exists():
        fixed.append(f"--python-executable={python}")  # the packages that the project's code imports
    has_files = check.config.has_section(folder / "pyproject.toml", "tool.mypy.files")
    # A change of a signature breaks callers, so all files of the project are checked where it says which those are.
    return fixed if has_files else [*fixed, "--", *check.files]


_MYPY_REPORT = re.compile(
    r"^[ \t]*((?:any_exprs|cobertura_xml|html|linecount|linecoverage|lineprecision|txt|xml|xslt_html|xslt_txt)_report)"
    r"[ \t]*=",
    re.MULTILINE,
)


def _reports_of(folder: Path) -> list[str]:
    """Options for the reports that the project's settings ask for: looking writes nothing into the project."""
    found: set[str] = set()
    for name in ("mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"):
        try:
            found.update(
                _MYPY_REPORT.findall(read_regular(folder / name, _MAX_CONFIG_BYTES).decode("utf-8", "replace"))
            )
        except OSError:
            continue
    return sorted(name.replace("_", "-") for name in found)


_MYPY_LINE = re.compile(
    r"^(?P<path>[^:\n]+):(?P<line>\d+)(?::(?P<col>\d+))?(?::\d+:\d+)?: (?P<level>error|warning): "
    r"(?P<message>.*?)(?:  \[(?P<rule>[\w-]+)\])?$"
)


def read_mypy(output: bytes) -> list[Diagnostic]:
    found = []
    for row in output.decode("utf-8", "replace").splitlines():
        if line := _MYPY_LINE.match(row):
            rule = line["rule"] or "mypy"
            level: Severity = "warning" if line["level"] == "warning" else "error"
            col = int(line["col"] or 1)
            found.append(
                Diagnostic(
                    line["path"], int(line["line"]), col, SYNTAX if rule == "syntax" else rule, level, line["message"]
                )
            )
    return found


class _Position(Struct, frozen=True):
    line: int = 0
    character: int = 0


class _Range(Struct, frozen=True):
    start: _Position = _Position()


class _PyrightDiagnostic(Struct, frozen=True):
    file: str
    message: str
    severity: str = "error"
    rule: str = ""
    range: _Range = _Range()


class _PyrightReport(Struct, frozen=True, rename="camel"):
    general_diagnostics: list[_PyrightDiagnostic] = []


def read_pyright(output: bytes) -> list[Diagnostic]:
    found = []
    for one in msgspec.json.decode(output, type=ready(_PyrightReport)).general_diagnostics:
        level: Severity = "error" if one.severity == "error" else "warning" if one.severity == "warning" else "info"
        at = one.range.start
        rule = one.rule or SYNTAX
        found.append(Diagnostic(one.file, at.line + 1, at.character + 1, rule, level, " ".join(one.message.split())))
    return found


_TSC_LINE = re.compile(
    r"^(?P<path>.+?)\((?P<line>\d+),(?P<col>\d+)\): (?P<level>error|warning) (?P<rule>TS\d+): (?P<message>.*)$"
)


def read_tsc(output: bytes) -> list[Diagnostic]:
    found = []
    for row in output.decode("utf-8", "replace").splitlines():
        if line := _TSC_LINE.match(row):
            # TS1000 to TS1999 are of the parser.
            rule = SYNTAX if len(line["rule"]) == 6 and line["rule"].startswith("TS1") else line["rule"]
            level: Severity = "warning" if line["level"] == "warning" else "error"
            found.append(Diagnostic(line["path"], int(line["line"]), int(line["col"]), rule, level, line["message"]))
    return found


def _tsc(check: TypeCheck) -> list[str]:
    # `--incremental` also where the project has it off: a project that has it on may not turn it off.
    memory = check.cache / "tsconfig.tsbuildinfo"
    project = check.choice.folder / "tsconfig.json"
    quiet = ["--noEmit", "--pretty", "false", "--generateCpuProfile", "null", "--generateTrace", "null"]
    return [*quiet, "--incremental", "--tsBuildInfoFile", str(memory), "-p", str(project)]


class _Span(Struct, frozen=True):
    file_name: str
    line_start: int
    column_start: int
    is_primary: bool = False


class _Code(Struct, frozen=True):
    code: str = ""


class _RustMessage(Struct, frozen=True):
    message: str
    level: str = "error"
    spans: list[_Span] = []
    code: _Code | None = None


class _CargoLine(Struct, frozen=True):
    reason: str
    message: _RustMessage | None = None


def read_cargo(output: bytes) -> list[Diagnostic]:
    found = []
    for row in output.splitlines():
        if not row.startswith(b'{"reason":"compiler-message"'):
            continue
        message = msgspec.json.decode(row, type=ready(_CargoLine)).message
        span = next((span for span in message.spans if span.is_primary), None) if message else None
        if message and span:
            level: Severity = "error" if message.level.startswith("error") else "warning"
            rule = message.code.code if message.code else SYNTAX if level == "error" else "rustc"
            found.append(Diagnostic(span.file_name, span.line_start, span.column_start, rule, level, message.message))
    return found


CHECKERS = {
    "mypy": TypeChecker(_mypy, read_mypy),
    "pyright": TypeChecker(lambda check: ["--outputjson"], read_pyright),
    "tsc": TypeChecker(_tsc, read_tsc),
    # Neither the network nor Cargo.lock is touched; build scripts are code of the project and run.
    "cargo check": TypeChecker(
        lambda check: [
            "check",
            "--message-format=json",
            "--quiet",
            "--offline",
            "--locked",
            "--all-targets",
            f"--target-dir={check.cache}",
        ],
        read_cargo,
        frozenset({0, 101}),
        NO_DOWNLOAD,
    ),
}


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
