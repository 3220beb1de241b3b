"""URLs and headers that a caller gives."""

from __future__ import annotations

import pytest

from dari.errors import InvalidInput
from dari.transport.client.address import parse_address
from dari.transport.client.http import HttpChannel


@pytest.mark.parametrize(
    "url", ["ftp://x/", "http://", "http://x:99999/", "http://x/a b", "http://x/\r\nevil: 1", "http://x/é"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        parse_address(url)


def test_a_url_is_taken_apart() -> None:
    address = parse_address("https://me:p%40ss@[::1]:8443/mcp?key=1")
    assert (address.host, address.port, address.target) == ("::1", 8443, "/mcp?key=1")
    assert address.host_header == "[::1]:8443"
    assert address.credentials == "bWU6cEBzcw=="
    assert address.shown == "https://[::1]:8443/mcp"
    assert parse_address("https://example.com").host_header == "example.com"
    assert parse_address("http://münchen.example/").host == "xn--mnchen-3ya.example"


@pytest.mark.parametrize("headers", [{"a b": "c"}, {"a": "b\r\nc: d"}, {"": "x"}, {"x": "a\0b"}])
def test_headers_that_would_break_the_request_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        HttpChannel("http://x/", headers=headers)
