"""What a server of ours offers, taken over into another registry as it is."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from msgspec import Raw

from dari.bridge.gateway.list_items import Label, prompt_arguments, read_header_params, take_label
from dari.core.content import RawResult
from dari.core.context import Context
from dari.core.offer import Offer
from dari.core.prompt import Prompt
from dari.core.resource import Resource, ResourceTemplate
from dari.core.scopes import CONTROL
from dari.core.tool import INNER_LIMITS_ONLY, Tool
from dari.mcp.client.client import Client
from dari.mcp.client.listing import Kind
from dari.rpc.codec import decode_any

JsonObject = dict[str, Any]


class Relayer(Protocol):
    async def pass_on(self, method: str, params: dict[str, Any], context: Context) -> RawResult: ...


async def offer_of(client: Client, relayer: Relayer) -> Offer:
    """Everything the server lists; calls go through the relayer."""
    kinds: tuple[Kind, ...] = ("tools", "prompts", "resources", "resourceTemplates")
    tools, prompts, resources, templates = await asyncio.gather(*(_listed(client, kind) for kind in kinds))
    labelled = [take_label(one) for one in tools if isinstance(one.get("name"), str)]
    return Offer(
        tools=[tool_of(one, label, relayer) for one, label in labelled],
        prompts=[_prompt(one, relayer) for one in prompts if isinstance(one.get("name"), str)],
        resources=[resource_of(one, relayer) for one in resources if isinstance(one.get("uri"), str)],
        templates=[_template(one, relayer) for one in templates if isinstance(one.get("uriTemplate"), str)],
        about={label.server: label.about for _, label in labelled},
    )


async def _listed(client: Client, kind: Kind) -> list[JsonObject]:
    return [one for raw in (await client.listing(kind)).items if isinstance(one := decode_any(raw), dict)]


def tool_of(shown: JsonObject, label: Label, relayer: Relayer) -> Tool:
    name, schema = shown["name"], shown.get("inputSchema") or {"type": "object"}

    async def call(arguments: bytes | Raw, context: Context) -> RawResult:
        given = Raw(b"{}") if bytes(arguments) == b"null" else Raw(bytes(arguments))
        return await relayer.pass_on("tools/call", {"name": name, "arguments": given}, context)

    return Tool(
        name=name,
        description=str(shown.get("description", "")),
        scope=CONTROL,
        input_schema=schema,
        output_schema=None,
        annotations={},
        run=call,
        timeout_s=INNER_LIMITS_ONLY,
        mirrored=read_header_params(schema),
        shown=shown,
        server=label.server,
    )


def _prompt(shown: JsonObject, relayer: Relayer) -> Prompt:
    name = shown["name"]

    async def render(context: Context, given: dict[str, str]) -> RawResult:
        return await relayer.pass_on("prompts/get", {"name": name, "arguments": given}, context)

    async def complete(context: Context, asked: dict[str, Any]) -> RawResult:
        ref = {"type": "ref/prompt", "name": name}
        return await relayer.pass_on("completion/complete", {"ref": ref, **asked}, context)

    return Prompt(name, render, arguments=prompt_arguments(shown), shown=shown, relay_completion=complete)


def resource_of(shown: JsonObject, relayer: Relayer) -> Resource:
    uri = shown["uri"]

    async def read(context: Context) -> RawResult:
        return await relayer.pass_on("resources/read", {"uri": uri}, context)

    return Resource(uri, str(shown.get("name", uri)), read, shown=shown)


def _template(shown: JsonObject, relayer: Relayer) -> ResourceTemplate:
    own = shown["uriTemplate"]

    async def read(context: Context, values: dict[str, str]) -> RawResult:
        return await relayer.pass_on("resources/read", {"uri": values["uri"]}, context)

    async def complete(context: Context, asked: dict[str, Any]) -> RawResult:
        ref = {"type": "ref/resource", "uri": own}
        return await relayer.pass_on("completion/complete", {"ref": ref, **asked}, context)

    return ResourceTemplate(own, str(shown.get("name", own)), read, shown=shown, relay_completion=complete)
