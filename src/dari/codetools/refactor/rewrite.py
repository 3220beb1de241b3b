"""Structural rewrites: every match of a pattern of ast-grep takes the form of another, inner matches included."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.codetools.engines.select import own_files
from dari.codetools.refactor.jobs import Job, Plan, PlannedFile, RewriteRule
from dari.codetools.refactor.sources import (
    STRUCTURAL,
    SourceFile,
    check_parses,
    language_of,
    planned,
    read_sources,
    structural_engine,
)
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import InvalidInput

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_META = re.compile(r"\$\$\$([A-Z_][A-Z0-9_]*)|\$([A-Z_][A-Z0-9_]*)")
_ALIASES = {"js": "javascript", "jsx": "javascript", "ts": "typescript", "py": "python", "rs": "rust", "c++": "cpp"}
_ALIASES |= {"golang": "go", "rb": "ruby", "cs": "csharp", "c#": "csharp", "kt": "kotlin", "sh": "bash", "yml": "yaml"}


class _Match(Struct, frozen=True):
    start: int
    end: int
    rule: RewriteRule
    node: object


def rewrite(job: Job, workspace: Workspace) -> Plan:
    """All rules on all files; of two matches that overlap the outer one wins, and the inner ones go with it."""
    rules = [_checked(rule) for rule in job.rules]
    files: list[PlannedFile] = []
    notes: list[str] = []
    count = 0
    for source in read_sources(_files(job, rules, workspace), workspace, notes=notes):
        text, matches = rewrite_text(source, rules)
        if text == source.text:
            continue
        count += matches
        check_parses(source, text, workspace.show(source.path))
        files.append(planned(source, text))
    notes.insert(0, f"{count} matches in {len(files)} files" if files else "no match")
    return Plan(files, notes[:20], structural_engine(), f"{job.op} {rules[0].pattern[:40]!r}")


def rewrite_text(source: SourceFile, rules: Sequence[RewriteRule]) -> tuple[str, int]:
    """The new text and how many places changed."""
    from ast_grep_py import SgRoot

    wanted = [
        rule
        for rule in rules
        if (not rule.lang or _speaks(source.language, rule.lang)) and _may_match(rule.pattern, source.text)
    ]
    if source.language not in STRUCTURAL or not wanted:
        return source.text, 0
    root = SgRoot(source.text, source.language).root()
    found: list[_Match] = []
    for order, rule in enumerate(wanted):
        for node in root.find_all(pattern=rule.pattern):
            span = node.range()
            found.append(_Match(span.start.index, span.end.index, wanted[order], node))
    # Outer before inner; of equal places the rule that stands first.
    found.sort(key=lambda one: (one.start, -one.end))
    chosen: dict[tuple[int, int], _Match] = {}
    for match in found:
        chosen.setdefault((match.start, match.end), match)
    matches = list(chosen.values())
    return _render(source.text, 0, len(source.text), matches), len(matches)


def _may_match(pattern: str, text: str) -> bool:
    """Whether all words of the pattern are there: parsing takes seconds for a minified file, looking does not."""
    return all(word in text for word in re.findall(r"[A-Za-z_]\w{2,}", _META.sub(" ", pattern)))


def _render(text: str, start: int, end: int, matches: Sequence[_Match]) -> str:
    """The range with its matches rewritten; those inside of a match are rewritten where its names show them."""
    pieces: list[str] = []
    done = start
    for match in matches:
        if match.start < done or match.end > end:
            continue
        pieces += (text[done : match.start], _fill(text, match, matches))
        done = match.end
    return "".join((*pieces, text[done:end]))


def _fill(text: str, match: _Match, matches: Sequence[_Match]) -> str:
    node: SgNode = match.node  # type: ignore[assignment]
    inner = [one for one in matches if match.start <= one.start and one.end <= match.end and one is not match]
    indent = text[text.rfind("\n", 0, match.start) + 1 : match.start]
    indent = indent if not indent.strip() else indent[: len(indent) - len(indent.lstrip())]

    def value(found: re.Match[str]) -> str:
        many, one = found.groups()
        if one is not None:
            nodes = [single] if (single := node.get_match(one)) is not None else []
        else:
            nodes = node.get_multiple_matches(many)
        if not nodes:
            return ""
        first, last = nodes[0].range().start.index, nodes[-1].range().end.index
        return _render(text, first, last, inner)

    # The lines of the template get the indent, those of a value have theirs: it may be a string of several lines.
    first, *rest = (_META.sub(value, line) for line in match.rule.rewrite.replace("\r\n", "\n").split("\n"))
    return _line_end(text).join((first, *(indent + line if line else line for line in rest)))


def _line_end(text: str) -> str:
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _checked(rule: RewriteRule) -> RewriteRule:
    lang = _ALIASES.get(rule.lang.lower(), rule.lang.lower())
    if lang and lang not in STRUCTURAL:
        raise InvalidInput(f"lang {rule.lang!r} is not known", f"one of: {', '.join(sorted(STRUCTURAL))}")
    given = {one or many for many, one in _META.findall(rule.pattern)}
    unknown = sorted({one or many for many, one in _META.findall(rule.rewrite)} - given)
    if unknown:
        raise InvalidInput(
            f"rewrite uses ${unknown[0]}, which the pattern {rule.pattern!r} does not have",
            "names in rewrite are those of the pattern, in capitals",
        )
    return RewriteRule(rule.pattern, rule.rewrite, lang)


def _speaks(language: str, wanted: str) -> bool:
    family = {"javascript", "typescript", "tsx"}
    return language == wanted or (language in family and wanted in family)


def _files(job: Job, rules: Sequence[RewriteRule], workspace: Workspace) -> list[WorkspacePath]:
    langs = {rule.lang for rule in rules}

    def wants(name: str) -> bool:
        language = language_of(name)
        return language in STRUCTURAL and ("" in langs or any(_speaks(language, lang) for lang in langs))

    paths = list(own_files(workspace, job.paths or ["."], wants=wants, include_ignored=job.include_ignored))
    if "" in langs and not job.is_narrowed and len({language_of(path.relative) for path in paths}) > 1:
        raise InvalidInput("lang is missing, and there are files of several languages", "name lang, or paths")
    return paths
