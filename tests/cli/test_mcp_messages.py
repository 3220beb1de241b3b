"""What the pipe of `dari mcp` reads of a client's message: its head alone says what the whole message says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dari.cli.hub.protocol import to_json
from dari.cli.mcp import messages
from dari.cli.mcp.messages import ClientMessage

IDS = [0, 7, -7, 1.5, True, None, "", "a", 'q"uote', "back\\slash", "다리", "\x7f", "a,b", '","method":"ping']
PARAMS: list[Any] = [{"name": "x", "text": ',"jsonrpc":"2.0","id":9}'}, {"deep": {"jsonrpc": "2.0", "id": 9}}, {}]


@pytest.mark.parametrize("identifier", IDS, ids=repr)
@pytest.mark.parametrize("params", PARAMS, ids=["text", "object", "none"])
def test_a_request_is_the_same_in_every_order_of_its_members(identifier: Any, params: Any) -> None:
    head: dict[str, Any] = {"jsonrpc": "2.0", "id": identifier}
    call: dict[str, Any] = {"method": "tools/call", "params": params}
    is_id = isinstance(identifier, int | str) and not isinstance(identifier, bool)
    for message in ({**head, **call}, {**call, **head}, {"params": params, **head, "method": "tools/call"}):
        for separators in ((",", ":"), (", ", ": ")):
            for is_ascii in (True, False):
                text = json.dumps(message, separators=separators, ensure_ascii=is_ascii).encode()
                read = ClientMessage(text)
                assert read.id == (to_json(identifier) if is_id else None)
                assert (read.method, read.params, read.is_response) == ("tools/call", params, False)


FIRST = [
    b'{"jsonrpc":"2.0","id":1,"method":"ping"',
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping"',
    b'{"method":"ping"',
]


@pytest.mark.parametrize("first", FIRST)
def test_a_request_in_the_order_of_the_sdks_is_not_parsed(first: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "loads", lambda data: pytest.fail("parsed"))
    last = b"}" if b'"id"' in first else b',"jsonrpc":"2.0","id":1}'
    assert ClientMessage(first + b',"params":{}' + last).id == "1"


def test_digits_at_the_end_of_a_notification_are_not_its_id() -> None:
    assert ClientMessage(b'{"method":"noti","x":123}').id is None


@pytest.mark.parametrize("text", [b'{"jsonrpc":"2.0","id":"', b'{"method":"', b'{"method":"}', b"{}", b"[]", b"\xff"])
def test_a_message_that_breaks_off_is_no_request(text: bytes) -> None:
    assert not ClientMessage(text).is_request and ClientMessage(text).params == {}
