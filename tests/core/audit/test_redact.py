"""No secret reaches the audit log or the question that a person is shown."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.core.audit.redact import redact_json, redact_value
from dari.text.redact import is_surely_clean, redact_text

SECRET = "s3cr3t-Va1ue-0123456789"
HOLDING: list[Any] = [
    {"password": SECRET},
    {"apiKey": SECRET, "path": "/a"},
    {"headers": {"Authorization": f"Bearer {SECRET}"}},
    {"env": [{"nested": {"client_secret": SECRET}}]},
    {"credentials": {"user": "ann", "value": SECRET}},
    {"command": f"curl -H 'Authorization: Bearer {SECRET}' https://a.example"},
    {"url": f"https://ann:{SECRET}@a.example/"},
    {"url": f"https://a.example/?api_key={SECRET}"},
    {"body": json.dumps({"token": SECRET})},
    {"text": f"password={SECRET}\n" + "x" * 5000},
    [f"token: {SECRET}"],
    {f"password={SECRET}": 1},
    {"pin": 1234567890},
]


@pytest.mark.parametrize("value", HOLDING, ids=range(len(HOLDING)))
def test_a_secret_is_taken_out_of_any_place_of_a_value(value: Any) -> None:
    for shown in (redact_json(json.dumps(value).encode()).decode(), json.dumps(redact_value(value))):
        assert SECRET not in shown and "1234567890" not in shown
        assert "<redacted>" in shown


@pytest.mark.parametrize(
    "secret", ["ghp_" + "a1" * 18, "AKIA" + "A1B2C3D4E5F6G7H8", "sk-" + "ab12" * 8, "xoxb-1234567890-ab"]
)
def test_a_secret_is_known_by_its_shape_under_any_name(secret: str) -> None:
    assert secret.encode() not in redact_json(json.dumps({"note": f"use {secret} here"}).encode())


def test_what_is_no_secret_stays_byte_for_byte() -> None:
    for value in (
        {"path": "/tmp/x", "content": "hello world", "n": 5, "deep": [{"a": None}]},
        {"max_tokens": 100, "token": None, "password": "", "has_secret": True},
        {"nextPageToken": "abc"},
    ):
        data = json.dumps(value, indent=1).encode()
        assert redact_json(data) is data


def test_long_arguments_are_redacted_too() -> None:
    data = json.dumps({"password": SECRET, "text": "x" * 10_000}).encode()
    assert SECRET.encode() not in redact_json(data)


def test_what_is_no_json_is_not_passed_on() -> None:
    with pytest.raises(msgspec.DecodeError):
        redact_json(b"password=" + SECRET.encode())


def test_what_is_nested_too_deep_to_look_through_is_not_shown() -> None:
    value: Any = {"note": "in the deep"}
    for _ in range(5000):
        value = [value]
    shown = json.dumps(redact_value(value))
    assert "in the deep" not in shown and "<redacted>" in shown


@given(st.text(max_size=60) | st.text('=:>"{}a<pintokensk-AIzaeyJ./ \n', max_size=60))
@settings(deadline=None)
def test_the_quick_look_never_lets_pass_what_the_long_one_would_change(text: str) -> None:
    if is_surely_clean(text):
        assert redact_text(text) == (text, 0)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)


@given(values, st.sampled_from(["password", "x-api-key", "Client-Secret", "access_token", "cookie"]))
@settings(deadline=None)
def test_a_secret_beside_any_value_is_gone_and_the_shape_of_the_rest_stays(value: Any, name: str) -> None:
    shown = redact_value({"rest": value, name: SECRET})
    assert isinstance(shown, dict)
    assert shown[name] == "<redacted>" and type(shown["rest"]) is type(value)
