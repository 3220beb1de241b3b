"""The filter language: one line of text that says which flows a person wants to see.

    filter = all ("or" all)*                host:api.test or host:cdn.test
    all    = one ("and"? one)*              side by side, everything must hold
    one    = ("-" | "not") one | "(" filter ")" | key ":" value | text

A word without a key is text in the URL. Quotes keep spaces and signs together: `body:"not found"`. Text is compared
without regard to case. `KEYS` holds what may stand before the colon, with the sentence that help shows.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import get_args

from msgspec import Struct

from dari.errors import InvalidInput
from dari.proxy.flow import Event
from dari.proxy.query import filters, views
from dari.proxy.query.filters import Test, TrafficFilter
from dari.proxy.recording.bodies import BodyStore
from dari.text.redact import HIDING, Redactor

MAX_FILTER_CHARS = 1000
MAX_DEPTH = 20
_KEY = re.compile(r"([A-Za-z_]+):")
_NUMBER = re.compile(r"(>=|<=|>|<)?\s*(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_AGO = re.compile(r"(\d+(?:\.\d+)?)([smhd])", re.IGNORECASE)
_TIME_UNITS = {"": 1.0, "ms": 1.0, "s": 1000.0, "m": 60_000.0}
_SIZE_UNITS = {"": 1.0, "b": 1.0, "k": 1024.0, "kb": 1024.0, "m": 1024.0**2, "mb": 1024.0**2}
_AGO_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


class FlowFilterError(InvalidInput):
    """`start` and `end` are the characters of the filter that are wrong."""

    def __init__(self, message: str, hint: str, start: int, end: int) -> None:
        super().__init__(f"{message}, at character {start + 1} of the filter", hint)
        self.problem = message
        self.start = start
        self.end = end


class Term(Struct, frozen=True):
    """One condition: a key of `KEYS` with its value."""

    key: str
    value: str
    start: int
    end: int


class Not(Struct, frozen=True):
    inner: Node


class All(Struct, frozen=True):
    parts: tuple[Node, ...]


class Either(Struct, frozen=True):
    parts: tuple[Node, ...]


Node = Term | Not | All | Either
MakeTest = Callable[[str, "BodyStore | None", Redactor], Test]


class FilterKey(Struct, frozen=True):
    """What may stand before a colon."""

    example: str
    meaning: str
    test: MakeTest


def parse(text: str) -> Node | None:
    """The filter as a tree, every value of it checked; nothing for an empty text."""
    if len(text) > MAX_FILTER_CHARS:
        raise FlowFilterError(f"a filter may have {MAX_FILTER_CHARS} characters, got {len(text)}", "shorten it", 0, 0)
    words = _Words(text)
    if words.is_done:
        return None
    node = _either(words, 0)
    if not words.is_done:
        start, end, _ = words.take()
        raise FlowFilterError("a ) without its (", "remove it, or put it in quotes", start, end)
    return node


def test_of(text: str, bodies: BodyStore | None = None, redactor: Redactor = HIDING) -> Test:
    """A function that says whether a flow fits the filter."""
    node = parse(text)
    return _test(node, bodies, redactor) if node is not None else lambda _: True


def narrow(text: str) -> TrafficFilter:
    """Conditions that every flow of the filter fulfils and that the database knows: it then reads fewer rows."""
    node = parse(text)
    parts = node.parts if isinstance(node, All) else (node,)
    found = {part.key: part.value for part in parts if isinstance(part, Term) and part.key in ("host", "status")}
    return TrafficFilter(**found)  # type: ignore[arg-type]


def _test(node: Node, bodies: BodyStore | None, redactor: Redactor) -> Test:
    match node:
        case Term(key, value):
            return KEYS[key].test(value, bodies, redactor)
        case Not(inner):
            test = _test(inner, bodies, redactor)
            return lambda flow: not test(flow)
        case All(parts):
            every = [_test(part, bodies, redactor) for part in parts]
            return lambda flow: all(test(flow) for test in every)
        case Either(parts):
            some = [_test(part, bodies, redactor) for part in parts]
            return lambda flow: any(test(flow) for test in some)


class _Words:
    """The words of a filter with their places. A parenthesis inside a word belongs to it while it is closed there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._at = 0
        self._skip()

    @property
    def is_done(self) -> bool:
        return self._at >= len(self.text)

    @property
    def ahead(self) -> str:
        """The next word in lower case: a parenthesis, `and`, `or`, `not`, `-`, or empty for everything else."""
        sign = self.text[self._at : self._at + 1]
        if sign in ("(", ")"):
            return sign
        if sign == "-" and self.text[self._at + 1 : self._at + 2].strip():
            return "-"
        word = self.text[self._at : self._end()].lower()
        return word if word in ("and", "or", "not") else ""

    @property
    def place(self) -> int:
        return self._at

    def take(self) -> tuple[int, int, str]:
        """Step over the next word: from where to where it goes, and what it says without quotes."""
        start = self._at
        if self.text[start] in "()" or self.ahead == "-":
            self._at += 1
        else:
            self._at = self._end()
        end = self._at
        self._skip()
        return start, end, self.text[start:end]

    def _skip(self) -> None:
        while self._at < len(self.text) and self.text[self._at].isspace():
            self._at += 1

    def _end(self) -> int:
        at, depth, text = self._at, 0, self.text
        while at < len(text) and not text[at].isspace():
            if text[at] == '"' and (at == self._at or text[at - 1] == ":"):
                return _closing_quote(text, at) + 1
            if text[at] == ")" and depth == 0:
                break
            depth += (text[at] == "(") - (text[at] == ")")
            at += 1
        return at


def _closing_quote(text: str, start: int) -> int:
    at = start + 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise FlowFilterError('a " without its end', 'close the quotes, or write \\" for the sign', start, len(text))
    return at


def _either(words: _Words, depth: int) -> Node:
    parts = [_all(words, depth)]
    while words.ahead == "or":
        words.take()
        parts.append(_all(words, depth))
    return parts[0] if len(parts) == 1 else Either(tuple(parts))


def _all(words: _Words, depth: int) -> Node:
    parts = [_one(words, depth)]
    while not words.is_done and words.ahead not in ("or", ")"):
        if words.ahead == "and":
            words.take()
        parts.append(_one(words, depth))
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _one(words: _Words, depth: int) -> Node:
    ahead = words.ahead
    if words.is_done or ahead in ("and", "or", ")"):
        start = max(0, words.place - 1) if words.is_done else words.place
        raise FlowFilterError("a condition is missing", "such as host:api.test or status:5xx", start, start + 1)
    start, end, word = words.take()
    if depth >= MAX_DEPTH:
        raise FlowFilterError(f"more than {MAX_DEPTH} levels of ( and not", "write a simpler filter", start, end)
    if ahead in ("-", "not"):
        return Not(_one(words, depth + 1))
    if ahead == "(":
        node = _either(words, depth + 1)
        if words.ahead != ")":
            raise FlowFilterError("a ( without its )", "close it, or put it in quotes", start, start + 1)
        words.take()
        return node
    return _term(word, start, end)


def _term(word: str, start: int, end: int) -> Term:
    found = _KEY.match(word)
    key, value = (found[1].lower(), word[found.end() :]) if found else ("url", word)
    if key not in KEYS:
        # An address is text, not a key: http://host and localhost:8080.
        if not (value.startswith("//") or re.match(r"\d+(?:[/?#]|$)", value)):
            raise FlowFilterError(f"there is no key {key!r}", _suggest(key), start, start + len(key))
        key, value = "url", word
    if value.startswith('"'):
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    if not value:
        raise FlowFilterError(f"{key}: needs a value", f"such as {KEYS[key].example}", start, end)
    try:
        KEYS[key].test(value, None, HIDING)
    except InvalidInput as error:
        raise FlowFilterError(error.message, error.hint, start + (found.end() if found else 0), end) from error
    return Term(key, value, start, end)


def _suggest(key: str) -> str:
    near = get_close_matches(key, KEYS, 1)
    keys = f"keys: {', '.join(KEYS)}; text with a colon goes in quotes"
    return f"did you mean {near[0]}:? {keys}" if near else keys


def _by(name: str) -> MakeTest:
    """The condition of this name in `TrafficFilter`."""
    return lambda value, bodies, redactor: filters.test_of(TrafficFilter(**{name: value}), bodies, redactor)  # type: ignore[arg-type]


def _is(value: str, bodies: BodyStore | None, redactor: Redactor) -> Test:
    test = STATES.get(value.lower())
    if test is None:
        raise InvalidInput(f"is: must be one of {', '.join(STATES)}, got {value!r}", "such as is:error")
    return test


def _event(value: str, bodies: BodyStore | None, redactor: Redactor) -> Test:
    if value.lower() not in get_args(Event):
        raise InvalidInput(f"event: must be one of {', '.join(get_args(Event))}, got {value!r}", "such as event:tunnel")
    return filters.test_of(TrafficFilter(event=value.lower()))


def _rule(value: str, bodies: BodyStore | None, redactor: Redactor) -> Test:
    return (lambda flow: bool(flow.rule_ids)) if value == "*" else (lambda flow: value in flow.rule_ids)


def _time(value: str, bodies: BodyStore | None, redactor: Redactor) -> Test:
    compare = _comparison("time", value, _TIME_UNITS, "such as time:>500ms or time:<2s")
    return lambda flow: flow.total_ms is not None and compare(flow.total_ms)


def _size(value: str, bodies: BodyStore | None, redactor: Redactor) -> Test:
    # As lists show it: the exact size of a body tells the length of what is hidden in it.
    compare = _comparison("size", value, _SIZE_UNITS, "such as size:>100k or size:<1m")
    return lambda flow: compare(views.shown_size(flow.response_body, flow.response_headers, redactor))


def _comparison(key: str, value: str, units: Mapping[str, float], hint: str) -> Callable[[float], bool]:
    found = _NUMBER.fullmatch(value)
    factor = units.get(found[3].lower()) if found else None
    if found is None or factor is None:
        raise InvalidInput(f"{key}: must be a number with a sign before it, got {value!r}", hint)
    bound = float(found[2]) * factor
    match found[1]:
        case ">":
            return lambda number: number > bound
        case "<":
            return lambda number: number < bound
        case "<=":
            return lambda number: number <= bound
    return lambda number: number >= bound


def _since(value: str, bodies: BodyStore | None, redactor: Redactor) -> Test:
    if found := _AGO.fullmatch(value):
        start_s = time.time() - float(found[1]) * _AGO_UNITS[found[2].lower()]
    else:
        try:
            start_s = datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError) as error:
            raise InvalidInput(
                f"since: must be a time such as 10m, 2h or 2026-11-17T18:00, got {value!r}", "such as since:10m"
            ) from error
    return lambda flow: flow.started_unix_ms >= start_s * 1000


STATES: dict[str, Test] = {
    "error": filters.is_error,
    "running": lambda flow: flow.state != "done",
    "done": lambda flow: flow.state == "done",
    "websocket": lambda flow: flow.frames is not None,
    "stream": lambda flow: filters.mime_of(flow) == "text/event-stream",
    "tunnel": lambda flow: flow.is_encrypted,
    "replay": lambda flow: flow.replay_of is not None,
    "changed": lambda flow: bool(flow.rule_ids),
}
KEYS: dict[str, FilterKey] = {
    "host": FilterKey(
        "host:example.com", "the host or a sub-domain of it; *.example.com for sub-domains only", _by("host")
    ),
    "method": FilterKey("method:POST,PUT", "one of these methods", _by("method")),
    "status": FilterKey("status:5xx", "404, 4xx, 400-499, 500-, or several with commas", _by("status")),
    "url": FilterKey("url:/login", "text in the URL; a word without a key means the same", _by("url_contains")),
    "regex": FilterKey(r"regex:/users/\d+$", "a regular expression found in the URL", _by("url_regex")),
    "type": FilterKey("type:json", "text in the media type of the response, or of the request", _by("mime")),
    "header": FilterKey('header:"x-cache: hit"', "text in a header line of either direction", _by("header_contains")),
    "body": FilterKey('body:"not found"', "text in a decoded body or a WebSocket message", _by("body_contains")),
    "time": FilterKey("time:>500ms", "how long it took, in ms, s or m", _time),
    "size": FilterKey("size:>100k", "bytes of the response, in k or m", _size),
    "since": FilterKey("since:10m", "began at most this long ago (s, m, h, d), or since a date", _since),
    "process": FilterKey("process:curl", "text in the client's program name, or its pid", _by("process")),
    "rule": FilterKey("rule:*", "changed by the rule with this id, or by any", _rule),
    "is": FilterKey("is:error", "one of " + ", ".join(STATES), _is),
    "event": FilterKey("event:tunnel", "how it was answered: " + ", ".join(get_args(Event)), _event),
}
EXAMPLES = (
    "host:api.example.com status:4xx,5xx",
    "method:POST -host:localhost",
    "(type:json or type:graphql) time:>500ms",
)
