"""What cannot be read is refused with the code that fits, and with the request's id wherever that can be told."""

from __future__ import annotations

import pytest

from tests.support.demo_server import demo_server
from tests.support.wire import MemoryWire, initialize

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
DEEP = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":%b%b}}' % (
    b"[" * 100_000,
    b"]" * 100_000,
)
NOT_JSON = [b"", b"{", b"nonsense", b'{"jsonrpc":"2.0","id":1,"method":"ping"', b'{"a":1}}', b'{"id":"\xff"}', DEEP]
NOT_A_REQUEST = [b"1", b'"text"', b"null", b"true", b"1.5"]
# What was sent, the code, the id that comes back.
REFUSED: list[tuple[bytes, int, int | str | None]] = [
    *((data, PARSE_ERROR, None) for data in NOT_JSON),
    *((data, INVALID_REQUEST, None) for data in NOT_A_REQUEST),
    (b"{}", INVALID_REQUEST, None),
    (b"[]", INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST, 1),
    (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', INVALID_REQUEST, "a"),
    (b'{"jsonrpc":2,"id":"a","method":"ping"}', INVALID_REQUEST, "a"),
    (b'{"id":3,"method":"ping"}', INVALID_REQUEST, 3),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', INVALID_REQUEST, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":null}', INVALID_REQUEST, 1),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}', INVALID_PARAMS, "a"),
    (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":"x"}', INVALID_PARAMS, "a"),
    (b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":5}}', INVALID_PARAMS, 8),
    (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"_meta":[]}}', INVALID_PARAMS, 8),
    (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"_meta":{"progressToken":{}}}}', INVALID_PARAMS, 8),
    (b'{"jsonrpc":"2.0","id":9,"method":"no/such","params":[]}', METHOD_NOT_FOUND, 9),
    (b'{"jsonrpc":"2.0","id":9,"method":"ping\\ud800"}', METHOD_NOT_FOUND, 9),
    (b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":5,"x":"\\udc00"}}', INVALID_PARAMS, 9),
]


@pytest.mark.parametrize(("data", "code", "request_id"), REFUSED, ids=[data[:60] for data, _, _ in REFUSED])
async def test_each_unreadable_message_gets_its_code_and_id(
    data: bytes, code: int, request_id: int | str | None
) -> None:
    server = demo_server()
    wire = MemoryWire(server)
    await wire.ask(initialize())
    server.receive(data, wire)
    reply = wire.messages.get_nowait()
    assert reply["jsonrpc"] == "2.0"
    assert (reply["error"]["code"], reply["id"]) == (code, request_id)
    assert reply["id"] is not True, "true equals 1 in Python, and is no id"
    assert wire.messages.empty()


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.5}}',
        b'{"jsonrpc":"2.0","method":"notifications/unheard-of","params":{"name":5}}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":[]}',
        b'{"jsonrpc":"2.0","method":"no/such"}',
    ],
)
async def test_a_notification_is_never_answered_even_when_it_is_wrong(data: bytes) -> None:
    server = demo_server()
    wire = MemoryWire(server)
    await wire.ask(initialize())
    server.receive(data, wire)
    assert wire.messages.empty()


@pytest.mark.parametrize("junk", [b"{", DEEP, b"\xff\xfe", b"null"])
async def test_the_stream_goes_on_after_junk(junk: bytes) -> None:
    server = demo_server()
    wire = MemoryWire(server)
    await wire.ask(initialize())
    server.receive(junk, wire)
    assert "error" in wire.messages.get_nowait()
    assert (await wire.ask({"jsonrpc": "2.0", "id": 2, "method": "ping"}))["result"] == {}


async def test_a_text_that_is_no_utf_8_inside_the_arguments_is_the_tools_complaint() -> None:
    server = demo_server()
    wire = MemoryWire(server)
    await wire.ask(initialize())
    call = b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"demo_echo","arguments":{"text":"\xff"}}}'
    server.receive(call, wire)
    reply = wire.messages.get_nowait()
    assert reply["id"] == 4
    assert reply["result"]["_meta"]["dari/error"]["code"] == INVALID_PARAMS
