"""`rules_test` tells which rule of each kind matches, why others do not, and what will be seen."""

from __future__ import annotations

import pytest

from dari.errors import InvalidInput
from dari.proxy.rules.explanation import Explanation, KindReport
from dari.proxy.rules.rule import BlockRule
from tests.support.proxy_rules import allow, book_of, local, remote, rewrite

URL = "https://example.com/api/users"


def kind(explanation: Explanation, name: str) -> KindReport:
    return next(report for report in explanation.kinds if report.kind == name)


def test_every_other_rule_comes_with_its_reason() -> None:
    book = book_of(
        allow("example.com"),
        local("/other"),
        local("https://other.com/"),
        local("/api", method="POST"),
        local("/api/users", enabled=False),
        local("/api", "wins"),
        local("/api/users", "late"),
    )
    report = kind(book.explain(URL, has_ca=True), "map_local")
    assert [finding.id for finding in report.matched] == ["r6"]
    assert {finding.id: finding.verdict for finding in report.others} == {
        "r2": "does not match",
        "r3": "does not match",
        "r4": "method differs",
        "r5": "disabled",
        "r7": "earlier rule wins",
    }
    assert report.others[0].verdict == "disabled"


def test_a_rule_behind_a_local_answer_is_not_reached() -> None:
    book = book_of(allow("*"), remote("/api", "https://b.com"), local("/api"))
    found = kind(book.explain(URL, has_ca=True), "map_remote").others[0]
    assert found.verdict == "not reached" and "r3" in found.detail


def test_an_https_url_without_ca_is_a_tunnel() -> None:
    explanation = book_of(allow("example.com"), local("/api")).explain(URL, has_ca=False)
    assert explanation.is_decrypted is False and explanation.decrypted_because == "no CA"
    assert explanation.is_recorded and "tunnel" in explanation.recorded_because
    assert not explanation.rules_apply
    assert any("CA" in hint for hint in explanation.hints)


def test_a_host_outside_the_allow_list_is_not_decrypted_and_the_hint_says_what_to_add() -> None:
    explanation = book_of(allow("other.com")).explain(URL, has_ca=True)
    assert explanation.is_decrypted is False
    assert "host not in allow list" in explanation.decrypted_because
    assert any("add an allow rule for example.com" in hint for hint in explanation.hints)


def test_an_empty_allow_list_decrypts_nothing() -> None:
    assert "allow list is empty" in book_of().explain(URL, has_ca=True).decrypted_because


def test_a_rule_that_names_the_host_decrypts_it_but_the_allow_list_still_gates_it() -> None:
    explanation = book_of(allow("other.com"), local("https://example.com/api")).explain(URL, has_ca=True)
    assert explanation.is_decrypted is True
    assert not explanation.is_recorded and not explanation.rules_apply
    assert kind(explanation, "map_local").others[0].verdict == "not reached"
    assert any("rules see only what the allow list lets in" in hint for hint in explanation.hints)


def test_plain_http_needs_no_decryption() -> None:
    explanation = book_of().explain("http://example.com/", has_ca=False)
    assert explanation.is_decrypted is None and explanation.rules_apply and explanation.is_recorded


def test_the_mapped_url_is_shown_and_a_bad_one_hinted_at() -> None:
    good = book_of(allow("*"), remote("/api", "https://b.com")).explain(URL, has_ca=True)
    assert good.mapped_url == "https://b.com/users"
    bad = book_of(allow("*"), remote("/api", "b.com")).explain(URL, has_ca=True)
    assert any("502" in hint for hint in bad.hints)


def test_status_rules_and_blocks_are_reported_with_their_effect() -> None:
    explanation = book_of(allow("*"), rewrite("/api", 503, 200), BlockRule(matcher="/none")).explain(URL, has_ca=True)
    assert kind(explanation, "status_rewrite").matched[0].detail == "to_status_code 503, from_status_code 200"
    assert kind(explanation, "block").matched == ()


def test_explaining_counts_no_hit() -> None:
    book = book_of(allow("*"), local("/api"))
    book.explain(URL, has_ca=True)
    assert [listed.hits for listed in book.listed()] == [0, 0]


def test_a_default_port_a_fragment_and_a_missing_scheme_are_read_as_clients_do() -> None:
    book = book_of(allow("*"), local("example.com/api"))
    explanation = book.explain("user:pw@EXAMPLE.com:443/api#top".replace("EXAMPLE", "example"), has_ca=True)
    assert explanation.url == "https://example.com/api"
    assert len(explanation.hints) == 3
    assert kind(explanation, "map_local").matched


@pytest.mark.parametrize("url", ["", "   ", "ftp://a/", "https://", "http:///x", "/just/a/path", "http://a b/"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        book_of().explain(url, has_ca=True)


def test_ipv6_and_an_empty_path_are_understood() -> None:
    explanation = book_of(allow("[::1]")).explain("https://[::1]:8443", has_ca=True)
    assert explanation.url == "https://[::1]:8443/" and explanation.is_decrypted


def test_a_thousand_misses_are_counted_and_twenty_shown() -> None:
    book = book_of(*(local(f"/x{number}") for number in range(100)), local("/api", enabled=False))
    report = kind(book.explain(URL, has_ca=True), "map_local")
    assert len(report.others) == 20 and report.others_left_out == 81
    assert report.others[0].verdict == "disabled"
