"""One typed decode reads every kind of message; encoding by splicing is what a JSON reader gets back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from dari.rpc.codec import (
    MAX_MENDED_BYTES,
    UNREADABLE,
    Message,
    decode_message,
    encode,
    error_message,
    mend_surrogates,
    notification_message,
    request_message,
    result_message,
)

ids = st.integers() | st.text(max_size=20)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(st.text(max_size=8), values, max_size=4)


def read(**members: Any) -> Message:
    return decode_message(json.dumps({"jsonrpc": "2.0", **members}).encode())


def test_a_request_has_an_id_and_a_method() -> None:
    message = read(id=1, method="tools/call", params={"name": "echo", "arguments": {"a": [1, 2]}})
    assert (message.id, message.method, message.result, message.error) == (1, "tools/call", UNSET, UNSET)
    assert message.params
    assert message.params.name == "echo"


def test_the_arguments_of_a_tool_stay_as_they_were_written() -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"a" : 1.50}}}'
    params = decode_message(raw).params
    assert params
    assert bytes(params.arguments) == b'{"a" : 1.50}'  # type: ignore[arg-type]


def test_a_notification_has_no_id() -> None:
    message = read(method="notifications/cancelled", params={"requestId": "a", "reason": None})
    assert message.id is UNSET
    assert message.params
    assert (message.params.request_id, message.params.reason) == ("a", None)


def test_a_response_has_a_result_or_an_error_and_no_method() -> None:
    good, bad = read(id="s1", result={"ok": True}), read(id="s1", error={"code": -1, "message": "no", "data": [1]})
    assert good.method is bad.method is UNSET
    assert json.loads(bytes(good.result)) == {"ok": True}  # type: ignore[arg-type]
    assert bad.error
    assert (bad.error.code, bad.error.message, bad.error.data) == (-1, "no", [1])


@pytest.mark.parametrize("params", [{}, {"_meta": {}}, {"surprise": 1, "_meta": {"surprise": {}}}])
def test_members_that_nobody_knows_are_ignored(params: dict[str, Any]) -> None:
    assert read(id=1, method="ping", params=params, surprise=[1]).params == decode_message(
        b'{"params":%b}' % (b'{"_meta":{}}' if "_meta" in params else b"{}")
    ).params  # fmt: skip


def test_absent_params_and_null_params_are_both_nothing() -> None:
    assert read(id=1, method="ping").params is UNSET
    assert read(id=1, method="ping", params=None).params is None


def test_the_envelope_of_the_stateless_era_is_read_by_its_long_names() -> None:
    prefix = "io.modelcontextprotocol/"
    meta = {
        "progressToken": 7,
        prefix + "protocolVersion": "2026-07-28",
        prefix + "clientCapabilities": {"roots": {}},
        prefix + "logLevel": "debug",
    }
    params = read(id=1, method="tools/list", params={"_meta": meta}).params
    assert params
    assert params.meta
    assert (params.meta.progress_token, params.meta.version, params.meta.log_level) == (7, "2026-07-28", "debug")
    assert bytes(params.meta.capabilities) == b'{"roots": {}}'  # type: ignore[arg-type]


@pytest.mark.parametrize("request_id", [0, -1, 2**31, 2**63, 2**64 + 1, 10**40, "", "1", "아이디", "\0", 'a"b\\c'])
def test_an_id_of_any_size_and_kind_comes_back_as_it_was(request_id: int | str) -> None:
    read_id = read(id=request_id, method="ping").id
    assert (read_id, type(read_id)) == (request_id, type(request_id))
    assert json.loads(result_message(request_id, b"{}"))["id"] == request_id


@settings(deadline=None)
@given(ids, objects)
def test_a_spliced_result_is_the_json_it_says(request_id: int | str, result: dict[str, Any]) -> None:
    message = result_message(request_id, encode(result))
    assert json.loads(message) == {"jsonrpc": "2.0", "id": request_id, "result": result}
    assert b"\n" not in message


@settings(deadline=None)
@given(st.none() | ids, st.integers(-(2**31), 2**31), st.text(max_size=40), values)
def test_a_spliced_error_is_the_json_it_says(request_id: int | str | None, code: int, text: str, data: Any) -> None:
    error = {"code": code, "message": text} | ({} if data is None else {"data": data})
    message = error_message(request_id, code, text, data)
    assert json.loads(message) == {"jsonrpc": "2.0", "id": request_id, "error": error}
    assert b"\n" not in message


@settings(deadline=None)
@given(ids, st.text(max_size=20), st.none() | objects)
def test_requests_and_notifications_read_back_as_what_was_sent(
    request_id: int | str, method: str, params: dict[str, Any] | None
) -> None:
    shown = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
    assert json.loads(notification_message(method, params)) == shown
    assert json.loads(request_message(request_id, method, params)) == {"id": request_id, **shown}


def test_a_message_that_would_take_seconds_to_search_is_not_searched_for_halves_of_pairs() -> None:
    text = b'{"x":"' + b"\\\\" * MAX_MENDED_BYTES + b"\\ud83d"
    assert mend_surrogates(text) is text
    with pytest.raises(UNREADABLE):
        decode_message(text)


@pytest.mark.parametrize(
    ("written", "query"),
    [
        (rb"\ud83d cat", "\ufffd cat"),
        (rb"cat \uDE00", "cat \ufffd"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\ud83d \ud83d", r"\ud83d " + "\ufffd"),
    ],
)
def test_half_of_a_surrogate_pair_becomes_the_replacement_character(written: bytes, query: str) -> None:
    message = decode_message(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"q":"%b"}}}' % written
    )
    assert message.params
    assert isinstance(message.params.arguments, Raw)
    assert json.loads(bytes(message.params.arguments)) == {"q": query}
