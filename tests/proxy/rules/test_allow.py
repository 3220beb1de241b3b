"""The two meanings of the allow list: what is recorded, and what is decrypted."""

from __future__ import annotations

import pytest

from dari.proxy.rules.rule import AllowRule, BlockRule
from tests.support.proxy_rules import allow, ask, local, remote, rewrite, set_of


def is_recorded(matcher: str, url: str) -> bool:
    return ask(set_of(allow(matcher)), url).is_recorded


def decrypts(matcher: str, authority: str) -> bool:
    return set_of(allow(matcher)).decrypts(authority).wanted


def test_an_empty_list_records_everything_and_decrypts_nothing() -> None:
    assert ask(set_of(), "http://example.com/").is_recorded
    assert not set_of().decrypts("example.com:443").wanted


def test_what_is_not_allowed_is_proxied_silently_and_no_rule_applies() -> None:
    rules = set_of(allow("other.com"), local("/"), rewrite("/"))
    decision = ask(rules, "http://example.com/")
    assert not decision.is_recorded
    assert decision.map_local is None and decision.rule_ids == () and rules.status_for(decision, 200) is None


@pytest.mark.parametrize("matcher", ["*", "*.*"])
def test_a_star_allows_and_decrypts_everything(matcher: str) -> None:
    assert is_recorded(matcher, "http://[::1]:80/")
    assert decrypts(matcher, "example.com:443")


def test_a_host_allows_itself_and_its_sub_domains_on_any_port() -> None:
    assert is_recorded("example.com", "http://example.com:8080/x")
    assert is_recorded("Example.com", "http://API.example.com/x")
    assert not is_recorded("example.com", "http://example.org/")
    assert not is_recorded("exam", "http://example.com/")


def test_a_port_in_an_allow_rule_is_compared() -> None:
    assert is_recorded("example.com:8080", "http://example.com:8080/")
    assert not is_recorded("example.com:8080", "http://example.com/")


def test_a_wildcard_allows_strict_sub_domains() -> None:
    assert is_recorded("*.example.com", "http://a.example.com/")
    assert not is_recorded("*.example.com", "http://example.com/")
    assert is_recorded("*.example.com/api", "http://a.example.com/API/x")
    assert not is_recorded("*.example.com/api", "http://a.example.com/other")


def test_full_urls_and_paths_work_as_in_other_rules() -> None:
    assert is_recorded("https://example.com/api", "https://a.example.com/api/1")
    assert not is_recorded("https://example.com/api", "https://example.com/API")
    assert not is_recorded("https://example.com/api", "http://example.com/api")
    assert is_recorded("/api", "http://whatever/api")
    assert not is_recorded("/api", "http://whatever/")


def test_host_and_path_are_a_prefix_in_any_case() -> None:
    assert is_recorded("Example.com/API", "http://example.com/api/x")
    assert is_recorded("example.com/api", "http://EXAMPLE.com/api")
    assert not is_recorded("example.com/api", "http://example.com:8080/api")
    assert not is_recorded("example.com/api", "http://a.example.com/api")


def test_an_empty_allow_rule_never_matches_but_makes_the_list_non_empty() -> None:
    assert not is_recorded("", "http://example.com/")
    assert not decrypts("", "example.com:443")


def test_only_the_authority_part_counts_for_decryption() -> None:
    assert decrypts("https://example.com/only/this", "example.com:443")
    assert decrypts("example.com/api", "example.com:443")
    assert decrypts("example.com", "api.example.com:8443")
    assert not decrypts("*.example.com", "example.com:443")
    assert not decrypts("example.com:8443", "example.com:443")


def test_a_path_never_decrypts_and_a_plain_http_url_neither() -> None:
    assert not decrypts("/api", "example.com:443")
    assert not decrypts("http://example.com", "example.com:443")


def test_ipv6_hosts_are_decrypted_by_name() -> None:
    assert decrypts("[::1]", "[::1]:8443")
    assert decrypts("::1", "[0:0::1]:8443")


@pytest.mark.parametrize(
    "rule",
    [
        local("https://example.com/api"),
        remote("example.com/api", "https://b.com"),
        rewrite("https://example.com"),
        BlockRule(matcher="https://example.com/*", matcher_kind="glob"),
        BlockRule(matcher="*.com/api", matcher_kind="glob"),
        BlockRule(matcher=r"^https://example\.com/v\d", matcher_kind="regex"),
        BlockRule(matcher=r"https?://example.com/", matcher_kind="regex"),
    ],
)
def test_a_rule_that_names_the_host_switches_decryption_on(rule: BlockRule) -> None:
    answer = set_of(rule).decrypts("example.com:443")
    assert answer.wanted and answer.rule_id == "r1" and rule.kind in answer.reason


@pytest.mark.parametrize(
    "rule",
    [
        local("/api"),
        local("exam"),
        local("http://example.com/"),
        BlockRule(matcher="*/api", matcher_kind="glob"),
        BlockRule(matcher="*", matcher_kind="glob"),
        BlockRule(matcher="example", matcher_kind="regex"),
    ],
)
def test_a_rule_that_names_no_host_does_not(rule: BlockRule) -> None:
    assert not set_of(rule).decrypts("example.com:443").wanted


def test_a_disabled_rule_decrypts_nothing_and_does_not_close_the_list() -> None:
    rules = set_of(AllowRule(matcher="example.com", enabled=False))
    assert not rules.decrypts("example.com:443").wanted
    assert ask(rules, "http://other.com/").is_recorded


def test_the_reason_tells_an_empty_list_from_a_host_left_out() -> None:
    assert "empty" in set_of().decrypts("example.com:443").reason
    assert "not in allow list" in set_of(allow("other.com")).decrypts("example.com:443").reason


def test_an_allow_rule_may_want_a_method() -> None:
    rules = set_of(AllowRule(matcher="example.com", method="post"))
    assert ask(rules, "http://example.com/", "POST").is_recorded
    assert not ask(rules, "http://example.com/", "GET").is_recorded
    assert rules.decrypts("example.com:443").wanted


def test_an_allow_rule_is_named_as_the_reason_before_other_rules() -> None:
    assert set_of(local("https://example.com/"), allow("example.com")).decrypts("example.com:443").rule_id == "r2"
