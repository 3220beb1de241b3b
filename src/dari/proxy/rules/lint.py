"""Warnings about rules that are allowed but will hardly do what their author meant."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from dari.proxy.rules.matchers import GlobMatcher, Matcher, NoMatcher, PathPrefix, RegexMatcher, TextPrefix
from dari.proxy.rules.rule import AllowRule, AnyRule, MapLocalRule, MapRemoteRule, StatusRewriteRule
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
