"""Search mode: three tools instead of hundreds of schemas.

A schema that fits is given whole, without fields that no caller needs. One that is too long loses long descriptions
first, then every description below its own arguments; if it is still too long, `describe_tool` has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, structs

from dari.bridge.gateway.selection import OWN
from dari.bridge.search.index import ToolIndex, ToolMatch
from dari.core.context import Context
from dari.core.events import Event, ListChanged, ResourceUpdated
from dari.core.registry import Offer, Registry
from dari.core.resource import Resource
from dari.core.scopes import CONTROL, require_scope
from dari.core.tool import INNER_LIMITS_ONLY, Tool, tool, typed_tool, within_limit
from dari.errors import InvalidInput, NotFound
from dari.rpc.codec import UNREADABLE
from dari.struct_types import ready

JsonObject = dict[str, Any]

MAX_SCHEMAS = 3
MAX_SCHEMA_BYTES = 4000
"""About a thousand tokens; nine of ten public tools need less than half of it."""
MAX_DESCRIPTION_CHARS = 160
_NOISE = frozenset(("$schema", "title", "examples", "$id", "$comment"))
_KEYWORDS_OF_NAMES = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
"""Below these the keys are names, not keywords."""
MAX_DEPTH = 24


def attach_schemas(found: Sequence[ToolMatch], index: ToolIndex) -> list[ToolMatch]:
    """The same tools; the first three carry their inputSchema where it is short enough."""
    first = [structs.replace(one, input_schema=_given(index, one.name)) for one in found[:MAX_SCHEMAS]]
    return [*first, *found[MAX_SCHEMAS:]]


def _given(index: ToolIndex, name: str) -> JsonObject | msgspec.UnsetType:
    schema = brief_schema(index.describe(name).get("inputSchema"))
    return msgspec.UNSET if schema is None else schema


def brief_schema(schema: object) -> JsonObject | None:
    """The schema in at most MAX_SCHEMA_BYTES, or None."""
    if not isinstance(schema, dict) or len(msgspec.json.encode(schema)) > 16 * MAX_SCHEMA_BYTES:
        return None  # no shortening brings that far down, and it is not walked for nothing
    for described_levels, description_chars in ((MAX_DEPTH, None), (MAX_DEPTH, MAX_DESCRIPTION_CHARS), (2, 80)):
        short = _shortened(schema, described_levels, description_chars, 0)
        if isinstance(short, dict) and len(msgspec.json.encode(short)) <= MAX_SCHEMA_BYTES:
            return short
    return None


def _shortened(value: object, described_levels: int, description_chars: int | None, depth: int) -> object:
    if depth > MAX_DEPTH:
        return {}
    if isinstance(value, list):
        return [_shortened(one, described_levels, description_chars, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    kept: JsonObject = {}
    for key, inner in value.items():
        if key in _NOISE and isinstance(inner, str | list):
            continue
        if key == "description" and isinstance(inner, str):
            if depth <= described_levels:
                kept[key] = _cut(inner, description_chars)
        elif key in _KEYWORDS_OF_NAMES and isinstance(inner, dict):
            kept[key] = {
                name: _shortened(one, described_levels, description_chars, depth + 2) for name, one in inner.items()
            }
        elif key in ("enum", "const", "default", "required"):
            kept[key] = inner
        else:
            kept[key] = _shortened(inner, described_levels, description_chars, depth + 1)
    return kept


def _cut(text: str, most: int | None) -> str:
    return text if most is None or len(text) <= most else text[: most - 1] + "…"


GUIDE = (
    "Tools are not listed here; look for them: find_tools with words for what you want to do, describe_tool for the "
    "arguments of one that came without its inputSchema, call_tool to run it."
)
OWN_ABOUT = {"crux": "terminal shell pane", "crab": "HTTP debugging proxy traffic", "dari": "this workbench"}
"""What our own tools are for, by how their names begin."""


class FoundTools(Struct):
    tools: list[ToolMatch]
    """Best first; arguments that are required end with `*`."""
    known: int
    """How many tools there are in all."""


class _Call(Struct):
    name: str
    arguments: Raw | UnsetType = UNSET


_decode_call = msgspec.json.Decoder(ready(_Call)).decode
_CALL_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"title": "Name", "type": "string", "description": "as find_tools shows it"},
        "arguments": {"title": "Arguments", "type": "object", "description": "as describe_tool's inputSchema says"},
    },
    "required": ["name"],
}


class SearchTools:
    """Finds, describes and runs the tools of another registry, which is never listed as a whole."""

    prefix = ""

    def __init__(self, full: Registry, index: ToolIndex) -> None:
        self._full = full
        self._index = index
        self._indexed = -1
        self._indexing = asyncio.Lock()

    @tool(open_world=True)
    async def find_tools(
        self,
        query: Annotated[str, Meta(description="what you want to do, in a few words, or the name of a tool")],
        limit: Annotated[int, Meta(ge=1, le=50)] = 10,
        server: Annotated[str, Meta(description="only tools of this server")] = "",
    ) -> FoundTools:
        """Find tools by what they do; returns the best matches, the first three with their inputSchema."""
        await self._ready()
        found = self._index.find(query, limit, self._named(server) if server else None)
        return FoundTools(attach_schemas(found, self._index), len(self._index))

    @tool(open_world=True)
    async def describe_tool(self, name: Annotated[str, Meta(description="as find_tools shows it")]) -> dict[str, Any]:
        """Describe one tool; returns its description, its inputSchema and whatever else its server says."""
        await self._ready()
        return self._index.describe(name)

    def _named(self, server: str) -> str:
        known = sorted(self._index.servers)
        named = next((one for one in (server, *known) if one in known and one.lower() == server.lower()), None)
        if named is None:
            raise NotFound(f"no server named {server!r} has tools here", f"servers with tools: {', '.join(known)}")
        return named

    def call(self, arguments: bytes | Raw, context: Context) -> Coroutine[Any, Any, Any]:
        try:
            asked = _decode_call(arguments)
        except UNREADABLE as error:
            raise InvalidInput(f"arguments: {error}", "give the tool's name and its arguments") from None
        return self._run(asked.name, _arguments(asked), context)

    async def _run(self, name: str, arguments: Raw, context: Context) -> Any:
        found = self._full.tools.get(name)
        if found is None:
            await self._ready()
            found = self._full.find_tool(name)
        if found is None:
            raise NotFound(f"unknown tool {name!r}", self._index.suggestion(name))
        if context.record is not None:
            context.record.names(found, arguments)
        require_scope(found.scope, context.grant)
        if found.server:
            context.record = None  # the bridge records calls of other servers
        value = found.run(arguments, context)
        return await within_limit(found, value) if found.is_async else value

    async def _ready(self) -> None:
        """Wait for servers that are just being met, then index what changed."""
        settle = None if self._full.settle is None else self._full.settle("tools")
        if settle is not None:
            await settle
        async with self._indexing:
            if self._indexed == self._full.version:
                return
            version = self._full.version
            listed = self._full.tools
            servers: dict[str, tuple[str | Mapping[str, str], list[dict[str, Any]]]] = {
                OWN: (OWN_ABOUT, [one.listing() for one in self._full.own_tools()])
            }
            for owner, offer in self._full.offers.items():
                for one in offer.tools:
                    if listed.get(one.name) is one:
                        server = one.server or owner
                        servers.setdefault(server, (offer.about.get(server, ""), []))[1].append(one.listing())
            for gone in self._index.servers.difference(servers):
                self._index.remove(gone)
            for server, (about, shown) in servers.items():
                await self._index.put_in_slices(server, shown, about)
            self._indexed = version


def search_tools(full: Registry, index: ToolIndex) -> list[Tool]:
    """`find_tools`, `describe_tool` and `call_tool` over everything in `full`."""
    tools = SearchTools(full, index)
    call = Tool(
        name="call_tool",
        title="Call tool",
        description="Run a tool that find_tools has shown; returns what that tool returns.",
        scope=CONTROL,
        input_schema=_CALL_SCHEMA,
        output_schema=None,
        annotations={"title": "Call tool", "readOnlyHint": False, "openWorldHint": True},
        run=tools.call,
        timeout_s=INNER_LIMITS_ONLY,
    )
    return [typed_tool(tools.find_tools), typed_tool(tools.describe_tool), call]


def search_registry(full: Registry) -> Registry:
    """A registry with the three tools; prompts and resources are those of `full`, and follow it."""
    shown = Registry()
    shown.add_tools(*search_tools(full, ToolIndex()))
    shown.may_grow = True
    shown.settle = lambda kind: None if kind == "tools" else full.settling(kind)
    shown.watches.append(lambda uri, wanted: _watch(full, uri, wanted))
    shown.fallbacks["full"] = lambda uri: _fallback(full, uri)

    def follow(event: Event) -> None:
        shown.guidance = "\n\n".join(part for part in (GUIDE, full.guidance) if part)
        if isinstance(event, ResourceUpdated):
            shown.resource_updated(event.uri)
        else:
            shown.offer("full", _offer_others(full))

    full.events.subscribe(follow)
    follow(ListChanged("resources"))
    return shown


def _offer_others(full: Registry) -> Offer:
    return Offer(
        prompts=list(full.prompts.values()),
        resources=list(full.resources.values()),
        templates=list(full.templates.values()),
    )


def _watch(full: Registry, uri: str, wanted: bool) -> Awaitable[None] | None:
    if not wanted:
        full.unwatch(uri)
        return None
    pending = full.watch(uri)
    return _await_all(pending) if pending else None


async def _await_all(pending: list[Awaitable[None]]) -> None:
    await asyncio.gather(*pending)


def _fallback(full: Registry, uri: str) -> Resource | None:
    found = (find(uri) for find in full.fallbacks.values())
    return next((one for one in found if one is not None), None)


def _arguments(asked: _Call) -> Raw:
    """Some models write the arguments as a text that holds the object."""
    raw = asked.arguments
    if raw is UNSET:
        return Raw(b"{}")
    if not bytes(raw).startswith(b'"'):
        return raw
    try:
        return Raw(msgspec.json.decode(raw, type=str).encode())
    except UNREADABLE:
        return raw
