"""Facts that go with an intent: from the parsers where one knows the output, from patterns otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice

from dari.terminal.output_parsers.intent_rules import IntentRules, compiled
from dari.terminal.output_parsers.registry import parse_structured
from dari.terminal.output_parsers.result import Document, Parsed

_MAX_MANY = 50
_MAX_CHARS = 300
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
        values = [next((part for part in match.groups() if part), "").strip()[:_MAX_CHARS] for match in matches]
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
        item["message"].split("\n")[0][:_MAX_CHARS]
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
    context: Context = {"language": last["language"], "error": last["error"], "message": last["message"][:_MAX_CHARS]}
    context["error_summary"] = f"{last['error']}: {last['message'].partition(chr(10))[0][:_MAX_CHARS]}".strip(": ")
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
