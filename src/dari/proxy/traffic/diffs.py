"""Two flows side by side: what a person compares first, as data and as text.

Values are compared as they were and shown as the reader may see them, so two tokens that differ are reported as
different without being told.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from dari.proxy.flow import Flow, Headers
from dari.proxy.traffic import coding, headers, urls, views
from dari.proxy.traffic.bodies import Bodies
from dari.proxy.traffic.json_diffs import ABSENT, at, differences, path_text
from dari.proxy.traffic.redactor import HIDING, Redactor

MOST_CHANGES = 200
TEXT_LINES = 2000
VALUE_CHARS = 300
HIDDEN = "differs in a part that is hidden"

Kind = Literal["added", "removed", "changed"]


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """`added` is only in b, `removed` only in a; `where` names the header, query key or JSON path."""

    part: str
    kind: Kind
    where: str = ""
    a: Any = None
    b: Any = None
    note: str | None = None


class Diff(msgspec.Struct, frozen=True):
    a: int
    b: int
    is_same: bool
    changes: list[Change]
    text: str
    left_out: int = 0


def diff(a: Flow, b: Flow, bodies: Bodies | None = None, redactor: Redactor = HIDING) -> Diff:
    """What changed from a to b, the first 200 changes of it."""
    found = list(_changes(a, b, bodies, redactor))
    shown = found[:MOST_CHANGES]
    head = [f"--- {_title(a, redactor)}", f"+++ {_title(b, redactor)}"]
    lines = [_line(change) for change in shown] or ["no difference"]
    if len(found) > len(shown):
        lines.append(f"… {len(found) - len(shown)} more changes")
    return Diff(a.id, b.id, not found, shown, "\n".join(head + lines), len(found) - len(shown))


def _changes(a: Flow, b: Flow, bodies: Bodies | None, redactor: Redactor) -> Iterator[Change]:
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


def _plain_value(part: str, a: Any, b: Any) -> Iterator[Change]:
    yield from _value(part, "", a, b, a, b)


def _value(part: str, where: str, a: Any, b: Any, shown_a: Any, shown_b: Any, none: Any = None) -> Iterator[Change]:
    """At most one change; `none` is what stands for a side that has no such thing."""
    if a == b and type(a) is type(b):
        return
    if a is none:
        yield Change(part, "added", where, b=_short(shown_b))
    elif b is none:
        yield Change(part, "removed", where, a=_short(shown_a))
    else:
        note = HIDDEN if shown_a == shown_b else None
        yield Change(part, "changed", where, _short(shown_a), _short(shown_b), note)


def _urls(a: Flow, b: Flow, redactor: Redactor) -> Iterator[Change]:
    given = [a.url, b.url, redactor.url(a.url), redactor.url(b.url)]
    for name in ("scheme", "netloc", "path", "fragment"):
        values = [getattr(urls.parts(url), name) for url in given]
        yield from _value("url", name.replace("netloc", "host"), *values)
    yield from _lists("query", *map(_query, given))


def _headers(part: str, a: Headers, b: Headers, redactor: Redactor) -> Iterator[Change]:
    yield from _lists(part, *(_named(block) for block in (a, b, redactor.headers(a), redactor.headers(b))))


Lists = dict[str, list[str]]


def _lists(part: str, a: Lists, b: Lists, shown_a: Lists, shown_b: Lists) -> Iterator[Change]:
    for name in dict.fromkeys([*a, *b]):
        values = [_joined(one.get(name)) for one in (a, b, shown_a, shown_b)]
        yield from _value(part, name, *values)


def _joined(values: list[str] | None) -> str | None:
    return None if values is None else ", ".join(values)


def _query(url: str) -> Lists:
    found: Lists = {}
    for name, value in urls.query(url):
        found.setdefault(name, []).append(value)
    return found


def _named(block: Headers) -> Lists:
    found: Lists = {}
    for name, value in block:
        found.setdefault(headers.text(name).lower(), []).append(headers.text(value))
    return found


def _bodies(
    part: str, a: Flow, b: Flow, from_client: bool, bodies: Bodies | None, redactor: Redactor
) -> Iterator[Change]:
    raw_a, raw_b = (views.decoded(flow, from_client, bodies).data for flow in (a, b))
    if raw_a == raw_b:
        return
    json_a, json_b = (views.json_of(flow, from_client, bodies) for flow in (a, b))
    text_a, text_b = (_text(raw, flow, from_client, redactor) for raw, flow in ((raw_a, a), (raw_b, b)))
    if msgspec.UNSET not in (json_a, json_b):
        shown_a, shown_b = _parsed(text_a), _parsed(text_b)
        for path, old, new in differences(json_a, json_b):
            yield from _value(part, path_text(path), old, new, at(shown_a, path), at(shown_b, path), ABSENT)
    elif not raw_a or not raw_b:
        left, right = (
            text if text is not None else f"{len(raw)} bytes" for text, raw in ((text_a, raw_a), (text_b, raw_b))
        )
        yield from _plain_value(part, left or None, right or None)
    else:
        told = "not text" if text_a is None or text_b is None else _unified(text_a, text_b)
        yield Change(part, "changed", "", _sized(raw_a, text_a), _sized(raw_b, text_b), told)


def _sized(raw: bytes, text: str | None) -> str:
    """Rough for a text: how much longer it is tells how much longer the password in it is."""
    return f"{len(raw)} bytes" if text is None else f"about {views.rough(len(raw))} bytes"


def _text(raw: bytes, flow: Flow, from_client: bool, redactor: Redactor) -> str | None:
    head = views.message(flow, from_client)[1]
    found = coding.text_of(raw, head)
    return None if found is None else redactor.body(found[0], headers.mime(head))


def _parsed(text: str | None) -> Any:
    try:
        return msgspec.json.decode(text or "")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return "<hidden>"


def _unified(a: str, b: str) -> str:
    # SequenceMatcher is quadratic: past this many lines only the beginning is compared.
    left, right = a.splitlines()[:TEXT_LINES], b.splitlines()[:TEXT_LINES]
    lines = [line[:VALUE_CHARS] for line in difflib.unified_diff(left, right, lineterm="", n=1)][2:]
    if not lines:
        return HIDDEN if len(a) < 10**6 else "differs further on"
    return "\n".join(lines[:100]) + (f"\n… {len(lines) - 100} more lines" if len(lines) > 100 else "")


def _short(value: Any) -> Any:
    if value is ABSENT:  # the redactor took the place itself away
        return "<hidden>"
    if isinstance(value, str):
        return value if len(value) <= VALUE_CHARS else f"{value[:VALUE_CHARS]}…({len(value)} characters)"
    if isinstance(value, dict | list):
        text = msgspec.json.encode(value).decode()
        return value if len(text) <= VALUE_CHARS else f"{text[:VALUE_CHARS]}…({len(text)} characters)"
    return value


def _title(flow: Flow, redactor: Redactor) -> str:
    return f"#{flow.id} {flow.method} {redactor.url(flow.url)[:VALUE_CHARS]} {flow.status or '-'}"


def _line(change: Change) -> str:
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
