"""Two flows side by side: what a person compares first, as data and as text.

Values are compared as they were and shown as the reader may see them, so two tokens that differ are reported as
different without saying so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from dari.proxy import content_coding, headers
from dari.proxy.flow import Flow, Headers
from dari.proxy.formats import har
from dari.proxy.query import views
from dari.proxy.recording.bodies import BodyStore
from dari.text.redact import HIDING, Redactor

Path = tuple[str | int, ...]
# Aligning two long lists is quadratic; past this they are compared place by place.
_ALIGNED = 200


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""Stands for a value that one side does not have; JSON's null is a value."""


def differences(a: Any, b: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """(path, old, new) for each value that was added, removed or changed, in document order.

    A path into a list counts places of the old list, or of the new one where only that has the item.
    """
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            yield from differences(a.get(key, ABSENT), b.get(key, ABSENT), (*path, key))
    elif isinstance(a, list) and isinstance(b, list):
        yield from _list_differences(a, b, path)
    elif type(a) is not type(b) or a != b:
        yield path, a, b


def at(value: Any, path: Path) -> Any:
    """What stands at the path, ABSENT when nothing does."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value


def path_text(path: Path) -> str:
    """`$.items[2].name`, with quotes around keys that need them."""
    text = "$"
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if step.isidentifier() else f"[{step!r}]"
    return text


def _list_differences(a: list[Any], b: list[Any], path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if len(a) == len(b) or max(len(a), len(b)) > _ALIGNED:
        for place in range(max(len(a), len(b))):
            old = a[place] if place < len(a) else ABSENT
            new = b[place] if place < len(b) else ABSENT
            yield from differences(old, new, (*path, place))
        return
    import difflib

    matcher = difflib.SequenceMatcher(None, [repr(one) for one in a], [repr(one) for one in b], autojunk=False)
    for kind, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        if kind == "equal":
            continue
        paired = min(a_to - a_from, b_to - b_from)
        for offset in range(paired):
            yield from differences(a[a_from + offset], b[b_from + offset], (*path, a_from + offset))
        for place in range(a_from + paired, a_to):
            yield (*path, place), a[place], ABSENT
        for place in range(b_from + paired, b_to):
            yield (*path, place), ABSENT, b[place]


MAX_CHANGES = 200
MAX_TEXT_LINES = 2000
MAX_VALUE_CHARS = 300
HIDDEN = "differs in a part that is hidden"

Kind = Literal["added", "removed", "changed"]


class FieldChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """`added` is only in b, `removed` only in a; `where` names the header, query key or JSON path."""

    part: str
    kind: Kind
    where: str = ""
    a: Any = None
    b: Any = None
    note: str | None = None


class FlowDiff(msgspec.Struct, frozen=True):
    a: int
    b: int
    is_same: bool
    changes: list[FieldChange]
    text: str
    left_out: int = 0


def diff(a: Flow, b: Flow, bodies: BodyStore | None = None, redactor: Redactor = HIDING) -> FlowDiff:
    """What changed from a to b, the first 200 changes of it."""
    found = list(_changes(a, b, bodies, redactor))
    shown = found[:MAX_CHANGES]
    head = [f"--- {_title(a, redactor)}", f"+++ {_title(b, redactor)}"]
    lines = [_line(change) for change in shown] or ["no difference"]
    if len(found) > len(shown):
        lines.append(f"… {len(found) - len(shown)} more changes")
    return FlowDiff(a.id, b.id, not found, shown, "\n".join(head + lines), len(found) - len(shown))


def _changes(a: Flow, b: Flow, bodies: BodyStore | None, redactor: Redactor) -> Iterator[FieldChange]:
    yield from _plain_value("method", a.method, b.method)
    yield from _urls(a, b, redactor)
    yield from _plain_value("http_version", a.http_version, b.http_version)
    yield from _headers("request_header", a.request_headers, b.request_headers, redactor)
    yield from _bodies("request_body", a, b, True, bodies, redactor)
    yield from _plain_value("status", a.status, b.status)
    yield from _plain_value("event", a.event, b.event)
    yield from _plain_value("error", a.error, b.error)
    yield from _headers("response_header", a.response_headers, b.response_headers, redactor)
    yield from _bodies("response_body", a, b, False, bodies, redactor)


def _plain_value(part: str, a: Any, b: Any) -> Iterator[FieldChange]:
    yield from _value(part, "", a, b, a, b)


def _value(
    part: str, where: str, a: Any, b: Any, shown_a: Any, shown_b: Any, none: Any = None
) -> Iterator[FieldChange]:
    """At most one change; `none` is what stands for a side that has no such thing."""
    if a == b and type(a) is type(b):
        return
    if a is none:
        yield FieldChange(part, "added", where, b=_short(shown_b))
    elif b is none:
        yield FieldChange(part, "removed", where, a=_short(shown_a))
    else:
        note = HIDDEN if shown_a == shown_b else None
        yield FieldChange(part, "changed", where, _short(shown_a), _short(shown_b), note)


def _urls(a: Flow, b: Flow, redactor: Redactor) -> Iterator[FieldChange]:
    given = [a.url, b.url, redactor.url(a.url), redactor.url(b.url)]
    for name in ("scheme", "netloc", "path", "fragment"):
        values = [getattr(har.split_url(url), name) for url in given]
        yield from _value("url", name.replace("netloc", "host"), *values)
    yield from _lists("query", *map(_query, given))


def _headers(part: str, a: Headers, b: Headers, redactor: Redactor) -> Iterator[FieldChange]:
    yield from _lists(part, *(_named(block) for block in (a, b, redactor.headers(a), redactor.headers(b))))


Lists = dict[str, list[str]]


def _lists(part: str, a: Lists, b: Lists, shown_a: Lists, shown_b: Lists) -> Iterator[FieldChange]:
    for name in dict.fromkeys([*a, *b]):
        values = [_joined(one.get(name)) for one in (a, b, shown_a, shown_b)]
        yield from _value(part, name, *values)


def _joined(values: list[str] | None) -> str | None:
    return None if values is None else ", ".join(values)


def _query(url: str) -> Lists:
    found: Lists = {}
    for name, value in har.query_pairs(url):
        found.setdefault(name, []).append(value)
    return found


def _named(block: Headers) -> Lists:
    found: Lists = {}
    for name, value in block:
        found.setdefault(headers.text(name).lower(), []).append(headers.text(value))
    return found


def _bodies(
    part: str, a: Flow, b: Flow, from_client: bool, bodies: BodyStore | None, redactor: Redactor
) -> Iterator[FieldChange]:
    raw_a, raw_b = (views.decoded(flow, from_client, bodies).data for flow in (a, b))
    if raw_a == raw_b:
        return
    json_a, json_b = (views.json_of(flow, from_client, bodies) for flow in (a, b))
    text_a, text_b = (_text(raw, flow, from_client, redactor) for raw, flow in ((raw_a, a), (raw_b, b)))
    if (found := _json_differences(json_a, json_b)) is not None:
        shown_a, shown_b = _parsed(text_a), _parsed(text_b)
        for path, old, new in found:
            yield from _value(part, path_text(path), old, new, at(shown_a, path), at(shown_b, path), ABSENT)
    elif not raw_a or not raw_b:
        left, right = (
            text if text is not None else f"{len(raw)} bytes" for text, raw in ((text_a, raw_a), (text_b, raw_b))
        )
        yield from _plain_value(part, left or None, right or None)
    else:
        difference = "not text" if text_a is None or text_b is None else _unified(text_a, text_b)
        yield FieldChange(part, "changed", "", _sized(raw_a, text_a), _sized(raw_b, text_b), difference)


def _json_differences(a: object, b: object) -> list[tuple[Path, Any, Any]] | None:
    """None when one of them is not JSON, or nested too deep to walk."""
    if msgspec.UNSET in (a, b):
        return None
    try:
        return list(differences(a, b))
    except RecursionError:
        return None


def _sized(raw: bytes, text: str | None) -> str:
    """Rough for a text: how much longer it is tells how much longer the password in it is."""
    return f"{len(raw)} bytes" if text is None else f"about {views.rough(len(raw))} bytes"


def _text(raw: bytes, flow: Flow, from_client: bool, redactor: Redactor) -> str | None:
    head = views.message(flow, from_client)[1]
    found = content_coding.text_of(raw, head)
    return None if found is None else redactor.whole_body(found[0], headers.mime(head))


def _parsed(text: str | None) -> Any:
    try:
        return msgspec.json.decode(text or "")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return "<hidden>"


def _unified(a: str, b: str) -> str:
    import difflib

    # SequenceMatcher is quadratic: past this many lines only the beginning is compared.
    left, right = a.splitlines()[:MAX_TEXT_LINES], b.splitlines()[:MAX_TEXT_LINES]
    lines = [line[:MAX_VALUE_CHARS] for line in difflib.unified_diff(left, right, lineterm="", n=1)][2:]
    if not lines:
        return HIDDEN if len(a) < 10**6 else "differs further on"
    return "\n".join(lines[:100]) + (f"\n… {len(lines) - 100} more lines" if len(lines) > 100 else "")


def _short(value: Any) -> Any:
    if value is ABSENT:  # the redactor took the place itself away
        return "<hidden>"
    if isinstance(value, str):
        return value if len(value) <= MAX_VALUE_CHARS else f"{value[:MAX_VALUE_CHARS]}…({len(value)} characters)"
    if isinstance(value, dict | list):
        text = msgspec.json.encode(value).decode()
        return value if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…({len(text)} characters)"
    return value


def _title(flow: Flow, redactor: Redactor) -> str:
    return f"#{flow.id} {flow.method} {redactor.url(flow.url)[:MAX_VALUE_CHARS]} {flow.status or '-'}"


def _line(change: FieldChange) -> str:
    name = f"{change.part} {change.where}".strip()
    note = f" ({change.note})" if change.note and "\n" not in change.note else ""
    more = f"\n{change.note}" if change.note and "\n" in change.note else ""
    match change.kind:
        case "added":
            return f"+ {name}: {_plain(change.b)}{note}"
        case "removed":
            return f"- {name}: {_plain(change.a)}{note}"
        case _:
            return f"~ {name}: {_plain(change.a)} -> {_plain(change.b)}{note}{more}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
