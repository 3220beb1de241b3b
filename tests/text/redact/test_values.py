"""The gate: whatever a result is made of, the secrets in it are hidden, and its type and the rest stay."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dari.core.content import ImageContent, RawResult, TextContent, ToolResult
from dari.core.context import Context
from dari.core.registry import Registry
from dari.core.resource import Resource
from dari.core.tool import tool
from dari.errors import Failed
from dari.mcp.server import Info, Server
from dari.text.redact import MARK, MAX_CHARS, redact_secrets
from tests.support import planted_secrets
from tests.support.wire import Json, MemoryWire, call, initialize

NAMED = ("request_header", "response_header", "json", "pairs", "multipart", "graphql", "text", "websocket")
EVERYTHING = "\n".join(
    [
        *(
            one.decode()
            for one in (
                planted_secrets.json_body(),
                planted_secrets.xml(),
                planted_secrets.text(),
                planted_secrets.events(),
            )
        ),
        *(one.decode() for one in planted_secrets.messages()),
        *planted_secrets.headers("request_header"),
        *planted_secrets.headers("response_header"),
        f"https://a.test/?{planted_secrets.query()}",
        planted_secrets.location(),
        planted_secrets.multipart().decode(),
        f"https://a.test/?{planted_secrets.form().decode()}",
    ]
)


class Page(Struct, frozen=True, omit_defaults=True):
    title: str
    body_b64: str = ""
    session_id: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    raw: bytes = b""


class Leaky:
    """Tools that give out everything they have, in every way there is."""

    prefix = "leaky"

    @tool()
    async def text(self) -> str:
        """Text."""
        return EVERYTHING

    @tool()
    def plain(self) -> dict[str, Any]:
        """A dictionary, without a wait."""
        return {one.name: one.secret for one in planted_secrets.PLANTED if one.place in NAMED} | {"x": EVERYTHING}

    @tool()
    async def page(self) -> Page:
        """A struct."""
        pairs = tuple((one.name, one.secret) for one in planted_secrets.of("request_header"))
        encoded = base64.b64encode(EVERYTHING.encode()).decode()
        return Page("ok", encoded, "work-1", pairs, EVERYTHING.encode())

    @tool()
    async def blocks(self) -> ToolResult:
        """Content blocks beside data."""
        return ToolResult([TextContent(text=EVERYTHING), ImageContent.of(b"png", "image/png")], {"list": [EVERYTHING]})

    @tool()
    async def fails(self) -> str:
        """An error of ours."""
        raise Failed(EVERYTHING, EVERYTHING)

    @tool()
    async def breaks(self) -> str:
        """A bug."""
        raise ValueError(EVERYTHING)

    @tool()
    async def tells(self, context: Context) -> str:
        """Notifications on the way."""
        await context.progress(1, 2, EVERYTHING)
        await context.log("error", {"said": EVERYTHING, "password": "plum"})
        return "done"


async def test_no_tool_resource_error_or_notification_of_any_part_shows_a_planted_secret() -> None:
    registry = Registry()
    registry.add_toolkit(Leaky())

    async def read(context: Context) -> str:
        return EVERYTHING

    registry.add_resource(Resource("demo://all", "all", read))
    wire = MemoryWire(Server(registry, Info(name="leaky", version="1")))
    await wire.ask(initialize())
    await wire.ask({"jsonrpc": "2.0", "id": 9, "method": "logging/setLevel", "params": {"level": "debug"}})
    shown: list[Json] = []
    results: dict[str, Json] = {}
    for name in registry.tools:
        request = call(name)
        request["params"]["_meta"] = {"progressToken": 7}
        wire.send(request)
        while "result" not in (message := await wire.messages.get()):
            shown.append(message)
        shown.append(message)
        results[name] = message["result"]
    shown.append(
        await wire.ask({"jsonrpc": "2.0", "id": 5, "method": "resources/read", "params": {"uri": "demo://all"}})
    )
    text = msgspec.json.encode(shown).decode()
    page = results["leaky_page"]["structuredContent"]
    text += "".join(base64.b64decode(page[name]).decode() for name in ("body_b64", "raw"))
    assert planted_secrets.leaks(text) == []
    assert {"notifications/progress", "notifications/message"} <= {one.get("method") for one in shown}
    assert page["session_id"] == "work-1" and page["title"] == "ok" and MARK in text


def test_a_value_without_secrets_is_given_back_itself() -> None:
    page = Page("ok", headers=(("Accept", "*/*"),))
    assert redact_secrets(page) is page
    value = {"a": [1, "two", {"three": None}], "max_tokens": 5, "timestamp": 1790000000123}
    assert redact_secrets(value) is value


def test_the_type_of_a_struct_stays_and_so_does_its_way_of_being_encoded() -> None:
    assert msgspec.json.encode(redact_secrets(Page("password: plum"))) == b'{"title":"password: <redacted>"}'


def test_another_servers_result_is_passed_on_as_it_is() -> None:
    from dari.core.content import redact_result

    raw = RawResult(Raw(b'{"content":[{"type":"text","text":"password=plum"}]}'))
    assert redact_result(raw) is raw


def test_the_schema_of_a_secret_parameter_stays_and_its_default_goes() -> None:
    schema = {"properties": {"token": {"type": "string", "description": "API token", "default": "plum"}}}
    assert redact_secrets(schema) == {
        "properties": {"token": {"type": "string", "description": "API token", "default": MARK}}
    }


def test_a_schema_that_says_no_type_is_known_by_its_words() -> None:
    schema = {"properties": {"token": {"description": "API token"}, "password": {"$ref": "#/$defs/Password"}}}
    assert redact_secrets(schema) is schema
    assert redact_secrets({"token": {"value": "plum"}}) == {"token": MARK}


def test_a_text_longer_than_one_search_is_searched_to_its_end() -> None:
    text = "harmless words " * (MAX_CHARS // 10) + " password=plum"
    shown = redact_secrets(text)
    assert "plum" not in shown and shown.startswith("harmless words ") and len(shown) > MAX_CHARS
