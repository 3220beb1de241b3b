"""What a call would do, as a person wants to read it before they answer: the command line, the difference, the request.

Made from the arguments as the queue shows them, without secrets. Names of arguments are a convention that servers
follow, no more; so the arguments themselves are always the last part, whole.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from dari.core.approvals import Approval

MAX_PART_CHARS = 200_000
MAX_LINE_CHARS = 300
MAX_DIFF_LINES = 5_000
EffectKind = Literal["why", "command", "diff", "request", "file", "json"]

_LINE_BREAK = re.compile(r"[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_COMMANDS = ("command", "cmd", "commands", "script", "code", "sql", "query", "expression", "keys", "text")
_URLS = ("url", "uri", "endpoint")
_BODIES = ("body", "data", "payload", "json")
_PATHS = ("path", "file_path", "filePath", "filename", "file", "destination", "source", "target", "directory")
_CONTENTS = ("content", "contents", "file_text", "new_content")
_CHANGES = (("old_string", "new_string"), ("old_text", "new_text"), ("oldText", "newText"), ("old_str", "new_str"))


class EffectPart(Struct, frozen=True, kw_only=True):
    kind: EffectKind
    text: str
    title: str = ""
    """Which file, which argument; empty where the kind says it."""
    is_cut: bool = False


def effect_parts(approval: Approval) -> list[EffectPart]:
    """What it does first, then why a person is asked, then the arguments."""
    given = approval.arguments if isinstance(approval.arguments, dict) else {}
    parts = [*_held(given), *_diffs(given), *_request(given), *_commands(given)]
    parts += [part for part in _files(given) if part.text or not parts]
    if approval.message:
        parts.append(_part("why", approval.message))
    if approval.arguments not in (None, {}) and not approval.id.startswith("pin-"):
        parts.append(_part("json", _json(approval.arguments)))
    return parts


def effect_line(approval: Approval) -> str:
    """The effect in one line, for a list."""
    given = approval.arguments if isinstance(approval.arguments, dict) else {}
    # All of them: an agent may add a harmless `url` to a call that runs a command.
    if does := [part.text for part in (*_request(given), *_commands(given))]:
        return _line(" · ".join(does))
    for part in () if approval.message else _files(given):
        return _line(f"{approval.name} {part.title}")
    return _line(approval.message or f"{approval.name} {_compact(approval.arguments)}")


def _held(given: Mapping[str, Any]) -> Iterator[EffectPart]:
    """What a server changed."""
    changes = given.get("changes")
    for one in changes if isinstance(changes, list) else ():
        if isinstance(one, dict) and "diff" in one:
            lines = one["diff"] if isinstance(one["diff"], list) else [one["diff"]]
            yield _part("diff", "\n".join(map(str, lines)), str(one.get("item", "")))
        else:
            yield _part("why", str(one))


def _diffs(given: Mapping[str, Any]) -> Iterator[EffectPart]:
    title = next((str(given[name]) for name in _PATHS if isinstance(given.get(name), str)), "")
    for name in ("diff", "patch"):
        if isinstance(given.get(name), str):
            yield _part("diff", given[name], title)
    edits = given.get("edits")
    for one in [given, *(edits if isinstance(edits, list) else ())]:
        for old, new in _CHANGES if isinstance(one, dict) else ():
            if isinstance(one.get(old), str) and isinstance(one.get(new), str):
                yield _part("diff", _difference(one[old], one[new]), title)


def _request(given: Mapping[str, Any]) -> Iterator[EffectPart]:
    url = next((given[name] for name in _URLS if isinstance(given.get(name), str)), None)
    if url is None:
        return
    lines = [f"{str(given.get('method') or 'GET').upper()} {url}"]
    headers = given.get("headers")
    if isinstance(headers, dict):
        lines += [f"{name}: {value}" for name, value in headers.items()]
    body = next((given[name] for name in _BODIES if given.get(name) not in (None, "")), None)
    if body is not None:
        lines += ["", body if isinstance(body, str) else _json(body)]
    yield _part("request", "\n".join(lines))


def _commands(given: Mapping[str, Any]) -> Iterator[EffectPart]:
    argv = given.get("argv") or given.get("args")
    if isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv):
        program = [given["command"]] if isinstance(given.get("command"), str) and given["command"] else []
        yield _part("command", shlex.join([*program, *argv]))
        return
    for name in _COMMANDS:
        value = given.get(name)
        if isinstance(value, str) and value:
            yield _part("command", value, name)
        elif isinstance(value, list) and value and all(isinstance(line, str) for line in value):
            yield _part("command", "\n".join(value), name)


def _files(given: Mapping[str, Any]) -> Iterator[EffectPart]:
    for name in _PATHS:
        if isinstance(given.get(name), str):
            content = next((given[each] for each in _CONTENTS if isinstance(given.get(each), str)), "")
            yield _part("file", content, given[name])
            return


def _difference(old: str, new: str) -> str:
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MAX_DIFF_LINES:
        return "\n".join([*(f"-{line}" for line in before), *(f"+{line}" for line in after)])
    return "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=2))[2:])


def _part(kind: EffectKind, text: str, title: str = "") -> EffectPart:
    return EffectPart(kind=kind, text=text[:MAX_PART_CHARS], title=title[:1000], is_cut=len(text) > MAX_PART_CHARS)


def _line(text: str) -> str:
    """Hidden characters are the page's to show; here only what makes it long goes. A second line of a command is a
    second command, and what was cut off may be behind many spaces: both are seen."""
    line = " ".join(_LINE_BREAK.sub(" ↵ ", text[: MAX_LINE_CHARS * 4].strip()).split())
    is_whole = len(text) <= MAX_LINE_CHARS * 4 and len(line) <= MAX_LINE_CHARS
    return line if is_whole else f"{line[:MAX_LINE_CHARS]}…"


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()
