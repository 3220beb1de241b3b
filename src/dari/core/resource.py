"""Resources: readable things behind a URI, fixed or by template."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from dari.core.content import OutputPolicy, RawResult
from dari.core.context import Context
from dari.core.scopes import READ

Body = str | bytes
Reader = Callable[[Context], Coroutine[Any, Any, Body | RawResult]]
TemplateReader = Callable[[Context, dict[str, str]], Coroutine[Any, Any, Body | RawResult]]
Completer = Callable[[str, dict[str, str]], Coroutine[Any, Any, list[str]]]
"""Takes what was typed so far and the arguments already known; returns the values that fit."""
RelayCompletion = Callable[[Context, dict[str, Any]], Coroutine[Any, Any, RawResult]]
"""Takes `argument` and `context` of `completion/complete` as they came; returns another server's result."""

_VARIABLE = re.compile(r"\{(\w+)\}")
_EXPRESSION = re.compile(r"\{[^{}]*\}")


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
    output: OutputPolicy = "redacted"
    shown: dict[str, Any] | None = None
    """The resource as another server lists it."""

    def listing(self) -> dict[str, Any]:
        return _described(self, {"uri": self.uri, "name": self.name}) if self.shown is None else self.shown


@dataclass(frozen=True, slots=True)
class ResourceTemplate:
    """A family of resources, `{variables}` in the URI."""

    uri_template: str
    name: str
    read: TemplateReader
    description: str = ""
    mime_type: str | None = None
    title: str | None = None
    scope: str = READ
    output: OutputPolicy = "redacted"
    completers: dict[str, Completer] = field(default_factory=dict)
    shown: dict[str, Any] | None = None
    """The template as another server lists it; `read` gets the whole URI under `uri`, as that server expands it."""
    relay_completion: RelayCompletion | None = None

    def listing(self) -> dict[str, Any]:
        if self.shown is not None:
            return self.shown
        return _described(self, {"uriTemplate": self.uri_template, "name": self.name})

    def match(self, uri: str) -> dict[str, str] | None:
        """The variables' values when the URI is of this family."""
        if self.shown is not None:
            return {"uri": uri} if _fits(uri, _EXPRESSION.split(self.uri_template)) else None
        literal = [re.escape(part) if i % 2 == 0 else f"(?P<{part}>[^/]+)" for i, part in enumerate(self._parts())]
        found = re.fullmatch("".join(literal), uri)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}

    def _parts(self) -> list[str]:
        return _VARIABLE.split(self.uri_template)


def literal_prefix(uri_template: str) -> str:
    """What every URI of the family begins with."""
    return uri_template.partition("{")[0]


def closeness(uri_template: str) -> tuple[int, int]:
    """The larger, the fewer URIs are of the family: what they begin with counts first, then all that is fixed."""
    return len(literal_prefix(uri_template)), sum(map(len, _EXPRESSION.split(uri_template)))


def _fits(uri: str, literals: list[str]) -> bool:
    """Whether the literals stand in the URI in this order. No regular expression: the template is another server's,
    and a dozen expressions side by side would take one for ever to refuse."""
    first, *inner, last = literals if len(literals) > 1 else (literals[0], literals[0])
    if len(literals) == 1:
        return uri == first
    if not uri.startswith(first) or not uri.endswith(last) or len(uri) < len(first) + len(last):
        return False
    place, end = len(first), len(uri) - len(last)
    for literal in inner:
        found = uri.find(literal, place, end)
        if found < 0:
            return False
        place = found + len(literal)
    return True


def _described(item: Resource | ResourceTemplate, shown: dict[str, Any]) -> dict[str, Any]:
    if item.title:
        shown["title"] = item.title
    if item.description:
        shown["description"] = item.description
    if item.mime_type:
        shown["mimeType"] = item.mime_type
    return shown
