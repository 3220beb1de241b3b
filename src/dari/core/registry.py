"""Everything a server offers, in one place, with a note to listeners when it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dari.core.events import Events, ListChanged, ListKind, ResourceUpdated
from dari.core.prompt import Prompt
from dari.core.resource import Resource, Template
from dari.core.tool import Tool, Toolkit, tools_of
from dari.errors import Conflict


class Registry:
    """Tools, resources, templates and prompts by name, in the order they were added.

    `version` counts changes, so that what was encoded from it can be cached.
    """

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._deferred: list[Callable[[], Iterable[Tool]]] = []
        self.resources: dict[str, Resource] = {}
        self.templates: dict[str, Template] = {}
        self.prompts: dict[str, Prompt] = {}
        self.events = Events()
        self.version = 0

    @property
    def tools(self) -> dict[str, Tool]:
        while self._deferred:
            self._tools |= self._checked(self._deferred.pop(0)())
        return self._tools

    def defer(self, make: Callable[[], Iterable[Tool]]) -> None:
        """Tools that are made when tools are first asked for: to import a toolkit takes longer than a handshake."""
        self._deferred.append(make)

    def add_toolkit(self, toolkit: Toolkit) -> None:
        self.add_tools(*tools_of(toolkit))

    def add_tools(self, *tools: Tool) -> None:
        self._tools.update(self._checked(tools))
        self._changed("tools")

    def remove_tools(self, *names: str) -> None:
        for name in names:
            self.tools.pop(name, None)
        self._changed("tools")

    def add_resource(self, resource: Resource) -> None:
        self.resources[resource.uri] = resource
        self._changed("resources")

    def remove_resource(self, uri: str) -> None:
        self.resources.pop(uri, None)
        self._changed("resources")

    def add_template(self, template: Template) -> None:
        self.templates[template.uri_template] = template
        self._changed("resources")

    def add_prompt(self, prompt: Prompt) -> None:
        self.prompts[prompt.name] = prompt
        self._changed("prompts")

    def remove_prompt(self, name: str) -> None:
        self.prompts.pop(name, None)
        self._changed("prompts")

    def resource_updated(self, uri: str) -> None:
        """Say that the contents behind a URI changed; subscribers are told."""
        self.events.publish(ResourceUpdated(uri))

    def _checked(self, tools: Iterable[Tool]) -> dict[str, Tool]:
        added: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools or tool.name in added:
                raise Conflict(f"a tool named '{tool.name}' exists already", "give one of them another prefix")
            added[tool.name] = tool
        return added

    def _changed(self, kind: ListKind) -> None:
        self.version += 1
        self.events.publish(ListChanged(kind))
