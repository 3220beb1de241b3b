"""The original's matcher, sentence by sentence (reference §1.3)."""

from __future__ import annotations

import pytest

from tests.support.proxy_rules import matches


@pytest.mark.parametrize("matcher", ["", "   ", "\t\n"])
def test_an_empty_matcher_never_matches(matcher: str) -> None:
    assert not matches(matcher, "http://example.com/")


def test_blanks_around_a_matcher_do_not_count() -> None:
    assert matches("  https://example.com/api  ", "https://example.com/api")


def test_a_full_url_wants_the_same_scheme() -> None:
    assert matches("https://example.com/api", "https://example.com/api")
    assert not matches("https://example.com/api", "http://example.com/api")
    assert matches("HTTPS://example.com/api", "https://example.com/api")


def test_a_websocket_url_stands_for_the_request_that_opens_it() -> None:
    assert matches("wss://example.com/socket", "https://example.com/socket")
    assert not matches("ws://example.com/socket", "https://example.com/socket")


def test_a_full_url_matches_with_the_default_port_written_out() -> None:
    assert matches("https://example.com/api", "https://example.com:443/api")


def test_a_full_url_without_port_matches_any_port() -> None:
    assert matches("http://example.com/api", "http://example.com:8080/api")


def test_a_port_in_the_matcher_is_compared_with_the_effective_port() -> None:
    assert matches("http://example.com:8080/", "http://example.com:8080/")
    assert not matches("http://example.com:8080/", "http://example.com:8081/")
    assert not matches("http://example.com:8080/", "http://example.com/")
    assert matches("https://example.com:443/", "https://example.com/")


def test_a_full_url_without_path_matches_every_path_and_the_sub_domains() -> None:
    assert matches("https://example.com", "https://example.com/any?x=1")
    assert matches("https://example.com", "https://api.example.com/")
    assert not matches("https://example.com", "https://notexample.com/")
    assert not matches("https://example.com", "https://example.com.evil.net/")


def test_the_path_is_a_plain_prefix_of_path_and_query() -> None:
    assert matches("https://example.com/api", "https://example.com/apix")
    assert matches("https://example.com/api?x=1", "https://example.com/api?x=12")
    assert not matches("https://example.com/api?x=1", "https://example.com/api?y=1")


def test_the_path_is_case_sensitive_and_the_host_is_not() -> None:
    assert matches("https://EXAMPLE.com/api", "https://example.COM/api")
    assert not matches("https://example.com/API", "https://example.com/api")


def test_a_wildcard_authority_means_strict_sub_domains() -> None:
    assert matches("https://*.example.com/", "https://a.example.com/")
    assert matches("https://*.example.com/", "https://a.b.example.com/")
    assert not matches("https://*.example.com/", "https://example.com/")
    assert not matches("https://*.example.com/", "https://badexample.com/")


def test_a_star_alone_is_any_host() -> None:
    assert matches("https://*/api", "https://example.com/api")
    assert not matches("https://*:8443/api", "https://example.com/api")


@pytest.mark.parametrize("matcher", ["http://[::1]:3000/", "http://[::1]/", "http://[0:0:0:0:0:0:0:1]:3000"])
def test_ipv6_stands_in_brackets_in_any_spelling(matcher: str) -> None:
    assert matches(matcher, "http://[::1]:3000/x")
    assert not matches(matcher, "http://[::2]:3000/x")


def test_a_final_dot_and_an_international_name_are_the_same_host() -> None:
    assert matches("https://example.com/", "https://example.com./")
    assert matches("https://bücher.example/", "https://xn--bcher-kva.example/")


@pytest.mark.parametrize("matcher", ["https://", "https:///api", "https://:8080/"])
def test_a_url_without_host_never_matches(matcher: str) -> None:
    assert not matches(matcher, "https://example.com:8080/api")


def test_a_path_matches_on_any_host_and_scheme() -> None:
    for url in ("http://a.com/api/x", "https://b.org:8443/api?q"):
        assert matches("/api", url)
    assert not matches("/api", "http://a.com/v1/api")


def test_anything_else_is_a_byte_prefix_of_authority_and_target() -> None:
    assert matches("example.com/api", "https://example.com/api/users")
    assert matches("example.com/api", "http://example.com/api")
    assert not matches("example.com/api", "http://www.example.com/api")


def test_a_piece_of_a_host_matches_from_its_start() -> None:
    assert matches("exam", "https://example.com/")
    assert not matches("ample", "https://example.com/")


def test_authority_form_does_not_match_when_the_request_names_a_port() -> None:
    assert not matches("example.com/api", "http://example.com:8080/api")
    assert matches("example.com:8080/api", "http://example.com:8080/api")


def test_authority_form_is_case_sensitive() -> None:
    assert not matches("Example.com/api", "https://example.com/api")


def test_inside_a_decrypted_tunnel_the_authority_is_the_host_header_without_443() -> None:
    assert matches("example.com/api", "https://example.com/api")
    assert not matches("example.com:443/api", "https://example.com/api")


def test_userinfo_and_odd_ports_never_raise() -> None:
    for authority in ("user:pw@example.com", "example.com:", "example.com:99999999", "[::1", "::1", "", "[]:x"):
        assert not matches("https://other.example/", f"https://{authority}/")
