"""Whatever comes in, nothing is raised, and each request with a valid id gets exactly one reply."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dari.mcp.methods import HANDSHAKE, STATELESS
from dari.mcp.server import Info, Server
from tests.support.demo_server import DemoTools, registry_of
from tests.support.wire import META, Json, MemoryWire, initialize

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", ""]
# `demo_endless` would cost its time limit in every example.
NAMES = ["demo_echo", "demo_quick", "demo_count", "demo_greet", "demo_hang", "demo_broken", "letter", "nobody"]

TOOLS = DemoTools()
TOOLS.release.set()
REGISTRY = registry_of(TOOLS)

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
metas = st.just(META) | st.fixed_dictionaries({"progressToken": values}) | values
params = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(NAMES) | values,
        "arguments": st.fixed_dictionaries({}, optional={"text": values, "to": st.integers(0, 3)}) | values,
        "_meta": metas,
        "uri": st.sampled_from(["demo://note", "demo://item/1"]) | values,
        "cursor": st.sampled_from(["p0", "p9"]) | values,
        "level": st.sampled_from(["info"]) | values,
        "requestId": values,
        "requestState": values,
        "inputResponses": values,
        "ref": values,
        "argument": values,
        "notifications": st.just({"toolsListChanged": True}) | values,
        "protocolVersion": values,
    },
)
methods = st.sampled_from([*HANDSHAKE, *STATELESS, "notifications/cancelled", "no/such", ""]) | values
likely = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.integers() | st.text(max_size=8), "method": methods},
    optional={"params": params | values},
)
possible = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "id": values,
        "method": methods,
        "params": params | values,
        "result": values,
        "error": values,
    },
)


def is_request(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0" or not isinstance(value.get("method"), str):
        return False
    return isinstance(value.get("id"), int | str) and not isinstance(value["id"], bool)


async def all_replies(version: str, *lines: bytes) -> list[Json]:
    """What comes back for these lines by the time that nothing runs any more."""
    server = Server(REGISTRY, Info("demo", "1"))
    wire = MemoryWire(server)
    if version:
        await wire.ask(initialize(version))
    for line in lines:
        server.receive(line, wire)
    while server.calls:
        await asyncio.wait([call.task for call in server.calls])
    server.close()
    messages = [wire.messages.get_nowait() for _ in range(wire.messages.qsize())]
    assert not server.listening
    assert not wire.session.running
    return messages


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(VERSIONS), st.binary(max_size=80))
def test_random_bytes_never_raise_and_get_one_reply_at_most(version: str, data: bytes) -> None:
    replies = asyncio.run(all_replies(version, data))
    assert len(replies) <= 1


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(VERSIONS), likely | possible, st.integers(1, 200))
def test_a_message_cut_short_never_raises(version: str, value: Any, cut: int) -> None:
    replies = asyncio.run(all_replies(version, json.dumps(value).encode()[:cut]))
    assert sum("method" not in reply for reply in replies) <= 1


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(VERSIONS), likely | possible | values)
def test_a_request_with_a_valid_id_gets_exactly_one_reply(version: str, value: Any) -> None:
    answers = [
        message
        for message in asyncio.run(all_replies(version, json.dumps(value).encode()))
        if isinstance(message, list) or "method" not in message
    ]
    if is_request(value):
        assert [answer["id"] for answer in answers] == [value["id"]]
        assert ("result" in answers[0]) != ("error" in answers[0])
    else:
        assert len(answers) <= 1


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(VERSIONS), st.lists(likely, max_size=6, unique_by=lambda message: str(message["id"])))
def test_requests_sent_together_each_get_exactly_one_reply(version: str, messages: list[Json]) -> None:
    # A cancelled request is the one that a pipe leaves unanswered.
    messages = [message for message in messages if message["method"] != "notifications/cancelled"]
    replies = asyncio.run(all_replies(version, *(json.dumps(message).encode() for message in messages)))
    answered = Counter(json.dumps(reply["id"]) for reply in replies if "method" not in reply)
    for message in filter(is_request, messages):
        assert answered[json.dumps(message["id"])] == 1, message
