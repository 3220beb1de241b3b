"""A rule that the allow list, or a rule that answers first, keeps from acting: told when it happens."""

from __future__ import annotations

import pytest

from dari.errors import InvalidInput
from dari.proxy.rules.rule import (
    AllowRule,
    BlockRule,
    BreakpointRule,
    DelayRule,
    FaultRule,
    HeaderEdit,
    HeaderRewriteRule,
)
from dari.proxy.rules.rule_store import RuleStore
from tests.support.proxy_rules import allow, ask, book_of, local, remote, rewrite

OUTSIDE = [
    # A rule outside an allow list, by every form of a matcher.
    ("https://other.test/", "prefix", "example.test", "prefix"),
    ("other.test/api", "prefix", "example.test", "prefix"),
    ("other.test", "prefix", "*.example.test", "prefix"),
    ("https://example.test/", "prefix", "http://example.test/", "prefix"),
    ("https://example.test/a", "prefix", "https://example.test/b", "prefix"),
    ("https://api.test:8443/", "prefix", "api.test/v1", "prefix"),
    ("https://*.other.test/*", "glob", "example.test", "prefix"),
    ("https://other.test/", "prefix", "*.example.test", "glob"),
    ("http://[::1]:3000/", "prefix", "127.0.0.1", "prefix"),
]
INSIDE = [
    ("https://example.test/", "prefix", "example.test", "prefix"),
    ("api.example.test", "prefix", "*.example.test", "prefix"),
    ("https://api.example.test/v1", "prefix", "example.test", "prefix"),
    ("example.test/api", "prefix", "/api", "prefix"),
    ("https://*.example.test/*", "glob", "*.example.test", "prefix"),
    ("http://localhost:3000/", "prefix", "localhost", "prefix"),
    ("http://[::1]:3000/", "prefix", "[::1]:3000", "prefix"),
    ("https://anything.test/", "prefix", "*", "prefix"),
    ("https://api.example.test/", "prefix", "api.*", "glob"),
]
PARTLY = [
    ("https://example.test/", "prefix", "example.test:8443", "prefix"),
    ("/api", "prefix", "example.test", "prefix"),
    ("https://example.test/", "prefix", "api.example.test", "prefix"),
    ("https://example.test/", "prefix", "https://example.test/api", "prefix"),
    ("api.*", "glob", "*.test", "prefix"),
]


@pytest.mark.parametrize(("matcher", "kind", "allowed", "allowed_kind"), OUTSIDE)
def test_a_rule_outside_the_allow_list_is_added_with_a_warning(
    matcher: str, kind: str, allowed: str, allowed_kind: str
) -> None:
    book = book_of(AllowRule(matcher=allowed, matcher_kind=allowed_kind))  # type: ignore[arg-type]
    added = book.add(DelayRule(matcher=matcher, matcher_kind=kind, delay_ms=5))  # type: ignore[arg-type]
    assert len(added.reach) == 1 and allowed in added.reach[0] and "crab_rules_add_allow" in added.reach[0]


@pytest.mark.parametrize(("matcher", "kind", "allowed", "allowed_kind"), OUTSIDE)
@pytest.mark.parametrize("made", [BreakpointRule, FaultRule])
def test_a_breakpoint_or_fault_outside_the_allow_list_is_refused_with_the_fix(
    matcher: str, kind: str, allowed: str, allowed_kind: str, made: type[BreakpointRule | FaultRule]
) -> None:
    book = book_of(AllowRule(matcher=allowed, matcher_kind=allowed_kind))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as refused:
        book.add(made(matcher=matcher, matcher_kind=kind))  # type: ignore[arg-type]
    assert "allow rule" in refused.value.hint and len(book) == 1
    book.add(made(matcher=matcher, matcher_kind=kind, enabled=False))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        book.update("r2", {"enabled": True})


@pytest.mark.parametrize(("matcher", "kind", "allowed", "allowed_kind"), INSIDE)
def test_a_rule_inside_the_allow_list_is_added_without_a_word(
    matcher: str, kind: str, allowed: str, allowed_kind: str
) -> None:
    book = book_of(AllowRule(matcher=allowed, matcher_kind=allowed_kind))  # type: ignore[arg-type]
    assert book.add(BreakpointRule(matcher=matcher, matcher_kind=kind)).reach == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(("matcher", "kind", "allowed", "allowed_kind"), PARTLY)
def test_a_rule_that_the_allow_list_cuts_is_added_with_a_warning(
    matcher: str, kind: str, allowed: str, allowed_kind: str
) -> None:
    book = book_of(AllowRule(matcher=allowed, matcher_kind=allowed_kind))  # type: ignore[arg-type]
    (warning,) = book.add(BreakpointRule(matcher=matcher, matcher_kind=kind)).reach  # type: ignore[arg-type]
    assert "acts only on what the allow list" in warning


def test_the_first_allow_rule_names_the_rules_that_it_switches_off() -> None:
    edit = HeaderRewriteRule(matcher="https://c.test/", edits=(HeaderEdit("set", "X", "1"),))
    book = book_of(local("https://a.test/"), remote("https://b.test/", "https://x.test/"), edit, rewrite("/api"))
    assert ask(book.current, "https://a.test/").map_local is not None
    warnings = book.add(allow("a.test")).reach
    assert [warning.partition(":")[0] for warning in warnings] == [
        "rule r2 can no longer act",
        "rule r3 can no longer act",
        "rule r4 acts on less now",
    ]
    assert {one.rule.id for one in book.listed() if one.warnings} == {"r2", "r3", "r4"}
    assert book.add(allow("b.test")).reach == ()


def test_switching_an_allow_rule_on_or_another_off_warns_too() -> None:
    book = book_of(AllowRule(matcher="a.test", enabled=False), DelayRule(matcher="https://b.test/", delay_ms=1))
    assert "rule r2 can no longer act" in book.update("r1", {"enabled": True}).reach[0]
    book = book_of(allow("a.test"), allow("b.test"), DelayRule(matcher="https://b.test/", delay_ms=1))
    assert "rule r3 can no longer act" in book.update("r2", {"enabled": False}).reach[0]
    assert (
        "rule r3 can no longer act"
        in book_of(allow("a.test"), allow("b.test"), DelayRule(matcher="https://b.test/", delay_ms=1))
        .update("r2", {"matcher": "c.test"})
        .reach[0]
    )


def test_methods_count() -> None:
    book = book_of(AllowRule(matcher="a.test", method="GET"))
    with pytest.raises(InvalidInput):
        book.add(BreakpointRule(matcher="https://a.test/", method="POST"))
    assert book.add(BreakpointRule(matcher="https://a.test/", method="get")).reach == ()
    assert "acts only" in book.add(BreakpointRule(matcher="https://a.test/")).reach[0]


def test_a_breakpoint_behind_a_block_or_a_local_answer_is_refused() -> None:
    for first in (BlockRule(matcher="a.test"), local("https://a.test/")):
        with pytest.raises(InvalidInput, match="r1"):
            book_of(first).add(BreakpointRule(matcher="https://a.test/x"))
    with pytest.raises(InvalidInput, match="r1"):
        book_of(BlockRule(matcher="a.test")).add(FaultRule(matcher="https://a.test/"))
    # A reset comes before a local answer is made.
    assert book_of(local("https://a.test/")).add(FaultRule(matcher="https://a.test/")).reach == ()
    book = book_of(BreakpointRule(matcher="https://a.test/x"))
    assert "rule r1 can no longer act" in book.add(BlockRule(matcher="https://a.test/")).reach[0]


def test_a_regex_is_warned_about_and_never_refused() -> None:
    added = book_of(allow("a.test")).add(BreakpointRule(matcher=r"^https://b\.test/", matcher_kind="regex"))
    assert "leaves out everything" in added.reach[0]


def test_a_breakpoint_that_an_allow_rule_hid_can_still_be_changed() -> None:
    book = book_of(BreakpointRule(matcher="https://b.test/"), allow("a.test"))
    assert "leaves out" in book.update("r1", {"time_limit_s": 5.0}).reach[0]


def test_ten_thousand_rules_are_compared_within_the_bound() -> None:
    book = RuleStore()
    draft = book.draft()
    for number in range(300):
        draft.add(DelayRule(matcher=f"https://h{number}.test/", delay_ms=1))
    book.adopt(draft)
    warnings = book.add(allow("a.test")).reach
    assert len(warnings) == 6 and "295 more rules" in warnings[-1]
