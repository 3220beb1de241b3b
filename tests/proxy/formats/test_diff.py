from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dari.proxy.formats.diff import ABSENT, HIDDEN, diff, differences, path_text
from dari.proxy.recording.bodies import BodyStore
from dari.text.redact import MAX_CHARS
from tests.support.flows import SECRET, Hiding, flow

PLAIN = [(b"Content-Type", b"text/plain")]


def changed(a: Any, b: Any) -> list[tuple[str, str, str, Any, Any]]:
    return [(one.part, one.kind, one.where, one.a, one.b) for one in diff(a, b).changes]


def test_two_equal_requests_have_no_difference() -> None:
    made = diff(flow(1), flow(2))
    assert made.is_same and made.changes == [] and made.text.endswith("no difference")


def test_method_status_url_and_query_are_compared_part_by_part() -> None:
    a = flow(1, "http://a.test/x?page=1&sort=up", "GET", 200)
    b = flow(2, "https://a.test/y?page=2&dir=down", "POST", 500)
    found = changed(a, b)
    assert ("method", "changed", "", "GET", "POST") in found and ("status", "changed", "", 200, 500) in found
    assert ("url", "changed", "scheme", "http", "https") in found and ("url", "changed", "path", "/x", "/y") in found
    assert ("query", "changed", "page", "1", "2") in found
    assert ("query", "removed", "sort", "up", None) in found and ("query", "added", "dir", None, "down") in found


def test_headers_are_compared_by_name_whatever_their_case_and_order() -> None:
    a = flow(1, request_headers=[(b"Accept", b"*/*"), (b"X-A", b"1"), (b"X-A", b"2")])
    b = flow(2, request_headers=[(b"x-a", b"1"), (b"X-B", b"3"), (b"accept", b"*/*")])
    assert changed(a, b) == [
        ("request_header", "changed", "x-a", "1, 2", "1"),
        ("request_header", "added", "x-b", None, "3"),
    ]


def test_json_bodies_are_compared_by_structure() -> None:
    a = flow(1, response=b'{"user":{"name":"Ann","age":3},"tags":["a","b","c"],"gone":null}')
    b = flow(2, response=b'{"tags":["a","c"],"user":{"age":"3","name":"Ann"},"new":null}')
    assert changed(a, b) == [
        ("response_body", "changed", "$.user.age", 3, "3"),
        ("response_body", "removed", "$.tags[1]", "b", None),
        ("response_body", "removed", "$.gone", None, None),
        ("response_body", "added", "$.new", None, None),
    ]


def test_null_is_a_value_and_not_an_absence() -> None:
    assert changed(flow(1, response=b'{"a":null}'), flow(2, response=b'{"a":1}')) == [
        ("response_body", "changed", "$.a", None, 1)
    ]


def test_text_bodies_are_compared_line_by_line() -> None:
    a = flow(1, response=b"one\ntwo\nthree", response_headers=PLAIN)
    b = flow(2, response=b"one\n2\nthree", response_headers=PLAIN)
    (change,) = diff(a, b).changes
    assert change.note is not None and "-two\n+2" in change.note and "-two\n+2" in diff(a, b).text


def test_binary_bodies_are_only_said_to_differ() -> None:
    head = [(b"Content-Type", b"image/png")]
    (change,) = diff(
        flow(1, response=b"\0a", response_headers=head), flow(2, response=b"\0bc", response_headers=head)
    ).changes
    assert (change.a, change.b, change.note) == ("2 bytes", "3 bytes", "not text")


def test_a_body_that_one_side_lacks_is_added() -> None:
    (change,) = diff(flow(1, request=b""), flow(2, request=b"hello")).changes
    assert (change.part, change.kind, change.b) == ("request_body", "added", "hello")


def test_secrets_that_differ_are_reported_and_not_told() -> None:
    def made(number: int, secret: bytes) -> Any:
        return flow(number, request_headers=[(b"Authorization", secret)], response=b'{"token":"%b"}' % secret)

    class Masking(Hiding):
        """Hides whole values, so that two of them look the same."""

        def headers(self, headers: Any) -> Any:
            return [(name, b"<redacted>") for name, _ in headers]

        def body(self, text: str, mime: str) -> str:
            return '{"token":"<redacted>"}'

    a, b = made(1, SECRET.encode()), made(2, b"other")
    shown = diff(a, b, redactor=Masking())
    assert [(one.where, one.note) for one in shown.changes] == [("authorization", HIDDEN), ("$.token", HIDDEN)]
    assert SECRET not in str(shown) and "other" not in str(shown)


def test_a_url_that_cannot_be_read_is_compared_as_a_whole() -> None:
    bad = flow(2)
    bad.authority = "[oops"
    assert ("url", "changed", "path", "/items", "http://[oops/items") in changed(flow(1), bad)


def test_many_changes_are_cut_and_counted() -> None:
    a = flow(1, response=b"[%s]" % b",".join(b"%d" % n for n in range(500)))
    b = flow(2, response=b"[%s]" % b",".join(b"%d" % (n + 1000) for n in range(500)))
    made = diff(a, b)
    assert len(made.changes) == 200 and made.left_out == 300 and "300 more changes" in made.text


def test_paths_quote_what_is_no_plain_name() -> None:
    assert path_text(("a", 0, "b-c", "d")) == "$.a[0]['b-c'].d"


json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=4),
    max_leaves=12,
)


@given(json, json)
def test_there_is_a_difference_exactly_when_the_documents_differ(a: Any, b: Any) -> None:
    import json as stdlib

    found = list(differences(a, b))
    assert bool(found) == (stdlib.dumps(a, sort_keys=True) != stdlib.dumps(b, sort_keys=True))
    assert all(old is not ABSENT or new is not ABSENT for _, old, new in found)


def test_long_json_is_compared_value_by_value(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies")
    pair = [flow(1), flow(2)]
    for one in pair:
        items = [{"number": number, "password": f"open-sesame-{one.id}"} for number in range(20_000)]
        items[9]["number"] = -one.id
        data = msgspec.json.encode(items)
        assert len(data) > MAX_CHARS
        bodies.keep(one, False, data)
    made = diff(*pair, bodies)
    numbers = [(one.where, one.a, one.b) for one in made.changes if one.where.endswith("number")]
    assert numbers == [("$[9].number", -1, -2)] and "sesame" not in made.text
    assert made.changes[0].note == HIDDEN


def test_json_that_is_nested_too_deep_to_walk_is_compared_as_text() -> None:
    a, b = (flow(number, response=b"[" * 600 + b"%d" % number + b"]" * 600) for number in (1, 2))
    made = diff(a, b)
    assert [one.part for one in made.changes] == ["response_body"] and not made.is_same
