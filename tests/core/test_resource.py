"""Resources list what they are; a template recognises the URIs of its family and reads their variables."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.core.context import Context
from dari.core.resource import Resource, ResourceTemplate


async def body(context: Context, values: dict[str, str] | None = None) -> str:
    return "body"


def template(pattern: str) -> ResourceTemplate:
    return ResourceTemplate(pattern, "t", body)


@pytest.mark.parametrize(
    ("pattern", "uri", "values"),
    [
        ("demo://item/{id}", "demo://item/9", {"id": "9"}),
        ("demo://item/{id}/data", "demo://item/a-b/data", {"id": "a-b"}),
        ("demo://{kind}/{id}", "demo://pane/7", {"kind": "pane", "id": "7"}),
        ("demo://{a}.{b}", "demo://x.y", {"a": "x", "b": "y"}),
        ("demo://item/{id}", "demo://item/%EB%8B%A4%20x", {"id": "다 x"}),
        ("demo://item/{id}", "demo://item/a%2Fb", {"id": "a/b"}),
        ("demo://fixed", "demo://fixed", {}),
        ("demo://a+b?c={id}", "demo://a+b?c=1", {"id": "1"}),
    ],
)
def test_a_uri_of_the_family_gives_the_variables_decoded(pattern: str, uri: str, values: dict[str, str]) -> None:
    assert template(pattern).match(uri) == values


@pytest.mark.parametrize(
    "uri",
    ["demo://item/", "demo://item", "demo://item/1/2", "demo://items/1", "xdemo://item/1", "demo://item/1/", ""],
)
def test_another_uri_is_not_of_the_family(uri: str) -> None:
    assert template("demo://item/{id}").match(uri) is None


def test_what_means_something_in_a_regular_expression_is_only_itself() -> None:
    assert template("demo://a.b/{id}").match("demo://aXb/1") is None
    assert template("demo://(x)/{id}").match("demo://(x)/1") == {"id": "1"}


@settings(deadline=None)
@given(st.text(min_size=1, max_size=30))
def test_any_value_survives_the_way_through_a_uri(value: str) -> None:
    assert template("demo://item/{id}").match(f"demo://item/{quote(value, safe='')}") == {"id": value}


def test_a_listing_shows_what_is_known_and_no_more() -> None:
    bare = Resource("demo://x", "x", body)
    assert bare.listing() == {"uri": "demo://x", "name": "x"}
    full = Resource("demo://x", "x", body, description="d", mime_type="text/plain", title="X")
    assert full.listing() == {
        "uri": "demo://x",
        "name": "x",
        "title": "X",
        "description": "d",
        "mimeType": "text/plain",
    }
    assert template("demo://{id}").listing() == {"uriTemplate": "demo://{id}", "name": "t"}
