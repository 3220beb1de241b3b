"""Rules on connections that stay encrypted: only what covers a whole host can act."""

from __future__ import annotations

import pytest

from dari.proxy.rules.rule import AnyRule, BlockRule, DelayRule, FaultRule
from tests.support.proxy_rules import allow, book_of, local, set_of


@pytest.mark.parametrize(
    "rule",
    [
        BlockRule(matcher="example.com"),
        BlockRule(matcher="https://example.com"),
        BlockRule(matcher="https://example.com/"),
        BlockRule(matcher="https://example.com:443"),
        BlockRule(matcher="/"),
        BlockRule(matcher="*.com", matcher_kind="glob"),
        BlockRule(matcher="example.com/*", matcher_kind="glob"),
        BlockRule(matcher="example.com", method="connect"),
    ],
)
def test_a_rule_for_the_whole_host_acts_on_its_tunnels(rule: BlockRule) -> None:
    assert set_of(rule).decide_tunnel("example.com:443").block is not None


@pytest.mark.parametrize(
    "rule",
    [
        BlockRule(matcher="https://example.com/admin"),
        BlockRule(matcher="http://example.com"),
        BlockRule(matcher="other.com"),
        BlockRule(matcher="example.com", method="GET"),
        BlockRule(matcher="example.com/*.js", matcher_kind="glob"),
        BlockRule(matcher="example", matcher_kind="regex"),
        BlockRule(matcher="example.com", enabled=False),
        local("https://example.com"),
    ],
)
def test_other_rules_do_not(rule: AnyRule) -> None:
    decision = set_of(rule).decide_tunnel("example.com:443")
    assert decision.is_recorded and decision.rule_ids == () and decision.block is None


def test_delay_and_fault_act_on_tunnels_too_and_count() -> None:
    book = book_of(DelayRule(matcher="example.com", delay_ms=5), FaultRule(matcher="example.com"))
    decision = book.current.decide_tunnel("example.com:443")
    assert decision.delay is not None and decision.fault is not None
    assert [listed.hits for listed in book.listed()] == [1, 1]


def test_a_tunnel_outside_the_allow_list_is_recorded_as_one_and_left_alone() -> None:
    decision = set_of(allow("other.com"), BlockRule(matcher="/")).decide_tunnel("example.com:443")
    assert decision.is_recorded and decision.block is None
    assert set_of(allow("example.com/x"), BlockRule(matcher="/")).decide_tunnel("example.com:443").block is not None


def test_an_explanation_tells_that_the_tunnel_itself_is_concerned() -> None:
    book = book_of(BlockRule(matcher="https://example.com"))
    explanation = book.explain("https://example.com/x", has_ca=False)
    assert any("r1 covers the whole host" in hint for hint in explanation.hints)
    assert book.hits("r1") == 0
