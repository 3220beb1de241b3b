"""What a linter found, in one form for all linters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warning", "info"]
SYNTAX = "syntax"
"""The rule of what no parser understands, whichever engine says so."""
_MAX_RULES = 30
_MAX_SYNTAX_PER_FILE = 5


class Diagnostic(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Lines and columns are from 1; the end is the first column after it."""

    path: str
    line: int
    col: int
    rule: str
    severity: Severity
    message: str
    end_line: int = 0
    end_col: int = 0
    fixable: bool = False
    """A fix that the engine calls safe."""
    unsafe_fix: bool = False
    """Only fix: "unsafe" repairs it."""


class LintSummary(Struct, frozen=True, omit_defaults=True, rename="camel"):
    total: int
    errors: int = 0
    warnings: int = 0
    files: int = 0
    """With a diagnostic."""
    fixable: int = 0
    fixed: int = 0
    by_rule: dict[str, int] = {}
    """The most frequent first."""


def sort_diagnostics(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By place, each once (biome says some errors twice), and not all that parsers say about a file of garbage."""
    kept: list[Diagnostic] = []
    syntax: Counter[str] = Counter()
    for one in sorted(set(found), key=lambda one: (one.path, one.line, one.col, one.rule, one.message)):
        if one.rule == SYNTAX:
            syntax[one.path] += 1
            if syntax[one.path] > _MAX_SYNTAX_PER_FILE:
                continue
        kept.append(one)
    return kept


def summarize(found: Sequence[Diagnostic], fixed: int = 0) -> LintSummary:
    severities = Counter(one.severity for one in found)
    return LintSummary(
        len(found),
        severities["error"],
        severities["warning"],
        len({one.path for one in found}),
        sum(one.fixable for one in found),
        fixed,
        dict(Counter(one.rule for one in found).most_common(_MAX_RULES)),
    )
