"""`--endpoint`, `--key`, `--header`, `--timeout`: design 001 §4 and §6."""

from __future__ import annotations

import pytest

from dari.bridge.config.interpolate import InterpolationContext, resolve_profile
from dari.bridge.config.overrides import apply_overrides, endpoint_profile, parse_headers
from dari.bridge.config.profile import Profile
from dari.errors import InvalidInput
from tests.support.bridge_config import World, http, one


def used(profile: Profile, world: World) -> Profile:
    context = InterpolationContext(environ=world.environ, cwd=world.cwd, home=world.home, workspace=world.cwd)
    return resolve_profile(profile, context).profile


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://127.0.0.1:9001", "http://127.0.0.1:9001/mcp"),
        ("http://127.0.0.1:9001/", "http://127.0.0.1:9001/mcp"),
        ("https://h/mcp", "https://h/mcp"),
        ("https://h/v1/sse", "https://h/v1/sse"),
    ],
)
def test_an_endpoint_needs_no_profile(world: World, given: str, url: str) -> None:
    assert http(used(endpoint_profile(given), world)).url == url


@pytest.mark.parametrize("given", ["", "h:1", "ftp://h", "http://", "http://h:99999", "http://h\n", "http://[::1"])
def test_what_is_no_address_is_refused_without_being_repeated(given: str) -> None:
    with pytest.raises(InvalidInput, match="--endpoint"):
        endpoint_profile(given)


def test_headers_are_read_as_key_and_value() -> None:
    assert parse_headers(["X-Key: a:b", "Accept:*/*"]) == {"X-Key": "a:b", "Accept": "*/*"}


@pytest.mark.parametrize("given", ["no colon with hunter2", ": hunter2", "bad name: hunter2"])
def test_a_bad_header_is_refused_without_its_value(given: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_headers([given])
    assert "hunter2" not in str(caught.value)


def test_the_command_line_wins_over_the_profile(world: World) -> None:
    """§6: CLI 인자(--key, --header) > 프로필 설정."""
    profile = one({"apiKey": "old", "headers": {"x-team": "old", "Keep": "it"}, "timeoutMs": 5})
    changed = used(apply_overrides(profile, key="new", headers={"X-Team": "new"}, timeout_ms=9), world)
    token = http(changed).auth.token
    assert token and token.reveal() == "new"
    assert {name: value.reveal() for name, value in http(changed).headers.items()} == {"Keep": "it", "X-Team": "new"}
    assert changed.timeout_ms == 9


def test_a_key_replaces_an_authorization_header_and_the_other_way_round() -> None:
    with_header = one({"headers": {"authorization": "Basic x"}})
    assert http(apply_overrides(with_header, key="k")).headers == {}
    with_key = one({"apiKey": "k"})
    assert http(apply_overrides(with_key, headers={"Authorization": "Basic x"})).auth.type == "none"


def test_what_the_shell_gave_is_taken_as_it_stands(world: World) -> None:
    token = http(used(apply_overrides(endpoint_profile("http://h"), key="a${HOME}b"), world)).auth.token
    assert token and token.reveal() == "a${HOME}b"


def test_without_arguments_the_profile_is_unchanged() -> None:
    profile = one({"apiKey": "k"})
    assert apply_overrides(profile) is profile


def test_a_local_process_takes_no_key() -> None:
    with pytest.raises(InvalidInput):
        apply_overrides(one({"command": "x"}), key="k")
    with pytest.raises(InvalidInput, match="--timeout"):
        apply_overrides(one({"command": "x"}), timeout_ms=0)
