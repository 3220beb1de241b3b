"""Results of the code tools as a person reads them: places as `path:line:col`, which terminals and editors open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dari.cli.kit.console import Console, format_json, paint
from dari.cli.kit.table import format_duration
from dari.text.sanitize import escape_hidden

Json = dict[str, Any]
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def render_result(name: str, value: Json, console: Console) -> None:
    """Print it on stdout; what is left out is said on stderr."""
    render = _RENDERERS.get(name)
    lines = [format_json(value)] if render is None else list(render(value, console))
    console.out("".join(f"{line}\n" for line in lines))
    for note in (*value.get("notes", ()), value.get("note", ""), value.get("more", "")):
        if isinstance(note, str) and note:
            console.err(f"note: {_safe(note)}\n")
    if value.get("cursor"):
        console.err(f"note: there is more: --cursor {value['cursor']}\n")


def _search(value: Json, console: Console) -> Iterator[str]:
    for path in value.get("files", ()):
        yield _safe(path)
    for path, count in (value.get("counts") or {}).items():
        yield f"{_safe(path)}:{count}"
    for match in value.get("matches", ()):
        place, line = paint(_safe(match["path"]), "blue", console), match["line"]
        before = match.get("before", ())
        for at, text in enumerate(before, start=line - len(before)):
            yield f"{place}-{at}- {_safe(text)}"
        yield f"{place}:{line}:{match.get('col', 1)}: {_safe(match['text'])}"
        for at, text in enumerate(match.get("after", ()), start=line + 1):
            yield f"{place}-{at}- {_safe(text)}"
    if not any(value.get(key) for key in ("matches", "files", "counts")):
        console.err("no match\n")


def _symbols(value: Json, console: Console) -> Iterator[str]:
    for one in value.get("definitions", ()):
        place = paint(f"{_safe(one['path'])}:{one['line']}:{one['col']}", "blue", console)
        yield f"{place}: {one['kind']} {_safe(one['symbol'])}: {_safe(one['text'].strip())}"
    for file in value.get("references", ()):
        for use in file["uses"]:
            inside = f" in {_safe(use['in'])}" if use.get("in") else ""
            place = paint(f"{_safe(file['path'])}:{use['line']}:{use['col']}", "blue", console)
            yield f"{place}: {use.get('kind', 'use')}{inside}: {_safe(use['text'].strip())}"
    totals = value["totals"]
    yield f"{totals['definitions']} definitions, {totals['references']} uses in {totals['files']} files"


def _outline(value: Json, console: Console) -> Iterator[str]:
    for file in value["files"]:
        yield paint(_safe(file["path"]), "bold", console)
        if note := file.get("note"):
            yield f"  {_safe(note)}"
        for one in file.get("symbols", ()):
            said = f"  {_safe(one['doc'])}" if one.get("doc") else ""
            yield f"  {one['lines']:>9}  {one['kind']} {_safe(one.get('signature') or one['name'])}{said}"


def _diff(value: Json, console: Console) -> Iterator[str]:
    for file in value.get("files", ()):
        old = f" (was {_safe(file['oldPath'])})" if file.get("oldPath") else ""
        head = f"{file['status']} {_safe(file['path'])}{old}  +{file.get('added', 0)} −{file.get('removed', 0)}"
        yield paint(head, "bold", console)
        for one in file.get("symbols", ()):
            yield f"  {one.get('how', 'changed')} {one['kind']} {_safe(one['name'])} (line {one['line']})"
        yield from _diff_lines(file.get("diff", ""), console)
    totals = value["totals"]
    yield f"{totals['files']} files since {_safe(value['since'])}: +{totals['added']} −{totals['removed']}"


def _format(value: Json, console: Console) -> Iterator[str]:
    yield from _edits(value.get("changed", ()), console)
    yield from _errors(value)
    yield f"{_verb(value, 'formatted')} {len(value.get('changed', ()))} files, {value['unchanged']} were in order"
    yield from _written(value)


def _lint(value: Json, console: Console) -> Iterator[str]:
    yield from _edits(value.get("edits", ()), console)
    for one in value.get("diagnostics", ()):
        place = paint(f"{_safe(one['path'])}:{one['line']}:{one['col']}", "blue", console)
        fix = " [fixable]" if one.get("fixable") else ""
        yield f"{place}: {one.get('severity', 'error')} {_safe(one['rule'])}: {_safe(one['message'])}{fix}"
    yield from _errors(value)
    if not value.get("diagnostics") and not value.get("errors"):
        yield "no faults"
    yield from _written(value)


def _test(value: Json, console: Console) -> Iterator[str]:
    for one in value.get("failures", ()):
        yield paint(_safe(one["id"]), "red", console)
        where = f"{_safe(one['path'])}:{one['line']}: " if one.get("path") and one.get("line") else ""
        yield f"  {where}{_safe(one.get('message', ''))}"
        for line in one.get("traceback", "").splitlines():
            yield f"  {_safe(line)}"
    counts = [f"{value[key]} {key}" for key in ("passed", "failed", "skipped", "errors") if value.get(key)]
    took = format_duration(value.get("durationMs"))
    yield f"{value['framework']} {value.get('version', '')}: {', '.join(counts) or 'no tests'} in {took}"
    if value.get("stopped"):
        yield f"stopped: {_safe(str(value['stopped']))}"


def _check(value: Json, console: Console) -> Iterator[str]:
    for number, step in enumerate(value.get("next", ()), start=1):
        place = f"{_safe(step['path'])}:{step.get('line', 1)}: " if step.get("path") else ""
        yield f"{number}. {paint(step['kind'], 'red', console)} {place}{_safe(step['message'])}"
        if step.get("do"):
            yield f"   {paint(_safe(step['do']), 'dim', console)}"
    yield from _errors(value)
    if tests := value.get("tests"):
        yield f"tests: {tests['passed']} passed, {tests['failed']} failed, {tests.get('skipped', 0)} skipped"
    yield "in order" if value["ok"] else f"{value['files']} files looked at"


def _refactor(value: Json, console: Console) -> Iterator[str]:
    yield from _edits(value["edits"], console)
    yield f"{_verb(value, 'changed')} {len(value['edits']) + value.get('moreFiles', 0)} files"
    yield from _written(value)


def _undo(value: Json, console: Console) -> Iterator[str]:
    yield f"took back: {_safe(value['what'])}"
    yield from (f"  {_safe(path)}" for path in value["restored"])


def _agents(value: Json, console: Console) -> Iterator[str]:
    for one in value["agents"]:
        said = " ".join(_safe(one[key]) for key in ("role", "model", "description") if one.get(key))
        yield f"{one['tool']}/{_safe(one['id'])}  {said}  ({_safe(one['source'])})"
    for problem in value.get("problems", ()):
        console.err(f"warning: {_safe(problem['path'])}: {_safe(problem['message'])}\n")


def _edits(edits: Iterable[Json], console: Console) -> Iterator[str]:
    for edit in edits:
        if edit.get("diff"):
            yield from _diff_lines(edit["diff"], console)
        else:
            counts = f"+{edit.get('added', 0)} −{edit.get('removed', 0)}"
            yield f"{_safe(edit['path'])}: {counts} {_safe(edit.get('note', ''))}"


def _diff_lines(diff: str, console: Console) -> Iterator[str]:
    for line in diff.splitlines():
        style = "bold" if line.startswith(("+++", "---")) else _DIFF_STYLES.get(line[:1], "")
        yield paint(_safe(line), style, console) if style else _safe(line)


def _errors(value: Json) -> Iterator[str]:
    for error in value.get("errors", ()):
        if isinstance(error, dict):
            line = f":{error['line']}" if error.get("line") else ""
            hint = f" ({_safe(error['hint'])})" if error.get("hint") else ""
            yield f"error: {_safe(error.get('path', ''))}{line}: {_safe(error.get('message', ''))}{hint}"


def _verb(value: Json, done: str) -> str:
    return done if value.get("applied") else f"would have {done}"


def _written(value: Json) -> Iterator[str]:
    if value.get("undoToken"):
        yield f"undo: crewx-tools undo {value['undoToken']}"
    elif value.get("applied") is False and (value.get("changed") or value.get("edits")):
        yield "nothing is written yet: add --write"


def _safe(text: object) -> str:
    """Names, code and messages of a repository are somebody else's: nothing of them commands the terminal."""
    return escape_hidden(str(text), one_line=True)


_RENDERERS: dict[str, Callable[[Json, Console], Iterator[str]]] = {
    "search": _search,
    "symbols": _symbols,
    "outline": _outline,
    "diff": _diff,
    "format": _format,
    "lint": _lint,
    "test": _test,
    "check": _check,
    "refactor": _refactor,
    "undo": _undo,
    "list-agents": _agents,
}
