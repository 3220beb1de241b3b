"""Which flows a reader asks for: one description, tested on a flow in memory and turned into SQL for stored ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

import msgspec

from dari.errors import InvalidInput
from dari.proxy import content_coding, headers
from dari.proxy.flow import Flow
from dari.proxy.query import views
from dari.proxy.recording.bodies import BodyStore
from dari.text.redact import HIDING, MAX_CHARS, REVEALED, Redactor
from dari.text.regex import GuardedRegex

MAX_PATTERN_CHARS = 300
MAX_REGEX_S = 0.5
"""For one filter, over all URLs: a pattern that needs more is refused while the list is made."""

BODY_SEARCH_BYTES = 1024 * 1024
_STATUS = re.compile(r"(\d{3})(?:-(\d{3})?)?|([1-9])xx", re.IGNORECASE)

Test = Callable[[Flow], bool]


class TrafficFilter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Every condition that is set must hold. Text is compared without regard to case."""

    host: str | None = None
    """The host or any sub-domain of it; `*.example.com` for sub-domains only; with a port, that port."""
    method: str | None = None
    """One method, or several with commas."""
    status: str | int | None = None
    """404, 4xx, 400-499, 500-, or several with commas."""
    url_contains: str | None = None
    url_regex: str | None = None
    header_contains: str | None = None
    """In a `name: value` line of either direction."""
    body_contains: str | None = None
    """In the decoded text of either direction, or in a WebSocket message."""
    mime: str | None = None
    """In the media type of the response, or of the request."""
    since_unix_ms: int | None = None
    has_error: bool | None = None
    """It failed, or was answered with 400 or above."""
    event: str | None = None
    process: str | None = None
    """In the name of the process, or its pid."""
    query: str | None = None
    """A filter as a person types it: `dari.proxy.query.language`."""


def is_error(flow: Flow) -> bool:
    if flow.error is not None or (flow.status is not None and flow.status >= 400):
        return True
    return "error" in (flow.request_body.outcome, flow.response_body.outcome)


def test_of(wanted: TrafficFilter, bodies: BodyStore | None = None, redactor: Redactor = HIDING) -> Test:
    """A function that says whether a flow is wanted; cheap conditions first.

    Text must be found both as it was and as the reader may see it: otherwise a search would tell, letter by letter,
    the secret that the redactor hides.
    """
    tests: list[Test] = []
    since, event, has_error = wanted.since_unix_ms, wanted.event, wanted.has_error
    methods = _words((wanted.method or "").upper())
    process, mime = (wanted.process or "").lower(), (wanted.mime or "").lower()
    if since is not None:
        tests.append(lambda flow: flow.started_unix_ms >= since)
    if wanted.method is not None:
        tests.append(lambda flow: flow.method.upper() in methods)
    if event is not None:
        tests.append(lambda flow: flow.event == event)
    if wanted.status is not None:
        tests.append(_status_test(status_ranges(wanted.status)))
    if has_error is not None:
        tests.append(lambda flow: is_error(flow) is has_error)
    if wanted.host is not None:
        tests.append(_host_test(wanted.host))
    if process:
        tests.append(lambda flow: process in _process(flow))
    if mime:
        tests.append(lambda flow: mime in mime_of(flow))
    if wanted.url_contains is not None:
        tests.append(_url_test(wanted.url_contains.lower(), redactor))
    if wanted.url_regex is not None:
        tests.append(
            _regex_test(
                GuardedRegex(wanted.url_regex, ignore_case=True, max_chars=MAX_PATTERN_CHARS, total_s=MAX_REGEX_S),
                redactor,
            )
        )
    if wanted.header_contains is not None:
        tests.append(_header_test(wanted.header_contains.lower(), redactor))
    if wanted.body_contains is not None:
        tests.append(_body_test(wanted.body_contains.lower(), bodies, redactor))
    if wanted.query is not None:
        tests.append(_language().test_of(wanted.query, bodies, redactor))
    return lambda flow: all(test(flow) for test in tests)


def quick_part(wanted: TrafficFilter) -> TrafficFilter:
    """The conditions that take a few microseconds: no regular expression, and neither headers nor bodies are read."""
    return msgspec.structs.replace(wanted, url_regex=None, header_contains=None, body_contains=None, query=None)


def sql_of(wanted: TrafficFilter) -> tuple[str, list[Any]]:
    """Conditions on the columns of `flows` that every wanted row fulfils; others may, too, so test them again."""
    conditions: list[str] = []
    values: list[Any] = []
    if wanted.since_unix_ms is not None:
        conditions.append("started_unix_ms >= ?")
        values.append(max(-(2**63), min(wanted.since_unix_ms, 2**63 - 1)))  # what SQLite can compare with
    if wanted.host is not None:
        # Names are stored backwards (`moc.elpmaxe.`), so a domain with all below it is one range.
        key = host_key(_split_port(wanted.host.lower().removeprefix("*."))[0])
        conditions.append("host >= ? AND host < ?")
        values += [key, key + "\U0010ffff"]
    if wanted.status is not None:
        ranges = status_ranges(wanted.status)
        conditions.append("(" + " OR ".join("status BETWEEN ? AND ?" for _ in ranges) + ")")
        values += [bound for pair in ranges for bound in pair]
    if wanted.query is not None:
        condition, more = sql_of(_language().narrow(wanted.query))
        conditions.append(condition)
        values += more
    return " AND ".join(conditions) or "1", values


def _language() -> ModuleType:
    from dari.proxy.query import language  # it is made of the conditions here

    return language


def columns_of(flow: Flow) -> tuple[int, int, str, int | None]:
    """What `sql_of` compares: id, started_unix_ms, host, status."""
    return flow.id, flow.started_unix_ms, _authority_key(flow.authority), flow.status


@lru_cache(maxsize=1024)
def _authority_key(authority: str) -> str:
    return host_key(_split_port(authority)[0])


def host_key(host: str) -> str:
    return host[::-1].encode("utf-8", "replace").decode() + "."


def mime_of(flow: Flow) -> str:
    return headers.mime(flow.response_headers) or headers.mime(flow.request_headers)


def status_ranges(wanted: str | int) -> list[tuple[int, int]]:
    """`"404,5xx,300-399"` as pairs of bounds."""
    ranges: list[tuple[int, int]] = []
    for word in _words(str(wanted)):
        found = _STATUS.fullmatch(word)
        if found is None:
            raise InvalidInput(
                f"a status must be like 404, 4xx, 400-499 or 500-, got {word!r}", "separate several with commas"
            )
        if found[3]:
            ranges.append((int(found[3]) * 100, int(found[3]) * 100 + 99))
        elif word.endswith("-"):
            ranges.append((int(found[1]), 999))
        else:
            ranges.append((int(found[1]), int(found[2] or found[1])))
    if not ranges:
        raise InvalidInput("status is empty", "give 404, 4xx, 400-499 or 500-, or leave it out")
    return ranges


def _words(text: str) -> set[str]:
    return {word.strip() for word in text.split(",") if word.strip()}


def _split_port(authority: str) -> tuple[str, str]:
    host, port = authority.lower(), ""
    if host.startswith("["):
        host, _, rest = host[1:].partition("]")
        port = rest.removeprefix(":")
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    return host.rstrip("."), port


def _process(flow: Flow) -> str:
    name = (flow.process or "").lower().encode("utf-8", "replace").decode()
    return name if flow.pid is None else f"{name} {flow.pid}"


def _status_test(ranges: list[tuple[int, int]]) -> Test:
    return lambda flow: flow.status is not None and any(low <= flow.status <= high for low, high in ranges)


def _host_test(wanted: str) -> Test:
    only_below = wanted.startswith("*.")
    host, port = _split_port(wanted.removeprefix("*."))
    below = "." + host

    def test(flow: Flow) -> bool:
        name, flow_port = _split_port(flow.authority)
        if port and port != (flow_port or {"http": "80", "https": "443"}.get(flow.scheme, "")):
            return False
        return name.endswith(below) or (name == host and not only_below)

    return test


def _url_test(needle: str, redactor: Redactor) -> Test:
    def test(flow: Flow) -> bool:
        url = flow.url
        return needle in url.lower() and (redactor is REVEALED or needle in redactor.url(url).lower())

    return test


def _regex_test(pattern: GuardedRegex, redactor: Redactor) -> Test:
    # Only what may be seen is matched: `^` and `$` would tell more about a hidden part than a plain text does.
    return lambda flow: pattern.search(redactor.url(flow.url)) is not None


def _header_test(needle: str, redactor: Redactor) -> Test:
    def test(flow: Flow) -> bool:
        for block in (flow.request_headers, flow.response_headers):
            if needle in headers.lines(block).lower() and (
                redactor is REVEALED or needle in headers.lines(redactor.headers(block)).lower()
            ):
                return True
        return False

    return test


def _body_test(needle: str, bodies: BodyStore | None, redactor: Redactor) -> Test:
    def test(flow: Flow) -> bool:
        for from_client in (True, False):
            body, head = views.message(flow, from_client)
            if not body.size_bytes:
                continue
            content = views.decoded(flow, from_client, bodies, BODY_SEARCH_BYTES).data
            found = content_coding.text_of(content, head)
            if found is None or needle not in found[0].lower():
                continue
            if redactor is REVEALED or _is_shown(needle, found[0], headers.mime(head), redactor):
                return True
        messages = (frame.payload.decode(errors="replace") for frame in flow.frames or () if frame.opcode == 1)
        return any(needle in text.lower() and needle in redactor.body(text, "").lower() for text in messages)

    return test


def _is_shown(needle: str, text: str, mime: str, redactor: Redactor) -> bool:
    """Most needles stand near the beginning, and the whole of a long text takes a second."""
    if needle in redactor.body(text, mime).lower():
        return True
    return len(text) > MAX_CHARS and needle in redactor.whole_body(text, mime).lower()
