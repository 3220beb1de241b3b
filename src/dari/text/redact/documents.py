"""Secrets by name in JSON and in XML or HTML, as text: a document may be cut off, or stand inside a string."""

from __future__ import annotations

import json
import re

from dari.text.redact.names import MAX_NAME_CHARS, Sensitivity, is_secret, sensitivity
from dari.text.redact.patterns import MARK, compiled

_JSON_KEY = r'"((?:[^"\\\r\n]|\\u[0-9a-fA-F]{4}){1,100})(\\{0,15}+)"\s{0,20}+:\s{0,20}+'
_JSON_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*"?'
_JSON_NESTING = r'"[^"\\]*+(?:\\.[^"\\]*+)*"?|[\[\]{}]'
_JSON_NUMBER = r"-?\d[\d.eE+-]*"
_HAS_TEXT = r':\s{0,20}+\\{0,15}+"|[\[,]\s{0,20}+"[^"]*"\s{0,20}+[,\]]'
_SCHEMA = r'\{\s{0,50}+"(?:\$ref"|type"\s{0,5}+:\s{0,5}+"(?:string|object|integer|number|array|boolean|null)")'
_NAME_KEYS = frozenset({"name", "key", "field", "param", "parameter", "header", "id", "label", "k", "n", "variable"})
_VALUE_KEY = r'"(?:value|val|v|content|data|text|default|secret|values)(\\{0,15}+)"\s{0,20}+:\s{0,20}+'
_FLAT = r"(?:[^{}]|\{[^{}]{0,200}+\})"
_VALUE_BEHIND = rf"(?i){_FLAT}{{0,600}}?{_VALUE_KEY}"
_VALUE_BEFORE = rf"(?i)\{{{_FLAT}{{0,600}}?{_VALUE_KEY}"
_VALUE_KEYS = frozenset({"value", "val", "v", "content", "data", "text", "default"})
_ARRAY_PAIR = r'[\[,]\s{0,50}+\[\s{0,50}+(\\{0,15}+)"([^"\\\r\n]{1,100}+)\1"\s{0,20}+,\s{0,20}+(?=\\{0,15}+")'
_MAX_OBJECT_CHARS = 600
"""How far the name and the value of a pair may stand apart."""
_ELEMENT = r"<([\w:.-]{1,60}+)(?:\s[^<>]{0,200}+)?>(<!\[CDATA\[.*?(?:\]\]>|\Z)|[^<\s][^<]*)"
_TAG = r"<([\w:.-]{1,60}+)\s([^<>]{1,1000}+)>([^<]{0,4000})"
_ATTRIBUTE = r"""([\w:.-]{1,60}+)\s{0,5}+=\s{0,5}+("[^"]*"|'[^']*'|[^\s"'>]+)"""
_SIBLINGS = r"<(?:\w{1,30}:)?(?:key|name)>([^<]{1,100}+)</[\w:]{1,40}+>\s{0,50}+<[\w:]{1,40}+>([^<]+)"


def hide_json(text: str) -> tuple[str, int]:
    """By key, and in pairs: `{"name": "password", "value": …}` in any order, `[["Cookie", …]]`."""
    if '"' not in text:
        return text, 0
    text, total = _by_key(text)
    text, count = _by_array_pair(text)
    return text, total + count


def hide_markup(text: str) -> tuple[str, int]:
    """By element, by attribute (`<param name="password" value=…>`, `<input type="password" …>`), by neighbour."""
    if "<" not in text or ">" not in text:
        return text, 0
    total = 0

    def hide(found: re.Match[str]) -> str:
        nonlocal total
        if not is_secret(found[1].rpartition(":")[2], found[2]):
            return found[0]
        total += 1
        return found[0][: found.start(2) - found.start()] + MARK

    def hide_attribute(found: re.Match[str]) -> str:
        nonlocal total
        shown, count = _labelled(found)
        total += count
        return shown

    text = compiled(_ELEMENT).sub(hide, text)
    if "=" in text:
        text = compiled(_TAG).sub(hide_attribute, text)
    return compiled(_SIBLINGS).sub(hide, text), total


def _labelled(found: re.Match[str]) -> tuple[str, int]:
    """A tag whose attribute names what another attribute, or the element, holds."""
    attributes = list(compiled(_ATTRIBUTE).finditer(found[2]))
    given = {one[1].lower(): one[2].strip("\"'") for one in attributes}
    labels = [given[each] for each in ("name", "key", "id", "type") if each in given]
    for one in attributes:
        value = one[2].strip("\"'")
        if one[1].lower() in _VALUE_KEYS and any(is_secret(label, value) for label in labels):
            start = found.start(2) - found.start() + one.start(2)
            return found[0][:start] + f'"{MARK}"' + found[0][start + len(one[2]) :], 1
    inner = found[3].strip()
    if inner and any(is_secret(given[each], inner) for each in ("name", "key", "id") if each in given):
        return found[0][: found.start(3) - found.start()] + MARK, 1
    return found[0], 0


def _by_key(text: str) -> tuple[str, int]:
    """Values of secret keys, and of objects that name what they hold: `name` (key, field …) beside `value`."""
    places: dict[int, tuple[int, str]] = {}
    nesting = _Nesting(text)
    at = 0
    pattern = compiled(_JSON_KEY)
    while (found := pattern.search(text, at)) is not None:
        at = found.end()
        name = found[1] if "\\" not in found[1] else _unescaped(found[1])
        level = sensitivity(name)
        if level is not Sensitivity.HARMLESS:
            end = _value_end(nesting, at, found[2], level)
            if end > at and is_secret(name, text[at:end]):
                places[at] = end, found[2]
                at = end
                continue
        if name.lower() in _NAME_KEYS:
            place = _named(nesting, found)
            if place is not None:
                places[place[0]] = place[1], found[2]
    return _without(text, places)


def _named(nesting: _Nesting, found: re.Match[str]) -> tuple[int, int] | None:
    """Where the value stands that a `name` member names, if it has to be hidden."""
    text = nesting.text
    end = _string_end(text, found.end(), found[2])
    name = text[found.end() : end].strip('\\"')
    if not 0 < len(name) <= MAX_NAME_CHARS or sensitivity(name) is Sensitivity.HARMLESS:
        return None
    place = _value_beside(nesting, found.start(), end, found[2])
    return place if place is not None and is_secret(name, text[place[0] : place[1]]) else None


def _without(text: str, places: dict[int, tuple[int, str]]) -> tuple[str, int]:
    if not places:
        return text, 0
    pieces: list[str] = []
    done = 0
    for start, (end, escape) in sorted(places.items()):
        if start >= done:
            pieces += (text[done:start], f'{escape}"{MARK}{escape}"')
            done = end
    return "".join((*pieces, text[done:])), len(places)


def _value_beside(nesting: _Nesting, start: int, end: int, escape: str) -> tuple[int, int] | None:
    """Where the `value` member of the same object stands: behind the name within reach, else before it."""
    text = nesting.text
    opening = max(text.rfind("{", max(0, start - _MAX_OBJECT_CHARS), start), 0)
    behind = compiled(_VALUE_BEHIND).match(text, end)
    before = compiled(_VALUE_BEFORE).match(text, opening, start) if behind is None else None
    found = behind or before
    if found is None or found[1] != escape:
        return None
    value_end = _value_end(nesting, found.end(), escape, Sensitivity.SECRET)
    return (found.end(), value_end) if value_end > found.end() else None


def _by_array_pair(text: str) -> tuple[str, int]:
    pieces: list[str] = []
    done = count = at = 0
    pattern = compiled(_ARRAY_PAIR)
    while (found := pattern.search(text, at)) is not None:
        at = found.end()
        end = _string_end(text, at, found[1])
        if text[end : end + 50].lstrip()[:1] == "]" and is_secret(found[2], text[at:end]):
            pieces += (text[done:at], f'{found[1]}"{MARK}{found[1]}"')
            done = at = end
            count += 1
        else:
            at = found.start() + 1
    return ("".join((*pieces, text[done:])), count) if count else (text, 0)


def _value_end(nesting: _Nesting, start: int, escape: str, level: Sensitivity) -> int:
    """Where the value ends, or `start` to leave it: true, false, null, counts, and what is searched inside."""
    text = nesting.text
    if text.startswith(escape + '"', start):
        return _string_end(text, start, escape)
    if text.startswith(("{", "["), start):
        if level is Sensitivity.SUSPICIOUS or compiled(_SCHEMA).match(text, start):
            return start
        end = nesting.end(start)
        return start if level is Sensitivity.UNLESS_COUNT and not nesting.has_text(start, end) else end
    number = compiled(_JSON_NUMBER).match(text, start)
    return start if number is None or level is not Sensitivity.SECRET else number.end()


def _string_end(text: str, start: int, escape: str) -> int:
    if not text.startswith(escape + '"', start):
        return start
    if not escape:
        string = compiled(_JSON_STRING).match(text, start)
        return string.end() if string else start
    # JSON inside a JSON string: it ends at the next quote that is escaped just as often.
    close = re.compile(r"(?<!\\)" + re.escape(escape) + '"').search(text, start + len(escape) + 1)
    return close.end() if close else len(text)


class _Nesting:
    """Where the objects and arrays of a text end. A bracket is met once, however many stand around it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends: dict[int, int] = {}
        # Text that opens what it never closes, inside strings of what came before, could be walked again and again.
        self._left_chars = 20 * len(text)
        self._textless_until = 0

    def end(self, start: int) -> int:
        """Behind the bracket that closes the one at `start`; the end of the text where none does."""
        ends = self._ends
        if start not in ends and self._left_chars > 0:
            opened: list[int] = []
            for token in compiled(_JSON_NESTING).finditer(self.text, start):
                if token[0] in ("{", "["):
                    opened.append(token.start())
                elif token[0] in ("}", "]"):
                    ends[opened.pop()] = token.end()
                if not opened:
                    break
            ends.update(dict.fromkeys(opened, len(self.text)))
            self._left_chars -= ends.get(start, len(self.text)) - start
        return ends.get(start, len(self.text))

    def has_text(self, start: int, end: int) -> bool:
        if end <= self._textless_until:
            return False
        if compiled(_HAS_TEXT).search(self.text, start, end):
            return True
        self._textless_until = end
        return False


def _unescaped(name: str) -> str:
    try:
        return str(json.loads(f'"{name}"'))
    except ValueError:
        return name
