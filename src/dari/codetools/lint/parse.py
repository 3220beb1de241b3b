"""The output of each linter, as diagnostics with absolute paths."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from dari.codetools.lint.diagnostic import SYNTAX, Diagnostic, Severity
from dari.struct_types import ready

_MAX_MESSAGE_CHARS = 400


def _diagnostic(
    path: str,
    line: int,
    col: int,
    rule: str,
    severity: Severity,
    message: str,
    end: tuple[int, int] = (0, 0),
    *,
    fixable: bool = False,
    unsafe_fix: bool = False,
) -> Diagnostic:
    """An end on the same place as the start says nothing."""
    end_line, end_col = end if end != (line, col) and end[0] else (0, 0)
    text = " ".join(message.split())[:_MAX_MESSAGE_CHARS]
    return Diagnostic(
        path,
        max(line, 1),
        max(col, 1),
        rule,
        severity,
        text,
        end_line if end_line != line else 0,
        end_col,
        fixable,
        unsafe_fix,
    )


class _Spot(Struct, frozen=True):
    row: int = 1
    column: int = 1


class _RuffFix(Struct, frozen=True):
    applicability: str = ""


class _RuffDiagnostic(Struct, frozen=True):
    filename: str
    message: str
    code: str | None = None
    location: _Spot | None = None
    end_location: _Spot | None = None
    fix: _RuffFix | None = None


_RUFF_SYNTAX = (None, "invalid-syntax", "E999", "E902", "io-error")


def read_ruff(output: bytes, folder: Path) -> list[Diagnostic]:
    """A line each; the last is half where the output was cut off."""
    found = []
    for row in output.split(b"\n")[:-1]:
        one = msgspec.json.decode(row, type=ready(_RuffDiagnostic))
        start, end = one.location or _Spot(), one.end_location or _Spot(0, 0)
        how = one.fix.applicability.lower() if one.fix else ""
        rule = SYNTAX if one.code in _RUFF_SYNTAX else str(one.code)
        found.append(
            _diagnostic(
                one.filename,
                start.row,
                start.column,
                rule,
                "error",
                one.message,
                (end.row, end.column),
                fixable=how in ("safe", "automatic", "always"),
                unsafe_fix=how in ("unsafe", "suggested", "sometimes"),
            )
        )
    return found


_SEPARATOR = "\x1f"
FLAKE8_FORMAT = _SEPARATOR.join(("%(path)s", "%(row)d", "%(col)d", "%(code)s", "%(text)s"))


def read_flake8(output: bytes, folder: Path) -> list[Diagnostic]:
    found = []
    for row in output.decode("utf-8", "replace").splitlines():
        parts = row.split(_SEPARATOR, 4)
        if len(parts) == 5 and parts[1].isdigit() and parts[2].isdigit():
            path, line, col, code, text = parts
            rule = SYNTAX if code in ("E999", "E902") else code
            severity: Severity = "error" if rule == SYNTAX or code.startswith("F") else "warning"
            found.append(_diagnostic(os.path.join(folder, path), int(line), int(col), rule, severity, text))
    return found


class _BiomePosition(Struct, frozen=True):
    line: int = 0
    column: int = 0


class _BiomeLocation(Struct, frozen=True):
    path: str | dict[str, Any] | None = None
    start: _BiomePosition = _BiomePosition()
    end: _BiomePosition = _BiomePosition()
    span: list[int] | None = None
    source_code: str | None = field(default=None, name="sourceCode")


class _BiomeDiagnostic(Struct, frozen=True):
    category: str | None = None
    severity: str = "error"
    message: str | list[Any] = ""
    description: str = ""
    location: _BiomeLocation = _BiomeLocation()


class _BiomeReport(Struct, frozen=True):
    diagnostics: list[_BiomeDiagnostic] = []


def read_biome(output: bytes, folder: Path) -> list[Diagnostic]:
    found = []
    for one in msgspec.json.decode(output, type=ready(_BiomeReport)).diagnostics:
        at = one.location
        name = at.path.get("file") if isinstance(at.path, dict) else at.path
        if not name:
            continue
        start, end = at.start, at.end
        if at.span and at.source_code is not None and not start.line:  # before 2.4
            start, end = (_to_position(at.source_code, offset) for offset in at.span)
        category = one.category or ""
        rule = SYNTAX if category == "parse" else category.removeprefix("lint/") or "biome"
        severity: Severity = "error" if one.severity in ("error", "fatal") else "warning"
        if one.severity in ("information", "info", "hint"):
            severity = "info"
        message = one.message if isinstance(one.message, str) else one.description
        found.append(
            _diagnostic(
                os.path.join(folder, name), start.line, start.column, rule, severity, message, (end.line, end.column)
            )
        )
    return found


def _to_position(source: str, offset: int) -> _BiomePosition:
    head = source.encode()[:offset].decode("utf-8", "replace")
    return _BiomePosition(head.count("\n") + 1, len(head) - head.rfind("\n"))


class _EslintMessage(Struct, frozen=True, rename="camel"):
    message: str
    severity: int = 2
    rule_id: str | None = None
    fatal: bool = False
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    fix: Any = None


class EslintFile(Struct, frozen=True, rename="camel"):
    file_path: str
    messages: list[_EslintMessage] = []
    output: str | None = None


def read_eslint(output: bytes, folder: Path) -> list[Diagnostic]:
    found = []
    for file in msgspec.json.decode(output, type=ready(list[EslintFile])):
        for one in file.messages:
            if one.line is None and not one.fatal:
                continue  # "File ignored": the project says so
            found.append(
                _diagnostic(
                    file.file_path,
                    one.line or 1,
                    one.column or 1,
                    SYNTAX if one.fatal else one.rule_id or "eslint",
                    "error" if one.severity == 2 else "warning",
                    one.message.removeprefix("Parsing error: ") if one.fatal else one.message,
                    (one.end_line or 0, one.end_column or 0),
                    fixable=one.fix is not None,
                )
            )
    return found


class _ShellcheckComment(Struct, frozen=True, rename="camel"):
    file: str
    line: int
    column: int
    level: str
    code: int
    message: str
    end_line: int = 0
    end_column: int = 0


class _ShellcheckReport(Struct, frozen=True):
    comments: list[_ShellcheckComment] = []


def read_shellcheck(output: bytes, folder: Path) -> list[Diagnostic]:
    levels: dict[str, Severity] = {"error": "error", "warning": "warning"}
    return [
        _diagnostic(
            os.path.join(folder, one.file),
            one.line,
            one.column,
            # 1000 to 1999 are what its parser does not understand or finds suspicious.
            SYNTAX if one.level == "error" and one.code < 2000 else f"SC{one.code}",
            levels.get(one.level, "info"),
            one.message,
            (one.end_line, one.end_column),
        )
        for one in msgspec.json.decode(output, type=ready(_ShellcheckReport)).comments
    ]


class _VetFinding(Struct, frozen=True):
    posn: str
    message: str


_VET_LINE = re.compile(r"^(?:vet: )?(?P<path>[^:\n]+\.go):(?P<line>\d+):(?P<col>\d+): (?P<message>.+)$")


def read_go_vet(output: bytes, folder: Path) -> list[Diagnostic]:
    """Objects of JSON between lines of text: `# package`, and what does not compile."""
    found = []
    rest = []
    for row in output.decode("utf-8", "replace").splitlines():
        line = _VET_LINE.match(row)
        if line:
            path = os.path.join(folder, line["path"])
            found.append(_diagnostic(path, int(line["line"]), int(line["col"]), "compile", "error", line["message"]))
        elif not row.startswith("#"):
            rest.append(row)
    for block in re.split(r"(?<=^\})\n", "\n".join(rest), flags=re.MULTILINE):
        if block.strip().startswith("{"):
            report = msgspec.json.decode(block, type=dict[str, dict[str, Any]])
            for analyzers in report.values():
                found += [
                    _vet_finding(rule, msgspec.convert(finding, ready(_VetFinding)))
                    for rule, findings in analyzers.items()
                    if isinstance(findings, list)
                    for finding in findings
                ]
    return found


def _vet_finding(rule: str, finding: _VetFinding) -> Diagnostic:
    path, line, col = (*finding.posn.rsplit(":", 2), "1", "1")[:3]
    return _diagnostic(path, int(line), int(col), rule, "warning", finding.message)
