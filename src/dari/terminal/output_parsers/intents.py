"""What a command and its output mean: a failed test, a port in use, a question that waits for an answer."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice

import msgspec

from dari.terminal.output_parsers.intent_facts import gather
from dari.terminal.output_parsers.intent_rules import IntentRule, IntentRules, compiled, load_rules
from dari.terminal.output_parsers.result import Document
from dari.terminal.output_parsers.suggestions import FileFinder, suggest

_FIRST_LINES, _LAST_LINES, _LINE_CHARS = 500, 2000, 1000
"""What is looked at: a cause is told where an output begins or where it ends."""
_MAX_CHARS, _SHORT_LINE_CHARS = 300_000, 200
"""When that is still more than this, only the beginning of each line is."""
_MAX_HITS = 8
_LEAST = 0.3
_SHOWING = re.compile(
    r"\s*+(?:sudo )?(?:cat|bat|less|more|head|tail|grep|rg|ag|sed|awk|echo|printf|man|strings|zcat)\b"
)


class Evidence(msgspec.Struct, frozen=True):
    """A line that speaks for the intent, counted from 1, and the rule that saw it."""

    line: int
    text: str
    rule: str


class Intent(msgspec.Struct, frozen=True):
    """What happened, how sure that is, the lines that say so, the facts in them and what could be run next."""

    intent: str
    confidence: float
    context: dict[str, Document]
    suggested_actions: list[str]
    evidence: list[Evidence]
    alternatives: dict[str, float]


@dataclass(slots=True)
class _Page:
    """The part of an output that is looked at, and where each of its lines begins."""

    text: str
    starts: list[int]
    numbers: list[int]
    ends: list[tuple[int, int]]
    """Spans of the last lines that hold text, the last one first."""

    def line_of(self, place: int) -> int:
        return self.numbers[bisect_right(self.starts, place) - 1]


def detect_intent(command: str, output: str, exit_code: int | None, cwd: str = "") -> Intent:
    """The most likely intent; `exit_code` is None while the command runs. Never raises, and never runs anything.

    With `cwd`, the folder in which the command ran, suggestions name only files that are there.

    The output decides over the suggestions, and whoever printed it may lie: show them to someone before running one.
    """
    command = _clean(command)[:2000]
    page = _page(_clean(output))
    ending = "running" if exit_code is None else "ok" if exit_code == 0 else "failed"
    is_shown = ending == "ok" and _SHOWING.match(command) is not None
    scores: list[tuple[float, int, IntentRules, list[Evidence]]] = []
    said: dict[str, dict[str, Document]] = {}
    for intent in load_rules():
        doubt, evidence = 1.0, list[Evidence]()
        for rule in intent.rule:
            if _applies(rule, command, ending, exit_code):
                hits = _hits(rule, page)
                if hits or not rule.pattern:
                    doubt *= 1 - rule.weight
                    evidence += hits
                    said[intent.name] = {**rule.says, **said.get(intent.name, {})}
        score = (
            min(1 - doubt, intent.most) * float(getattr(intent.exit, ending)) * (intent.exit.shown if is_shown else 1.0)
        )
        if score > 0:
            scores.append((score, intent.priority, intent, evidence))
    scores.sort(key=lambda entry: (-round(entry[0], 3), -entry[1]))
    if not scores or scores[0][0] < _LEAST:
        return Intent("unknown", 0.2, {}, [], [], {entry[2].name: round(entry[0], 2) for entry in scores[:3]})
    score, _, best, evidence = scores[0]
    others = {entry[2].name: round(entry[0], 2) for entry in scores[1:4] if entry[0] >= _LEAST}
    context = {**said.get(best.name, {}), **gather(best, command, page.text)}
    return Intent(
        intent=best.name,
        confidence=round(score if others else max(score, best.alone), 2),
        context=context,
        suggested_actions=suggest(best, command, context, FileFinder(cwd, command, page.text) if cwd else None),
        evidence=_in_order(evidence),
        alternatives=others,
    )


def _clean(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _page(output: str) -> _Page:
    lines = output.split("\n")
    numbers = list(range(1, len(lines) + 1))
    if len(lines) > _FIRST_LINES + _LAST_LINES:
        lines = lines[:_FIRST_LINES] + lines[-_LAST_LINES:]
        numbers = numbers[:_FIRST_LINES] + numbers[-_LAST_LINES:]
    width = _LINE_CHARS if sum(map(len, lines)) < _MAX_CHARS else _SHORT_LINE_CHARS
    starts: list[int] = []
    place = 0
    kept: list[str] = []
    for line in lines:
        kept.append(line[:width].rstrip())
        starts.append(place)
        place += len(kept[-1]) + 1
    filled = [index for index, line in enumerate(kept) if line.strip()]
    ends = [(starts[index], starts[index] + len(kept[index])) for index in reversed(filled[-5:])]
    return _Page("\n".join(kept), starts, numbers, ends)


def _applies(rule: IntentRule, command: str, ending: str, exit_code: int | None) -> bool:
    if rule.exit != "any" and rule.exit != ending:
        return False
    if rule.codes and exit_code not in rule.codes:
        return False
    return not rule.command or compiled(rule.command).search(command) is not None


def _hits(rule: IntentRule, page: _Page) -> list[Evidence]:
    if not rule.pattern or not page.ends:
        return []
    start, end = 0, len(page.text)
    if rule.where != "anywhere":
        start = page.ends[0 if rule.where == "last_line" else -1][0]
        end = page.ends[0][1]
    found = islice(compiled(rule.pattern).finditer(page.text, start, end), _MAX_HITS)
    return [_evidence(rule, page, match.start()) for match in found]


def _evidence(rule: IntentRule, page: _Page, place: int) -> Evidence:
    first = page.text.rfind("\n", 0, place) + 1
    last = page.text.find("\n", place)
    text = page.text[first : last if last != -1 else len(page.text)]
    return Evidence(page.line_of(place), text.strip()[:300], rule.id)


def _in_order(evidence: list[Evidence]) -> list[Evidence]:
    by_line = {item.line: item for item in reversed(evidence)}
    return [by_line[line] for line in sorted(by_line)][:10]
