"""Every message our server emits is one that the published schemas know, member by member.

The schemas are those of the official SDK (`mcp_types`, generated from the specification's JSON Schema). They ignore
what they do not know, so each message must also survive the round trip through them unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import mcp_types._v2026_07_28 as v2026
import pytest
from mcp_types import methods
from mcp_types.jsonrpc import JSONRPCError
from pydantic import BaseModel, TypeAdapter

from tests.conformance.everything import everything_server
from tests.support.wire import Json, MemoryWire, initialize, stateless

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
ERRORS: dict[int, type[BaseModel]] = {
    -32021: v2026.MissingRequiredClientCapabilityError,
    -32022: v2026.UnsupportedProtocolVersionError,
}
ARGUMENTS: dict[str, Json] = {
    "test_sampling": {"prompt": "2+2"},
    "test_elicitation": {"message": "Who?"},
    "test_mirrored_headers": {"region": "eu"},
    "json_schema_2020_12_tool": {"email": "a@example.org"},
}
# One content that fits every form of the fixtures.
FORM = {"name": "Ann", "color": "red", "ok": True, "username": "ann", "email": "a@example.org", "context": "none"}
ANSWERS: dict[str, Json] = {
    "elicitation/create": {"action": "accept", "content": FORM},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "4"}, "model": "m"},
    "roots/list": {"roots": [{"uri": "file:///tmp"}]},
}
COMPLETION = {
    "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
    "argument": {"name": "arg1", "value": "pa"},
}
SHARED: list[tuple[str, Json]] = [
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "test://static-text"}),
    ("resources/read", {"uri": "test://static-binary"}),
    ("resources/read", {"uri": "test://template/7/data"}),
    ("resources/read", {"uri": "test://nothing"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "test_simple_prompt"}),
    ("prompts/get", {"name": "test_prompt_with_arguments", "arguments": {"arg1": "a", "arg2": "b"}}),
    ("prompts/get", {"name": "test_prompt_with_embedded_resource", "arguments": {"resourceUri": "test://x"}}),
    ("prompts/get", {"name": "test_prompt_with_image"}),
    ("prompts/get", {"name": "test_input_required_result_prompt"}),
    ("prompts/get", {"name": "nobody"}),
    ("completion/complete", COMPLETION),
    ("tools/call", {"name": "nobody", "arguments": {}}),
    ("tools/call", {"name": "test_elicitation", "arguments": {"message": 7}}),
    ("no/such", {}),
]
SESSION: list[tuple[str, Json]] = [
    ("ping", {}),
    ("logging/setLevel", {"level": "debug"}),
    ("logging/setLevel", {"level": "loud"}),
    ("resources/subscribe", {"uri": "test://watched-resource"}),
    ("tools/call", {"name": "test_trigger_resource_update", "arguments": {}}),
    ("resources/unsubscribe", {"uri": "test://watched-resource"}),
]


class Checked:
    """Talks to the everything server and holds every message that comes back against the schema of a revision."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.server = everything_server()
        self.wire = MemoryWire(self.server)
        self.seen: set[str] = set()
        self.outputs: dict[str, jsonschema_rs.Validator] = {}

    async def ask(self, message: Json) -> Json:
        """The response; what the server says or asks before it is checked, and answered."""
        self.wire.send(message)
        while True:
            reply = await self.wire.messages.get()
            if "method" not in reply:
                self.check_response(message["method"], reply)
                self.check_output(message["params"].get("name"), reply.get("result", {}))
                return reply
            self.check_call(reply)
            if "id" in reply:
                self.wire.send({"jsonrpc": "2.0", "id": reply["id"], "result": ANSWERS[reply["method"]]})

    def check_response(self, method: str, reply: Json) -> None:
        if "error" in reply:
            error = ERRORS.get(reply["error"]["code"], JSONRPCError)
            assert _round_trip(error, reply) == reply
            self.seen.add(f"error {reply['error']['code']}")
        else:
            assert _round_trip(methods.SERVER_RESULTS[method, self.version], reply["result"]) == reply["result"]
            self.seen.add(f"{method} {reply['result'].get('resultType', '')}".strip())

    def check_output(self, name: str | None, result: Json) -> None:
        """A tool that publishes an `outputSchema` keeps to it; the other tools promise nothing."""
        for tool in result.get("tools", []):
            assert self.version >= "2025-06-18" or "outputSchema" not in tool
            if "outputSchema" in tool:
                self.outputs[tool["name"]] = jsonschema_rs.validator_for(tool["outputSchema"])
        if name in self.outputs and "content" in result and not result.get("isError"):
            self.outputs[name].validate(result["structuredContent"])
            self.seen.add("structuredContent")

    def check_call(self, message: Json) -> None:
        known = methods.SERVER_REQUESTS if "id" in message else methods.SERVER_NOTIFICATIONS
        assert _round_trip(known[message["method"], self.version], message) == message
        self.seen.add(message["method"])

    def requests(self, *more: tuple[str, Json]) -> Iterator[Json]:
        """The shared part of a conversation, a call of every tool, and what is said besides."""
        calls = [
            ("tools/call", {"name": name, "arguments": ARGUMENTS.get(name, {}), "_meta": {"progressToken": name}})
            for name in list(self.server.registry.tools)
        ]
        for number, (method, params) in enumerate([*SHARED, *more, *calls]):
            yield {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _round_trip(schema: Any, message: Json) -> Json:
    """The message without what the schema does not know; a ValidationError when it is not valid."""
    adapter: TypeAdapter[Any] = TypeAdapter(schema)
    parsed = adapter.validate_python(message, by_name=False)
    return dict(adapter.dump_python(parsed, by_alias=True, mode="json", exclude_unset=True))


def capabilities(version: str) -> Json:
    """What a client of that revision can declare."""
    shared: Json = {"sampling": {}, "roots": {}}
    return shared if version < "2025-06-18" else {**shared, "elicitation": {}}


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_a_session_speaks_only_what_its_schema_knows(version: str) -> None:
    checked = Checked(version)
    await checked.ask(initialize(version, **capabilities(version)))
    for message in checked.requests(*SESSION):
        await checked.ask(message)
    assert checked.seen >= {
        "initialize",
        "tools/call",
        "notifications/progress",
        "notifications/message",
        "notifications/resources/updated",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "sampling/createMessage",
        "roots/list",
        "error -32601",
        "error -32602",
        "error -32002",
    }
    assert ("structuredContent" in checked.seen) == (version >= "2025-06-18")
    assert ("elicitation/create" in checked.seen) == (version >= "2025-06-18")
    assert ("error -32004" in checked.seen) == (version == "2024-11-05")


async def test_a_stateless_call_speaks_only_what_its_schema_knows() -> None:
    checked = Checked(STATELESS)
    await checked.ask(stateless({"jsonrpc": "2.0", "id": "d", "method": "server/discover"}))
    for message in checked.requests():
        await _asked_in_rounds(checked, _logged(stateless(message, **capabilities(STATELESS))))
    assert checked.seen >= {
        "server/discover complete",
        "tools/list complete",
        "tools/call complete",
        "tools/call input_required",
        "structuredContent",
        "prompts/get input_required",
        "resources/read complete",
        "notifications/progress",
        "notifications/message",
        "error -32601",
        "error -32602",
    }


async def test_the_stateless_errors_carry_the_data_their_schema_asks_for() -> None:
    checked = Checked(STATELESS)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "test_missing_capability"}}
    await checked.ask(stateless(call))
    unknown = stateless({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1999-01-01"
    await checked.ask(unknown)
    assert checked.seen == {"error -32021", "error -32022"}


async def test_a_listener_hears_only_what_the_schema_knows() -> None:
    checked = Checked(STATELESS)
    wanted = {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["test://watched-resource"],
    }
    listen = {"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": {"notifications": wanted}}
    checked.wire.send(stateless(listen))
    for name in ("test_trigger_tool_change", "test_trigger_prompt_change", "test_trigger_resource_update"):
        call: Json = {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name}}
        await checked.ask(stateless(call))
    checked.server.registry.remove_resource("test://static-text")
    checked.server.end_listening()
    while (message := await checked.wire.messages.get()).get("id") != "l":
        checked.check_call(message)
    checked.check_response("subscriptions/listen", message)
    assert checked.seen == {
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/updated",
        "notifications/resources/list_changed",
        "tools/call complete",
        "subscriptions/listen complete",
    }


async def _asked_in_rounds(checked: Checked, message: Json) -> None:
    """Call again with answers for as long as the server asks."""
    for _ in range(3):
        result = (await checked.ask(message)).get("result", {})
        if result.get("resultType") != "input_required":
            return
        answers = {key: ANSWERS[question["method"]] for key, question in result["inputRequests"].items()}
        more = {"inputResponses": answers, "requestState": result["requestState"]}
        message = {**message, "params": {**message["params"], **more}}
    raise AssertionError("the server asked more than three times")


def _logged(message: Json) -> Json:
    meta: dict[str, Any] = {**message["params"]["_meta"], "io.modelcontextprotocol/logLevel": "debug"}
    return {**message, "params": {**message["params"], "_meta": meta}}
