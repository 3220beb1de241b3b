"""What happens to one request: order of evaluation, first match, mapping, status."""

from __future__ import annotations

from random import Random

import pytest

from dari.proxy.rules.rule import (
    BlockRule,
    BodyReplaceRule,
    BreakpointRule,
    DelayRule,
    FaultRule,
    HeaderEdit,
    HeaderRewriteRule,
    MapRemoteRule,
    MockRule,
)
from tests.support.proxy_rules import allow, ask, book_of, local, matches, remote, rewrite, set_of

URL = "https://example.com/api/users?page=2"


def test_without_rules_everything_is_recorded_and_nothing_changed() -> None:
    decision = ask(set_of(), URL)
    assert decision.is_recorded and decision.rule_ids == () and decision.mapped_url is None


def test_the_first_match_wins_inside_a_kind() -> None:
    decision = ask(set_of(local("/nothing"), local("/api", "first"), local("/api/users", "second")), URL)
    assert decision.map_local is not None
    assert decision.map_local.source.value == "first"
    assert decision.rule_ids == ("r2",)


def test_map_local_comes_before_map_remote() -> None:
    decision = ask(set_of(remote("/api", "https://b.com"), local("/api")), URL)
    assert decision.map_local is not None and decision.map_remote is None and decision.mapped_url is None


def test_map_local_comes_before_a_mock_and_a_mock_before_map_remote() -> None:
    assert ask(set_of(MockRule(matcher="/api"), local("/api")), URL).mock is None
    decision = ask(set_of(remote("/api", "https://b.com"), MockRule(matcher="/api", body=b"x")), URL)
    assert decision.mock is not None and decision.map_remote is None


def test_a_block_ends_it() -> None:
    decision = ask(set_of(local("/api"), DelayRule(matcher="/", delay_ms=1), BlockRule(matcher="/api")), URL)
    assert decision.block is not None and decision.block.status_code == 403
    assert decision.map_local is None and decision.delay is None and decision.rule_ids == ("r3",)


@pytest.mark.parametrize(
    ("matcher", "destination", "mapped"),
    [
        ("https://example.com/api", "https://b.com/v2", "https://b.com/v2/users?page=2"),
        ("https://example.com", "http://b.com:8080", "http://b.com:8080/api/users?page=2"),
        ("/api", "http://localhost:3000", "http://localhost:3000/users?page=2"),
        ("example.com/api", " https://b.com/v2 ", "https://b.com/v2/users?page=2"),
        ("exam", "https://st", "https://stple.com/api/users?page=2"),
        ("/api/", "https://b.com/?via=crab&p=", "https://b.com/?via=crab&p=users?page=2"),
        ("/api", "https://b.com/", "https://b.com//users?page=2"),
    ],
)
def test_the_new_url_is_the_destination_and_what_the_matcher_left(matcher: str, destination: str, mapped: str) -> None:
    decision = ask(set_of(remote(matcher, destination)), URL)
    assert (decision.mapped_url, decision.map_remote_problem) == (mapped, None)


def test_a_glob_maps_what_its_last_star_stood_for() -> None:
    rule = MapRemoteRule(matcher="*.com/api/*", matcher_kind="glob", destination="https://b.com/v2/")
    assert ask(set_of(rule), URL).mapped_url == "https://b.com/v2/users?page=2"


def test_a_regex_fills_its_groups_into_the_destination() -> None:
    rule = MapRemoteRule(matcher=r"^https://([a-z]+)\.com/api", matcher_kind="regex", destination=r"https://\1.test")
    assert ask(set_of(rule), URL).mapped_url == "https://example.test/users?page=2"


@pytest.mark.parametrize(
    "destination", ["b.com", "ftp://b.com", "https://", "https://b.com:99999", "https://b c/", "/x"]
)
def test_a_destination_that_is_no_url_is_reported_with_the_decision(destination: str) -> None:
    book = book_of()
    added = book.add(remote("/api", destination))
    assert added.warnings and "502" in added.warnings[0]
    problem = ask(book.current, URL).map_remote_problem
    assert problem is not None and "destination" in problem


def test_a_slash_too_few_is_warned_about() -> None:
    assert "end the destination with '/'" in book_of().add(remote("https://a.com/", "https://b.com")).warnings[0]
    assert "two" in book_of().add(remote("https://a.com", "https://b.com/")).warnings[0]
    assert book_of().add(remote("https://a.com/", "https://b.com/")).warnings == ()


def test_a_status_is_rewritten_by_the_first_rule_that_fits_url_and_status() -> None:
    rules = set_of(rewrite("/other", 500), rewrite("/api", 404, 200), rewrite("/api", 503))
    decision = ask(rules, URL)
    first, second = rules.status_for(decision, 200), rules.status_for(decision, 201)
    assert first is not None and second is not None
    assert (first.status, first.rule.id) == (404, "r2")
    assert (second.status, second.header) == (503, "201 Created->503 Service Unavailable")
    assert decision.rule_ids == ()


def test_a_status_without_a_name_is_shown_as_unknown() -> None:
    change = ask(set_of(rewrite("/", 799)), URL).status_for(200)
    assert change is not None and change.header == "200 OK->799 <unknown status code>"


def test_a_status_rule_for_another_status_leaves_it() -> None:
    rules = set_of(rewrite("/api", 404, 500))
    assert rules.status_for(ask(rules, URL), 200) is None


def test_a_status_rewrite_applies_on_top_of_a_local_answer() -> None:
    decision = ask(set_of(local("/api"), rewrite("/api", 503)), URL)
    assert decision.map_local is not None and decision.status_for(200) is not None


def test_header_and_body_edits_add_up_in_order() -> None:
    one, two, three = (HeaderEdit("set", "x-a", "1"), HeaderEdit("add", "x-b", "2"), HeaderEdit("remove", "x-c"))
    decision = ask(
        set_of(
            HeaderRewriteRule(matcher="/api", edits=(one,)),
            HeaderRewriteRule(matcher="example.com", edits=(two,)),
            HeaderRewriteRule(matcher="/", edits=(three,), on="response"),
            BodyReplaceRule(matcher="/", find="a", text="b"),
            BodyReplaceRule(matcher="/", text="whole", on="request"),
        ),
        URL,
    )
    assert decision.request_edits == (one, two) and decision.response_edits == (three,)
    assert [rule.apply(b"banana") for rule in decision.response_bodies] == [b"bbnbnb"]
    assert [rule.apply(b"banana") for rule in decision.request_bodies] == [b"whole"]
    assert set(decision.rule_ids) == {"r1", "r2", "r3", "r4", "r5"}


def test_breakpoints_of_both_directions_delay_and_fault_come_together() -> None:
    decision = ask(
        set_of(
            BreakpointRule(matcher="/api"),
            BreakpointRule(matcher="/", on="response", time_limit_s=5),
            BreakpointRule(matcher="/api", on="response"),
            DelayRule(matcher="/api", delay_ms=100, jitter_ms=50),
            FaultRule(matcher="/api", mode="truncate", after_bytes=10),
        ),
        URL,
    )
    assert decision.request_breakpoint is not None and decision.request_breakpoint.id == "r1"
    assert decision.response_breakpoint is not None and decision.response_breakpoint.time_limit_s == 5
    assert decision.fault is not None and decision.fault.after_bytes == 10
    assert decision.delay is not None
    assert all(0.05 <= decision.delay.delay_s(Random(seed)) <= 0.15 for seed in range(50))


def test_a_rule_for_one_method_leaves_the_others() -> None:
    rules = set_of(BlockRule(matcher="/api", method="post"))
    assert ask(rules, URL, "POST").block is not None
    assert ask(rules, URL, "GET").block is None


def test_hits_are_counted_for_what_acts_and_not_by_a_preview() -> None:
    book = book_of(allow("example.com"), local("/api"), remote("/api", "https://b.com"), rewrite("/", 503, 404))
    for _ in range(3):
        decision = ask(book.current, URL)
    book.current.preview("GET", "https", "example.com", "/api")
    book.current.status_for(decision, 404)
    book.current.status_for(decision, 200)
    assert [listed.hits for listed in book.listed()] == [3, 3, 0, 1]


def test_many_hosts_do_not_make_the_set_grow() -> None:
    rules = set_of(local("https://example.com/api"))
    for number in range(5000):
        assert ask(rules, f"https://h{number}.example.com/api").map_local is not None
    assert len(rules._sites) <= 2048


@pytest.mark.parametrize(
    ("glob", "url", "fits"),
    [
        ("*", "http://a.com/x", True),
        ("*.example.com", "https://a.example.com:444/x?y", True),
        ("*.example.com", "https://example.com/", False),
        ("api-*.example.com/v*/users", "https://api-eu.example.com/v12/users", True),
        ("api-*.example.com/v*/users", "https://api-eu.example.com/v12/users/1", False),
        ("https://*/a*b*c", "https://h/aXbYc", True),
        ("https://*/a*b*c", "https://h/acb", False),
        ("*://h:8080/*", "http://h:8080/", True),
        ("*://h:8080/*", "http://h/", False),
        ("*://h:*/", "http://h:99/", True),
        ("wss://h/*", "https://h/x", True),
        ("/a?b=*", "http://h/a?b=1", True),
        ("/a?b=*", "http://h/axb=1", False),
        ("/ab*ba", "http://h/aba", False),
        ("/exact", "http://h/exact", True),
        ("/exact", "http://h/exact2", False),
        ("", "http://h/", False),
    ],
)
def test_a_glob_is_whole_and_its_star_runs_over_anything(glob: str, url: str, fits: bool) -> None:
    assert matches(glob, url, "glob") is fits


@pytest.mark.parametrize(
    ("regex", "url", "fits"),
    [
        (r"/users/\d+$", "http://a.com/users/12", True),
        (r"/users/\d+$", "http://a.com/users/x", False),
        (r"(?i)EXAMPLE\.com", "http://example.com/", True),
        (r"^https", "http://a.com/", False),
        (r"a.com(:80)?/x|/y", "http://b.com/y", True),
    ],
)
def test_a_regex_is_searched_in_the_whole_url(regex: str, url: str, fits: bool) -> None:
    assert matches(regex, url, "regex") is fits


def test_a_target_shorter_than_other_rules_paths_meets_each_rule_once() -> None:
    rules = set_of(rewrite("/", 503), rewrite("/a", 500), rewrite("/abc", 501))
    assert [rule.id for rule in ask(rules, "http://h/").status_rewrites] == ["r1"]


def test_every_rule_is_found_among_many_with_the_same_beginning() -> None:
    paths = ["/a", "/bx", "/by", "/by/1", "/by/2", "/c/long/path", "/c/long/patience", "/cz"]
    rules = set_of(*(BlockRule(matcher=path) for path in paths))
    for path in paths:
        assert ask(rules, f"http://h{path}").block is not None
    for path in ("/", "/b", "/bz", "/c/long/pat", "/d"):
        assert ask(rules, f"http://h{path}").block is None
