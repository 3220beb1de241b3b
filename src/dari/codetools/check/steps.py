"""What to do first: everything that is wrong, in the order in which it is worth repairing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from dari.codetools.lint.diagnostic import SYNTAX, Diagnostic
from dari.codetools.testing.report import FailedTest

StepKind = Literal["syntax", "type", "test", "lint", "format"]
"""In this order: a file that does not parse has no types, and a test of it says nothing."""
COMPILE = "compile"
"""The rule of what go vet could not compile: an error of types, found by a linter."""
_MAX_NAMED = 20


class NextStep(Struct, frozen=True, omit_defaults=True):
    kind: StepKind
    message: str
    path: str = ""
    line: int = 0
    rule: str = ""
    detail: str = ""
    """Of a failed test: its traceback."""
    do: str = ""
    """The call that repairs it."""


def order_steps(
    changed: Collection[str],
    lint: Sequence[Diagnostic] = (),
    types: Sequence[Diagnostic] = (),
    unparsed: Iterable[tuple[str, int, str]] = (),
    failures: Sequence[FailedTest] = (),
    unformatted: Sequence[str] = (),
) -> list[NextStep]:
    """`unparsed`: files that a formatter could not parse, as path, line, message."""
    syntax = [(one.path, one.line, one.message) for one in (*lint, *types) if one.rule == SYNTAX]
    typed = [one for one in types if one.rule != SYNTAX] + [one for one in lint if one.rule == COMPILE]
    steps = _syntax_steps([*syntax, *unparsed])
    steps += [_step("type", one) for one in _nearest_first(typed, changed)]
    steps += [
        NextStep("test", f"{one.id}: {one.message}", one.path, one.line, detail=one.traceback) for one in failures
    ]
    rest = [one for one in lint if one.rule not in (SYNTAX, COMPILE)]
    fixable = [one for one in rest if one.fixable]
    if fixable:
        steps.append(_fix_step(fixable))
    steps += [_step("lint", one) for one in _nearest_first((one for one in rest if not one.fixable), changed)]
    if unformatted:
        paths, many = list(unformatted[:_MAX_NAMED]), len(unformatted)
        shown = ", ".join(paths[:5]) + (" …" if many > 5 else "")
        call = _call("crewx_tools_format", paths=paths, dryRun=False)
        steps.append(NextStep("format", f"{many} file{'s' if many > 1 else ''} not formatted: {shown}", do=call))
    return steps


def count_steps(steps: Iterable[NextStep]) -> dict[str, int]:
    return dict(Counter(step.kind for step in steps))


def _syntax_steps(found: Iterable[tuple[str, int, str]]) -> list[NextStep]:
    """One per line: parsers say several things about one mistake, and several engines the same."""
    first: dict[tuple[str, int], str] = {}
    for path, line, message in found:
        first.setdefault((path, line), message)
    return [NextStep("syntax", message, path, line) for (path, line), message in sorted(first.items())]


def _nearest_first(found: Iterable[Diagnostic], changed: Collection[str]) -> list[Diagnostic]:
    """In the files that changed before others, errors before warnings."""
    levels = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda one: (one.path not in changed, levels[one.severity], one.path, one.line, one.col))


def _step(kind: StepKind, one: Diagnostic) -> NextStep:
    return NextStep(kind, one.message, one.path, one.line, one.rule)


def _fix_step(fixable: Sequence[Diagnostic]) -> NextStep:
    rules = ", ".join(f"{rule} ×{count}" for rule, count in Counter(one.rule for one in fixable).most_common(6))
    paths = list(dict.fromkeys(one.path for one in fixable))[:_MAX_NAMED]
    call = _call("crewx_tools_lint", paths=paths, fix="safe", dryRun=False)
    return NextStep("lint", f"{len(fixable)} can be fixed safely: {rules}", do=call)


def _call(tool: str, **arguments: object) -> str:
    return f"{tool} {msgspec.json.encode(arguments).decode()}"
