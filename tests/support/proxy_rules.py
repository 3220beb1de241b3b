"""Short ways to make rules and ask about URLs."""

from __future__ import annotations

from dari.proxy.rules import MatchedRules, RuleSet, RuleStore
from dari.proxy.rules.explanation import parse_url
from dari.proxy.rules.rule import (
    AllowRule,
    AnyRule,
    BlockRule,
    MapLocalRule,
    MapLocalSource,
    MapRemoteRule,
    StatusRewriteRule,
)


def book_of(*rules: AnyRule) -> RuleStore:
    book = RuleStore()
    for rule in rules:
        book.add(rule)
    return book


def set_of(*rules: AnyRule) -> RuleSet:
    return book_of(*rules).current


def local(matcher: str, text: str = "local", **more: object) -> MapLocalRule:
    return MapLocalRule(matcher=matcher, source=MapLocalSource("text", text), **more)  # type: ignore[arg-type]


def remote(matcher: str, destination: str) -> MapRemoteRule:
    return MapRemoteRule(matcher=matcher, destination=destination)


def rewrite(matcher: str, to: int = 503, frm: int | None = None) -> StatusRewriteRule:
    return StatusRewriteRule(matcher=matcher, to_status_code=to, from_status_code=frm)


def allow(matcher: str) -> AllowRule:
    return AllowRule(matcher=matcher)


def ask(rules: RuleSet, url: str, method: str = "GET") -> MatchedRules:
    """Decide about a URL exactly as written: the port stays in the authority."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return rules.decide(method, scheme, authority, slash + path or "/")


def matches(matcher: str, url: str, kind: str = "prefix", method: str = "GET") -> bool:
    """Does a rule of one of the matching kinds fit?"""
    rule = BlockRule(matcher=matcher, matcher_kind=kind)  # type: ignore[arg-type]
    return ask(set_of(rule), url, method).block is not None


__all__ = ["allow", "ask", "book_of", "local", "matches", "parse_url", "remote", "rewrite", "set_of"]
