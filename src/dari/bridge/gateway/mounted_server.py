"""One server inside a gateway: its lists as an offer to the registry, its calls passed on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from dari.bridge.gateway.caller_context import MAX_ABOUT_CHARS, prompt_arguments, read_header_params
from dari.bridge.gateway.forward import CallForwarder
from dari.bridge.schemas.checker import SchemaWorker
from dari.bridge.upstream.cache import JsonObject
from dari.bridge.upstream.tool_view import UpstreamTool
from dari.bridge.upstream.upstream import Upstream
from dari.core.content import RawResult
from dari.core.context import Context
from dari.core.prompt import Prompt
from dari.core.registry import Offer
from dari.core.resource import Resource, ResourceTemplate, literal_prefix
from dari.core.scopes import CONTROL
from dari.core.tool import INNER_LIMITS_ONLY, Tool
from dari.errors import DariError
from dari.text.sanitize import sanitize_for_model

Names = dict[str, str]
"""Name or URI as the server has it → as it is shown."""


class MountedServer:
    """What a server lists is known without asking it; `offer` is made anew only when something changed."""

    def __init__(self, upstream: Upstream, calling: CallForwarder) -> None:
        self.upstream = upstream
        self.id = upstream.id
        self.undo: list[Callable[[], None]] = []
        self.uris: Names = {}
        self._calling = calling
        self._made_of: tuple[object, ...] = ()
        self._offer = Offer()

    @property
    def tools(self) -> tuple[UpstreamTool, ...]:
        return self.upstream.known_tools() or ()

    @property
    def about(self) -> str:
        """What the server is for: as the profile says, then as it says itself."""
        said = (self.upstream.profile.description or "", self.upstream.instructions)
        return sanitize_for_model(" ".join(part.strip() for part in said if part.strip())[:MAX_ABOUT_CHARS])[0]

    @property
    def prompts(self) -> tuple[JsonObject, ...]:
        return tuple(one for one in self.upstream.known_lists()[0] if isinstance(one.get("name"), str))

    @property
    def resources(self) -> tuple[JsonObject, ...]:
        return tuple(one for one in self.upstream.known_lists()[1] if isinstance(one.get("uri"), str))

    @property
    def templates(self) -> tuple[JsonObject, ...]:
        return tuple(one for one in self.upstream.known_lists()[2] if isinstance(one.get("uriTemplate"), str))

    def offer(self, tools: Names, prompts: Names, uris: Names, templates: Names) -> Offer:
        """Everything under the names it is shown with; what has no name here is left out."""
        about = self.about
        made_of = (self.tools, self.prompts, self.resources, self.templates, tools, prompts, uris, templates, about)
        if made_of != self._made_of:
            self._made_of = made_of
            self.uris = uris
            self._offer = Offer(
                tools=[self._tool(one, tools[one.name]) for one in self.tools if one.name in tools],
                prompts=[self._prompt(one, prompts[one["name"]]) for one in self.prompts if one["name"] in prompts],
                resources=[self.resource(one, uris[one["uri"]]) for one in self.resources if one["uri"] in uris],
                templates=[
                    self._template(one, templates[one["uriTemplate"]])
                    for one in self.templates
                    if one["uriTemplate"] in templates
                ],
                about={self.id: about},
            )
        return self._offer

    def claims(self, uri: str) -> bool:
        """Whether a URI that no list names begins like the URIs of one of its templates."""
        prefixes = (literal_prefix(one["uriTemplate"]) for one in self.templates)
        return any(prefix and uri.startswith(prefix) for prefix in prefixes)

    def resource(self, listed: JsonObject, shown_uri: str) -> Resource:
        upstream, calling, uri = self.upstream, self._calling, listed["uri"]

        async def read(context: Context) -> RawResult:
            return await calling.read(upstream, uri, context)

        name = listed.get("name")
        shown = {**listed, "uri": shown_uri}
        return Resource(shown_uri, name if isinstance(name, str) else shown_uri, read, shown=shown)

    def unlisted_tool(self, own_name: str, name: str) -> Tool:
        """For a tool that is held, filtered, or not known yet: its call has the reason, or the result."""
        shown = {"name": own_name, "inputSchema": {"type": "object"}}
        return self._tool(UpstreamTool(own_name, shown, SchemaWorker()), name)

    def _tool(self, tool: UpstreamTool, name: str) -> Tool:
        call, upstream, own_name = self._calling.tool, self.upstream, tool.name
        shown = tool.shown if tool.name == name else {**tool.shown, "name": name}
        schema = shown["inputSchema"]
        return Tool(
            name=name,
            description=str(shown.get("description", "")),
            scope=CONTROL,  # a server's own annotations do not lower the scope
            input_schema=schema,
            output_schema=None,
            annotations={},
            run=lambda arguments, context, /: call(upstream, own_name, bytes(arguments), context),
            timeout_s=INNER_LIMITS_ONLY,
            mirrored=read_header_params(schema),
            shown=shown,
            server=self.id,
            own_name=own_name,
        )

    def _prompt(self, listed: JsonObject, name: str) -> Prompt:
        upstream, calling, own_name = self.upstream, self._calling, listed["name"]

        async def render(context: Context, given: dict[str, str]) -> RawResult:
            return await calling.other(lambda caller: upstream.get_prompt(own_name, given, caller), context)

        async def complete(context: Context, asked: dict[str, Any]) -> RawResult:
            params = {"ref": {"type": "ref/prompt", "name": own_name}, **asked}
            return await calling.other(lambda caller: upstream.complete(params, caller), context)

        return Prompt(
            name,
            render,
            arguments=prompt_arguments(listed),
            shown={**listed, "name": name},
            relay_completion=complete,
        )

    def _template(self, listed: JsonObject, shown_template: str) -> ResourceTemplate:
        upstream, calling, own = self.upstream, self._calling, listed["uriTemplate"]
        added = len(shown_template) - len(own)  # an address in front, where the template is another server's too

        async def read(context: Context, values: dict[str, str]) -> RawResult:
            return await calling.read(upstream, values["uri"][added:], context)

        async def complete(context: Context, asked: dict[str, Any]) -> RawResult:
            params = {"ref": {"type": "ref/resource", "uri": own}, **asked}
            return await calling.other(lambda caller: upstream.complete(params, caller), context)

        name = listed.get("name")
        shown = {**listed, "uriTemplate": shown_template}
        return ResourceTemplate(
            shown_template, name if isinstance(name, str) else own, read, shown=shown, relay_completion=complete
        )


def failing_tool(server: str, name: str, error: DariError) -> Tool:
    """A tool of a server that cannot be used; its call has the error."""

    async def run(arguments: bytes | Raw, context: Context, /) -> RawResult:
        raise error

    return Tool(name, "", CONTROL, {"type": "object"}, None, {}, run, server=server)
