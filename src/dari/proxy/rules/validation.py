"""Check a rule when it is added: refuse wrong values, warn about rules that will hardly do what was meant."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

from dari.errors import Failed, InvalidInput
from dari.proxy.rules.matchers import GlobMatcher, Matcher, NoMatcher, PathPrefix, RegexMatcher, TextPrefix
from dari.proxy.rules.rule import (
    AllowRule,
    AnyRule,
    BlockRule,
    BodyReplaceRule,
    BreakpointRule,
    DelayRule,
    FaultRule,
    HeaderRewriteRule,
    MapLocalRule,
    MapRemoteRule,
    MockRule,
    StatusRewriteRule,
)
from dari.proxy.rules.ruleset import matcher_of
from dari.proxy.rules.site import destination_problem

_REGEX_LOOK = re.compile(r"\\[.d/w]|(?<!\*)\.\*|\.\+|^\^|\$$|\(\?")
_NO_BODY = (204, 205, 304)


def warnings_about(rule: AnyRule, matcher: Matcher) -> Iterator[str]:
    yield from _about_matcher(rule, matcher)
    if isinstance(rule, MapRemoteRule):
        yield from _about_mapping(rule, matcher)
    elif isinstance(rule, MapLocalRule):
        if rule.source.kind == "file" and not os.path.isabs(rule.source.value):
            yield f"file path {rule.source.value!r} is relative to the daemon's directory; give an absolute path"
        if rule.status_code < 200:
            yield f"status {rule.status_code} is never final: clients wait for another answer after it"
    elif isinstance(rule, StatusRewriteRule) and rule.to_status_code in _NO_BODY:
        yield f"status {rule.to_status_code} has no body: the body of the origin's answer will not be delivered"


def _about_matcher(rule: AnyRule, matcher: Matcher) -> Iterator[str]:
    text = rule.matcher.strip()
    if isinstance(matcher, NoMatcher):
        yield f"matcher {rule.matcher!r} never matches: it names no host and no path"
    elif isinstance(matcher, RegexMatcher) and matcher.regex.slow_ms is not None:
        yield f"regex stopped: one search took more than {matcher.regex.slow_ms:g} ms; simplify it and update the rule"
    elif rule.matcher_kind == "prefix":
        yield from _about_prefix(text, matcher)
    if isinstance(rule, AllowRule) and isinstance(matcher, PathPrefix):
        yield f"allow {text!r} names no host: it records plain HTTP, but decrypts nothing"


def _about_prefix(text: str, matcher: Matcher) -> Iterator[str]:
    authority, _, path = text.rpartition("://")[2].partition("/")
    host = authority.partition(":")[0]
    if "*" in path or "*" in host.replace("*.*", "*").removeprefix("*"):
        wanted = "regex" if _REGEX_LOOK.search(text) else "glob"
        yield f"'*' in {text!r} is read as a plain character; set matcher_kind to '{wanted}'"
    elif _REGEX_LOOK.search(text):
        yield f"matcher {text!r} looks like a regex but is read as a prefix; set matcher_kind to 'regex'"
    elif isinstance(matcher, TextPrefix) and "*" in host:
        yield f"'*' in {text!r} works in allow rules and after https:// only; set matcher_kind to 'glob'"


def _about_mapping(rule: MapRemoteRule, matcher: Matcher) -> Iterator[str]:
    """Concatenation is pure, so a slash too few glues the path to the host."""
    if isinstance(matcher, RegexMatcher):
        return
    destination = rule.destination.strip()
    problem = destination_problem(destination)
    if problem is not None:
        yield f"{problem}: every match will be answered 502"
        return
    text = rule.matcher.strip()
    if not isinstance(matcher, GlobMatcher) and "/" in text and text.endswith("/") and destination.count("/") == 2:
        yield f"{text}x becomes {destination}x: end the destination with '/' too"
    elif destination.endswith("/") and not text.endswith(("/", "/*")):
        yield f"what follows {text} starts with '/', so {destination} gets two; end both with '/' or neither"


MAX_MATCHER_CHARS = 8192
MAX_TEXT_BYTES = 16 * 1024 * 1024
MAX_WAIT_MS = 600_000
MAX_HOLD_S = 3600
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_UNSAFE_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_FRAMING = frozenset({"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})


def check_rule(rule: AnyRule) -> tuple[Matcher, tuple[str, ...]]:
    """The compiled matcher and what a person should know. Raises InvalidInput, or Failed for a missing file."""
    if len(rule.matcher) > MAX_MATCHER_CHARS:
        raise InvalidInput(
            f"a matcher may have at most {MAX_MATCHER_CHARS} characters, got {len(rule.matcher)}",
            "match a shorter prefix of the URL",
        )
    if rule.method is not None and not _TOKEN.fullmatch(rule.method):
        raise InvalidInput(f"invalid method {rule.method!r}", "write one method such as GET, or leave it out for all")
    matcher = matcher_of(rule)
    check = _CHECKS.get(type(rule))
    if check is not None:
        check(rule)
    if isinstance(rule, MapRemoteRule) and isinstance(matcher, RegexMatcher):
        matcher.regex.check_template(rule.destination.strip())
    return matcher, tuple(warnings_about(rule, matcher))


def check_status(value: int, name: str) -> None:
    """100–999 as the original's engine; the tools narrow it to 100–599."""
    if not 100 <= value <= 999:
        raise InvalidInput(f"{name} {value} is out of range", "give an HTTP status between 100 and 999")


def _check_range(value: float, least: float, most: float, name: str) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"{name} {value} is out of range", f"give a value between {least} and {most}")


def _check_header(name: str, value: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise InvalidInput(f"invalid header name {name!r}", "use letters, digits and dashes, without the colon")
    if name.lower() in _FRAMING:
        raise InvalidInput(f"header {name!r} cannot be edited", "the proxy frames messages itself")
    _check_value(value, f"header {name!r}")


def _check_value(value: str, what: str) -> None:
    if _UNSAFE_VALUE.search(value):
        raise InvalidInput(f"{what} has a line break or control character in its value", "remove it")
    try:
        value.encode("latin-1")
    except UnicodeEncodeError as wrong:
        raise InvalidInput(f"{what} has {value[wrong.start]!r}, which headers cannot carry", "encode it") from None


def _check_size(size_bytes: int, name: str) -> None:
    if size_bytes > MAX_TEXT_BYTES:
        raise InvalidInput(f"{name} of {size_bytes} bytes: at most {MAX_TEXT_BYTES} are kept", "use a map_local file")


def _check_map_local(rule: MapLocalRule) -> None:
    check_status(rule.status_code, "status_code")
    if rule.content_type is not None:
        _check_value(rule.content_type, "content_type")
    if rule.source.kind == "text":
        _check_size(len(rule.source.value), "text")
        return
    path = rule.source.value
    if "\0" in path or not os.path.isfile(path):
        hint = "give the path of a file, not of a directory" if os.path.isdir(path.split("\0")[0]) else ""
        raise Failed(f"map_local file not found: {path}", hint or "give the absolute path of a file that exists")


def _check_mock(rule: MockRule) -> None:
    check_status(rule.status_code, "status_code")
    _check_size(len(rule.body), "body")
    for name, value in rule.headers:
        _check_header(name, value)


def _check_status_rewrite(rule: StatusRewriteRule) -> None:
    check_status(rule.to_status_code, "to_status_code")
    if rule.from_status_code is not None:
        check_status(rule.from_status_code, "from_status_code")


def _check_header_rewrite(rule: HeaderRewriteRule) -> None:
    if not rule.edits:
        raise InvalidInput("header_rewrite without edits", "give at least one {action, name, value}")
    for edit in rule.edits:
        _check_header(edit.name, edit.value)


def _check_body_replace(rule: BodyReplaceRule) -> None:
    _check_size(len(rule.text), "text")
    if rule.find == "":
        raise InvalidInput("find is empty", "leave find out to replace the whole body")


def _check_delay(rule: DelayRule) -> None:
    _check_range(rule.delay_ms, 0, MAX_WAIT_MS, "delay_ms")
    _check_range(rule.jitter_ms, 0, MAX_WAIT_MS, "jitter_ms")


def _checks() -> Iterator[tuple[type[AnyRule], Callable[..., None]]]:
    yield BlockRule, lambda rule: check_status(rule.status_code, "status_code")
    yield MapLocalRule, _check_map_local
    yield MockRule, _check_mock
    yield StatusRewriteRule, _check_status_rewrite
    yield HeaderRewriteRule, _check_header_rewrite
    yield BodyReplaceRule, _check_body_replace
    yield DelayRule, _check_delay
    yield FaultRule, lambda rule: _check_range(rule.after_bytes, 0, 2**53, "after_bytes")
    yield BreakpointRule, lambda rule: _check_range(rule.time_limit_s, 0.1, MAX_HOLD_S, "time_limit_s")


_CHECKS = dict(_checks())
