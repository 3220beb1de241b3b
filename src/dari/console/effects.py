"""What a call would do, as a person wants to read it before they answer: the command line, the difference, the request.

Made from the arguments as the queue shows them, without secrets. Names of arguments are a convention that servers
follow, no more; so the arguments themselves are always the last part, whole, and unfolded where one of them stands in
no other part: an agent may add a harmless one to a call that does something else.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, structs

from dari.core.approvals import Approval

MAX_PART_CHARS = 200_000
MAX_LINE_CHARS = 300
MAX_DIFF_LINES = 5_000
MAX_TITLE_CHARS = 60
"""What the page surely shows of a title."""
EffectKind = Literal["why", "command", "diff", "request", "file", "json"]

_LINE_BREAK = re.compile(r"[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_COMMANDS = ("command", "cmd", "commands", "script", "code", "sql", "query", "expression", "keys", "text")
_URLS = ("url", "uri", "endpoint")
_BODIES = ("body", "data", "payload", "json")
_PATHS = ("path", "file_path", "filePath", "filename", "file", "destination", "source", "target", "directory")
_CONTENTS = ("content", "contents", "file_text", "new_content")
_PLACES = frozenset(["pane_id"])
"""Arguments that say where, and nothing of what is done."""
_CHANGES = (("old_string", "new_string"), ("old_text", "new_text"), ("oldText", "newText"), ("old_str", "new_str"))


class EffectPart(Struct, frozen=True, kw_only=True):
    kind: EffectKind
    text: str
    title: str = ""
    """Which file, which argument; empty where the kind says it."""
    is_cut: bool = False
    is_open: bool = False
    """Of the arguments: they say what no other part does, so they are not folded away."""


_Told = tuple[EffectPart, tuple[str, ...]]
"""A part, and the names of the arguments that it shows whole."""


def effect_parts(approval: Approval) -> list[EffectPart]:
    """What it does first, then why a person is asked, then the arguments."""
    given = approval.arguments if isinstance(approval.arguments, dict) else {}
    found = [*_held(given), *_diffs(given), *_request(given), *_commands(given)]
    found += [one for one in _files(given) if one[0].text or not found]
    parts = [part for part, _ in found]
    told = {name for _, names in found for name in names}
    told |= _PLACES | {name for name, value in given.items() if value in (None, "", [], {})}
    if approval.message:
        parts.append(_part("why", approval.message))
    if approval.arguments not in (None, {}) and not approval.id.startswith("pin-"):
        is_open = not (found and given.keys() <= told)
        parts.append(structs.replace(_part("json", _json(approval.arguments)), is_open=is_open))
    return parts


def effect_line(approval: Approval) -> str:
    """The effect in one line, for a list."""
    given = approval.arguments if isinstance(approval.arguments, dict) else {}
    # All of them: an agent may add a harmless `url` to a call that runs a command.
    if does := [part.text for part, _ in (*_request(given), *_commands(given))]:
        return _line(" · ".join(does))
    if not approval.message and (paths := [given[name] for name in _PATHS if isinstance(given.get(name), str)]):
        return _line(f"{approval.name} {' · '.join(paths)}")
    return _line(approval.message or f"{approval.name} {_compact(approval.arguments)}")


def _held(given: Mapping[str, Any]) -> Iterator[_Told]:
    """What a server changed."""
    changes = given.get("changes")
    for one in changes if isinstance(changes, list) else ():
        if isinstance(one, dict) and "diff" in one:
            lines = one["diff"] if isinstance(one["diff"], list) else [one["diff"]]
            yield _part("diff", "\n".join(map(str, lines)), str(one.get("item", ""))), ()
        else:
            yield _part("why", str(one)), ()


def _diffs(given: Mapping[str, Any]) -> Iterator[_Told]:
    path, title = next(((name, given[name]) for name in _PATHS if isinstance(given.get(name), str)), ("", ""))
    beside = (path,) if len(title) <= MAX_TITLE_CHARS else ()
    for name in ("diff", "patch"):
        if isinstance(given.get(name), str):
            yield _part("diff", given[name], title), (name, *beside)
    for old, new in _CHANGES:
        if isinstance(given.get(old), str) and isinstance(given.get(new), str):
            yield _part("diff", _difference(given[old], given[new]), title), (old, new, *beside)
    edits = given.get("edits")
    edits = edits if isinstance(edits, list) else []
    pairs = [next((pair for pair in _CHANGES if _are_texts(one, pair)), ()) for one in edits]
    is_whole = all(pair and set(pair) == one.keys() for one, pair in zip(edits, pairs, strict=True))
    for one, pair in zip(edits, pairs, strict=True):
        if pair:
            yield _part("diff", _difference(one[pair[0]], one[pair[1]]), title), ("edits", *beside) if is_whole else ()


def _are_texts(edit: Any, names: tuple[str, str]) -> bool:
    return isinstance(edit, dict) and all(isinstance(edit.get(name), str) for name in names)


def _request(given: Mapping[str, Any]) -> Iterator[_Told]:
    found = [name for name in _URLS if isinstance(given.get(name), str)]
    if not found:
        return
    lines = [f"{str(given.get('method') or 'GET').upper()} {given[found[0]]}"]
    headers = given.get("headers")
    if isinstance(headers, dict):
        lines += [f"{name}: {value}" for name, value in headers.items()]
    sent = next((name for name in _BODIES if given.get(name) not in (None, "")), None)
    if sent is not None:
        body = given[sent]
        lines += ["", body if isinstance(body, str) else _json(body)]
    told = [found[0], *(["method"] if isinstance(given.get("method"), str) else [])]
    told += [*(["headers"] if isinstance(headers, dict) else []), *([sent] if sent is not None else [])]
    yield _part("request", "\n".join(lines)), tuple(told)
    for name in found[1:]:
        yield _part("request", given[name], name), (name,)


def _commands(given: Mapping[str, Any]) -> Iterator[_Told]:
    """Each of them: a tool runs the one that it knows, whatever the others say."""
    command = given.get("command")
    program = [command] if command and isinstance(command, str) else []
    is_told = False
    for name in ("argv", "args"):
        words = given.get(name)
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            is_told = bool(program)
            yield _part("command", shlex.join([*program, *words])), (name, "command") if is_told else (name,)
    for name in _COMMANDS:
        value = given.get(name)
        if value and isinstance(value, list) and all(isinstance(line, str) for line in value):
            value = "\n".join(value)
        if value and isinstance(value, str) and not (is_told and name == "command"):
            yield _part("command", value, name), (name,)


def _files(given: Mapping[str, Any]) -> Iterator[_Told]:
    for name in _PATHS:
        if isinstance(given.get(name), str):
            content = next((each for each in _CONTENTS if isinstance(given.get(each), str)), None)
            beside = (name,) if len(given[name]) <= MAX_TITLE_CHARS else ()
            part = _part("file", "" if content is None else given[content], given[name])
            yield part, beside if content is None else (content, *beside)
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
