"""Resources: readable things behind a URI, fixed or by template."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from dari.core.context import Context
from dari.core.grant import READ

Body = str | bytes
Reader = Callable[[Context], Coroutine[Any, Any, Body]]
TemplateReader = Callable[[Context, dict[str, str]], Coroutine[Any, Any, Body]]
Completer = Callable[[str, dict[str, str]], Coroutine[Any, Any, list[str]]]
"""Takes what was typed so far and the arguments already known; returns the values that fit."""

_VARIABLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Resource:
    """A fixed resource."""

    uri: str
    name: str
    read: Reader
    description: str = ""
    mime_type: str | None = None
    title: str | None = None
    scope: str = READ

    def listing(self) -> dict[str, Any]:
        return _described(self, {"uri": self.uri, "name": self.name})


@dataclass(frozen=True, slots=True)
class Template:
    """A family of resources, `{variables}` in the URI."""

    uri_template: str
    name: str
    read: TemplateReader
    description: str = ""
    mime_type: str | None = None
    title: str | None = None
    scope: str = READ
    completers: dict[str, Completer] = field(default_factory=dict)

    def listing(self) -> dict[str, Any]:
        return _described(self, {"uriTemplate": self.uri_template, "name": self.name})

    def match(self, uri: str) -> dict[str, str] | None:
        """The variables' values when the URI is of this family."""
        literal = [re.escape(part) if i % 2 == 0 else f"(?P<{part}>[^/]+)" for i, part in enumerate(self._parts())]
        found = re.fullmatch("".join(literal), uri)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}

    def _parts(self) -> list[str]:
        return _VARIABLE.split(self.uri_template)


def _described(item: Resource | Template, shown: dict[str, Any]) -> dict[str, Any]:
    if item.title:
        shown["title"] = item.title
    if item.description:
        shown["description"] = item.description
    if item.mime_type:
        shown["mimeType"] = item.mime_type
    return shown
