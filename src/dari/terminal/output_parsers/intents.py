"""What a command and its output mean (a failed test, a port in use, a prompt), with facts and commands to run next.

Facts come from a parser that knows the output, else from patterns. In suggested commands they are quoted for the
shell, and files that do not exist are left out.
"""

from __future__ import annotations

import os
import re
import shlex
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec

from dari.terminal.output_parsers.intent_rules import IntentRule, IntentRules, compiled, load_rules
from dari.terminal.output_parsers.registry import parse_structured
from dari.terminal.output_parsers.result import Document, Parsed

_MAX_MANY = 50
_FACT_CHARS = 300
_SPECIAL = re.compile(r"[.*+?^${}()|\[\]\\]")
"""JavaScript's runners take a test by a pattern."""

Context = dict[str, Document]


def gather(intent: IntentRules, command: str, output: str) -> Context:
    """Facts by name. A name is there only when the output tells it."""
    context: Context = {}
    if intent.reader:
        parsed = parse_structured(output, command=command, hint=intent.reader)
        reader = _READERS.get(intent.reader)
        if reader and parsed.type == intent.reader:
            context.update(reader(parsed))
    sources = {"output": output, "command": command, "last_line": output.rstrip().rpartition("\n")[2]}
    for extract in intent.extract:
        if extract.name in context:
            continue
        source = sources[extract.source]
        matches = islice(compiled(extract.pattern).finditer(source), _MAX_MANY if extract.many else 1)
        values = [next((part for part in match.groups() if part), "").strip()[:_FACT_CHARS] for match in matches]
        values = list(dict.fromkeys(value for value in values if value))
        if values:
            context[extract.name] = values if extract.many else values[0]
    return context


def _from_tests(parsed: Parsed) -> Context:
    value, items = parsed.value, parsed.items or []
    failed = [item["name"] for item in items if item["outcome"] in ("failed", "error")]
    amounts = []
    if value["failed"]:
        amounts.append(f"{value['failed']} test{'s' * (value['failed'] != 1)} failed")
    if value["errors"]:
        amounts.append(f"{value['errors']} error{'s' * (value['errors'] != 1)}")
    amounts += [f"{value[name]} {name}" for name in ("passed", "skipped") if value[name]]
    messages = [
        item["message"].split("\n")[0][:_FACT_CHARS]
        for item in items
        if item.get("message") and item["outcome"] in ("failed", "error")
    ]
    if not amounts and value.get("packages"):
        amounts.append(f"{len(value['packages'])} packages {value['status']}")
    context: Context = {"framework": value["framework"], "error_summary": ", ".join(amounts)}
    if failed:
        context["failed_tests"] = failed[:_MAX_MANY]
        context["test_pattern"] = _SPECIAL.sub(r"\\\g<0>", failed[0].rpartition(" > ")[2])
        if messages:
            context["messages"] = messages[:10]
    return context


def _from_diagnostics(parsed: Parsed) -> Context:
    items = parsed.items or []
    errors = [item for item in items if item["severity"] in ("error", "fatal error")] or items
    first = errors[0]
    value = parsed.value
    amounts = [
        f"{value[name]} {name if value[name] != 1 else name[:-1]}" for name in ("errors", "warnings") if value[name]
    ]
    files = list(dict.fromkeys(item["file"] for item in errors if item["file"]))
    context: Context = {"tool": value["tool"], "error_summary": ", ".join(amounts), "files": files[:_MAX_MANY]}
    context["first_error"] = {key: first[key] for key in ("file", "line", "column", "code", "message")}
    if first["code"]:
        context["code"] = first["code"]
    if first["file"]:
        context["path"] = first["file"]
        context["line"] = first["line"] or 1
    return context


def _from_trace(parsed: Parsed) -> Context:
    items = parsed.items or []
    last = next((item for item in reversed(items) if not item.get("group")), items[-1])
    context: Context = {"language": last["language"], "error": last["error"], "message": last["message"][:_FACT_CHARS]}
    context["error_summary"] = f"{last['error']}: {last['message'].partition(chr(10))[0][:_FACT_CHARS]}".strip(": ")
    frames = last["frames"]
    if frames:
        frame = frames[-1] if last["language"] == "python" else frames[0]
        context["path"], context["line"] = frame["file"], frame["line"]
    if last.get("file"):
        context["path"], context["line"] = last["file"], last["at_line"]
    return context


def _from_status(parsed: Parsed) -> Context:
    value = parsed.value
    context: Context = {key: value[key] for key in ("branch", "upstream", "ahead", "behind") if value.get(key)}
    if value["unmerged"]:
        context["conflicting_files"] = [entry["path"] for entry in value["unmerged"]][:_MAX_MANY]
    changed = [entry["path"] for name in ("staged", "unstaged") for entry in value[name]]
    if changed:
        context["changed_files"] = list(dict.fromkeys(changed))[:_MAX_MANY]
    if value["untracked"]:
        context["untracked_files"] = [entry["path"] for entry in value["untracked"]][:_MAX_MANY]
    return context


_READERS: dict[str, Callable[[Parsed], Context]] = {
    "test_report": _from_tests,
    "diagnostics": _from_diagnostics,
    "traceback": _from_trace,
    "git_status": _from_status,
}


_WENT = re.compile(
    r"(?:^|[;&|(]\s*)cd\s+(\"[^\"]+\"|'[^']+'|[^\s;&|]+)|\s(?:-C|--directory|--prefix|--manifest-path)[ =]([^\s;&|]+)"
)
_ENTERED = re.compile(r"Entering directory [`'‘]([^'’]+)['’]")
_MAX_FOLDERS = 8
_MAX_LOOKUPS = 200


class FileFinder:
    """Looks in the folder of the pane, and in those that the command or the output says it went to."""

    def __init__(self, cwd: str, command: str = "", output: str = "") -> None:
        self._cwd = cwd
        self._lookups = 0
        went = [next(filter(None, match)).strip("\"'") for match in _WENT.findall(command)]
        went = [folder if not folder.endswith(".toml") else os.path.dirname(folder) for folder in went]
        folders = dict.fromkeys(["", *went, *_ENTERED.findall(output[:100_000])])
        self._folders = list(folders)[:_MAX_FOLDERS]

    def find(self, value: str) -> str:
        """The value as it is called from the pane's folder, `::test` and the like kept; "" when it is not there."""
        path, colons, rest = value.partition("::")
        for folder in self._folders:
            place = os.path.join(folder, path)
            if self._exists(place):
                return place + colons + rest
        return ""

    def nearest_folder(self, path: str) -> str:
        """The folder that a missing path would be in, or the next one above that exists; "" when that is the pane's."""
        for parent in Path(path).parents:
            if str(parent) != "." and self._exists(str(parent)):
                return str(parent)
        return ""

    def _exists(self, path: str) -> bool:
        self._lookups += 1
        if self._lookups > _MAX_LOOKUPS or "\0" in path or len(path) > 4096:
            return False
        try:
            return os.path.lexists(os.path.join(self._cwd, path))
        except (OSError, ValueError):
            return False


_PLACE = re.compile(r"\{(\*?)(\w+)\}")
_FILE_PART = re.compile(r"[^\s:]+\.\w+(?:::|$)")
_MAX_VALUES = 5
_MAX_ACTIONS = 4


PATHS = frozenset(("path", "files", "conflicting_files", "changed_files", "untracked_files", "failed_tests"))
"""Facts that name files, also with a part of them: `tests/test_a.py::test_b`."""


def suggest(
    intent: IntentRules, command: str, context: dict[str, Document], files: FileFinder | None = None
) -> list[str]:
    """At most four commands, the most useful first. One that lacks a fact, or gets a strange one, is left out.

    With `files`, one that names a file is left out unless the file is there, and names it as the pane would.
    """
    actions: list[str] = []
    there = {**context, **_existing(context, files)}
    for entry in intent.suggest:
        if entry.when and not compiled(entry.when).search(command):
            continue
        if not all(compiled(want).search(str(context.get(name, ""))) for name, want in entry.given.items()):
            continue
        action = fill(entry.run, {**(context if entry.is_missing else there), "command": command})
        if action and action not in actions:
            actions.append(action)
    return actions[:_MAX_ACTIONS]


def _existing(context: dict[str, Document], files: FileFinder | None) -> dict[str, Document]:
    """The facts that name files, with those alone that are there; and where a missing one would be."""
    found: dict[str, Document] = {}
    for name in PATHS & context.keys() if files else ():
        values = _values(context[name])
        places = [place for value in values if files and (place := files.find(value))]
        is_test_name = name == "failed_tests" and not any(_FILE_PART.match(value) for value in values)
        found[name] = context[name] if is_test_name else places
    path = context.get("path")
    if isinstance(path, str) and path:
        found["name"] = os.path.basename(path.rstrip("/"))
        found["parent"] = files.nearest_folder(path) if files else os.path.dirname(path)
    return found


def fill(template: str, context: dict[str, Document]) -> str | None:
    """The template with its facts as shell words; None where a fact is missing or could be taken for an option."""
    parts: list[str] = []
    position = 0
    for match in _PLACE.finditer(template):
        values = [value for value in _values(context.get(match[2])) if is_safe(value)]
        if not values:
            return None
        values = values[:_MAX_VALUES] if match[1] else values[:1]
        parts += [template[position : match.start()], " ".join(map(shlex.quote, values))]
        position = match.end()
    return "".join(parts) + template[position:]


def is_safe(value: str) -> bool:
    """A word that no program takes for an option and no terminal for a control sequence."""
    return 0 < len(value) <= 300 and not value.startswith("-") and value.isprintable()


def _values(value: Document) -> list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    return [] if value is None or value == "" else [str(value)]


_FIRST_LINES, _LAST_LINES, _LINE_CHARS = 500, 2000, 1000
"""The lines that are searched: a cause is printed at the beginning or at the end of an output."""
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

    Suggestions follow from the output, which may be forged: show them to a person before running one.
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
