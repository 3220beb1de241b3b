from __future__ import annotations

import logging
import pickle

import msgspec
import pytest

from dari.bridge.config.secret import Mask, Secret, is_sensitive


def test_a_secret_shows_itself_to_reveal_alone(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret("hunter2")
    logging.getLogger("dari.test").warning("%s %r", secret, secret)
    seen = [str(secret), repr(secret), f"{secret}", f"{secret:>20}", repr({"k": secret}), caplog.text]
    assert all("hunter2" not in text for text in seen)
    assert secret.reveal() == "hunter2"


def test_a_secret_cannot_be_encoded_or_pickled() -> None:
    with pytest.raises(TypeError):
        msgspec.json.encode({"k": Secret("x")})
    with pytest.raises(TypeError):
        pickle.dumps(Secret("x"))


def test_secrets_compare_by_what_they_hold() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert not Secret("")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("${KEY}", "${KEY}"),
        ("Bearer ${KEY}", "Bearer ${KEY}"),
        ("${KEY:-abc}", "${KEY:-<secret>}"),
        ("abc", "<secret>"),
        ("abc${KEY}", "<secret>"),
        ("", ""),
    ],
)
def test_a_reference_may_be_shown_and_a_value_may_not(text: str, shown: str) -> None:
    assert Secret(text).shown == shown


def test_the_longer_secret_is_masked_first() -> None:
    assert Mask(["abcd", "abcdefgh"])("abcdefgh abcd") == "<secret> <secret>"


def test_everyday_words_are_not_masked() -> None:
    assert Mask(["1", "on", ""])("1 on 11") == "1 on 11"


@pytest.mark.parametrize(
    "name", ["API_KEY", "Authorization", "x-api-key", "GITHUB_PAT", "password", "SENTRY_DSN", "Cookie"]
)
def test_names_that_hold_secrets_are_known(name: str) -> None:
    assert is_sensitive(name)


@pytest.mark.parametrize("name", ["REGION", "User-Agent", "PATH", "LANG"])
def test_names_that_hold_none_are_left_alone(name: str) -> None:
    assert not is_sensitive(name)
