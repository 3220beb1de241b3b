"""Wrong values are refused by name; likely mistakes are accepted with a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import Failed, InvalidInput
from dari.proxy.rules.conditions import SafeRegex
from dari.proxy.rules.rule import (
    AnyRule,
    BlockRule,
    BodyReplaceRule,
    BreakpointRule,
    DelayRule,
    FaultRule,
    HeaderEdit,
    HeaderRewriteRule,
    MapLocalRule,
    MapLocalSource,
    MapRemoteRule,
    MockRule,
)
from tests.support.proxy_rules import allow, ask, book_of, local, rewrite


def edit(name: str, value: str = "") -> HeaderRewriteRule:
    return HeaderRewriteRule(matcher="/", edits=(HeaderEdit("set", name, value),))


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        (local("/", status_code=99), "99"),
        (local("/", status_code=1000), "1000"),
        (local("/", content_type="text/html\r\nx: y"), "content_type"),
        (rewrite("/", 42), "42"),
        (rewrite("/", 200, -1), "-1"),
        (BlockRule(matcher="/", status_code=0), "0"),
        (BlockRule(matcher="/", method="GET POST"), "GET POST"),
        (BlockRule(matcher="x" * 9000), "9000"),
        (BlockRule(matcher="(", matcher_kind="regex"), "("),
        (BlockRule(matcher="a" * 1001, matcher_kind="regex"), "1001"),
        (edit("bad name"), "bad name"),
        (edit("Content-Length", "3"), "Content-Length"),
        (edit("x", "a\nb"), "line break"),
        (edit("x", "日"), "日"),
        (HeaderRewriteRule(matcher="/", edits=()), "edits"),
        (MockRule(matcher="/", headers=(("transfer-encoding", "chunked"),)), "transfer-encoding"),
        (BodyReplaceRule(matcher="/", find="", text="x"), "find"),
        (DelayRule(matcher="/", delay_ms=-1), "-1"),
        (DelayRule(matcher="/", delay_ms=1, jitter_ms=10**9), "jitter_ms"),
        (FaultRule(matcher="/", after_bytes=-5), "-5"),
        (BreakpointRule(matcher="/", time_limit_s=0), "time_limit_s"),
        (MapRemoteRule(matcher="(a)", matcher_kind="regex", destination=r"https://b/\2"), r"\2"),
    ],
)
def test_a_wrong_value_is_refused_and_named(rule: AnyRule, named: str) -> None:
    book = book_of()
    with pytest.raises(InvalidInput) as refused:
        book.add(rule)
    assert named in refused.value.message or named in repr(refused.value.message)
    assert refused.value.hint
    assert len(book) == book.revision == 0


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone.json"
    with pytest.raises(Failed) as refused:
        book_of().add(MapLocalRule(matcher="/", source=MapLocalSource("file", str(gone))))
    assert refused.value.message == f"map_local file not found: {gone}"


def test_a_directory_or_an_impossible_path_is_no_file(tmp_path: Path) -> None:
    for path in (str(tmp_path), "a\0b", ""):
        with pytest.raises(Failed):
            book_of().add(MapLocalRule(matcher="/", source=MapLocalSource("file", path)))


def test_an_existing_file_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text("{}")
    assert book_of().add(MapLocalRule(matcher="/", source=MapLocalSource("file", str(path)))).warnings == ()


@pytest.mark.parametrize(
    ("regex", "url"),
    [
        ("(x+x+)+[yz]", "http://h/" + "x" * 1000),
        ("(a|a)*$", "http://h/" + "a" * 60 + "b"),
        (r"(\w+\s?)*$", "http://h/" + "word " * 5000 + "!"),
    ],
)
def test_a_regex_that_would_take_forever_stops_itself_and_says_so(regex: str, url: str) -> None:
    book = book_of(BlockRule(matcher=regex, matcher_kind="regex"))
    assert ask(book.current, url).block is None
    assert ask(book.current, "http://h/xxy").block is None
    assert "50 ms" in book.listed()[0].warnings[0]


@pytest.mark.parametrize(
    ("regex", "url"),
    [
        (r".*/api/.*\.json$", "http://h/v1/api/x/y.json"),
        (r"([^/]+/)*x", "http://h/a/b/x"),
        (r"(?:foo|bar)+", "http://h/foobar"),
        (r"^https?://(?:\d{1,3}\.){3}\d{1,3}(:\d+)?/", "http://10.0.0.1:80/"),
        (r"^https://[^/]+/v\d+/users/\d+(?:\?.*)?$", "https://h/v1/users/7?a=b"),
        (r"(?i)/USERS/.*/posts/.*", "http://h/users/1/posts/2"),
        (r"\.(?:js|css|png|jpe?g|svg|woff2?)(?:\?|$)", "http://h/a.woff2?x"),
        (r"(a+)?b|(?=a+)b|(a{2})*", "http://h/"),
    ],
)
def test_everyday_regexes_are_taken_and_match(regex: str, url: str) -> None:
    assert SafeRegex(regex).search(url)


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        (local(""), "never matches"),
        (local("https:///x"), "never matches"),
        (local(r"https://a\.com/.*"), "matcher_kind to 'regex'"),
        (local("https://a.com/*/x"), "matcher_kind to 'glob'"),
        (local("https://a*.com/x"), "matcher_kind to 'glob'"),
        (local("*.a.com/x"), "matcher_kind to 'glob'"),
        (allow("/api"), "decrypts nothing"),
        (rewrite("/", 204), "no body"),
        (local("/", status_code=100), "never final"),
    ],
)
def test_a_likely_mistake_is_warned_about(rule: AnyRule, word: str) -> None:
    assert any(word in warning for warning in book_of().add(rule).warnings)


@pytest.mark.parametrize(
    "matcher", ["*", "*.*", "*.example.com", "example.com", "https://*.example.com:81/api", "https://*/"]
)
def test_good_allow_rules_carry_no_warning(matcher: str) -> None:
    assert book_of().add(allow(matcher)).warnings == ()
