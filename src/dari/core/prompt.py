"""Prompts: message templates that a person picks in the client."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from dari.core.content import PromptMessage, RawResult
from dari.core.context import Context
from dari.core.resource import Completer, RelayCompletion
from dari.core.scopes import READ
from dari.errors import InvalidInput

Renderer = Callable[[Context, dict[str, str]], Coroutine[Any, Any, list[PromptMessage] | RawResult]]


@dataclass(frozen=True, slots=True)
class PromptArgument:
    name: str
    description: str = ""
    required: bool = False
    complete: Completer | None = None

    def listing(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"name": self.name}
        if self.description:
            shown["description"] = self.description
        shown["required"] = self.required
        return shown


@dataclass(frozen=True, slots=True)
class Prompt:
    name: str
    render: Renderer
    description: str = ""
    arguments: list[PromptArgument] = field(default_factory=list)
    title: str | None = None
    scope: str = READ
    shown: dict[str, Any] | None = None
    """The prompt as another server lists it; its arguments are that server's to check, beyond those it requires."""
    relay_completion: RelayCompletion | None = None

    def listing(self) -> dict[str, Any]:
        if self.shown is not None:
            return self.shown
        shown: dict[str, Any] = {"name": self.name}
        if self.title:
            shown["title"] = self.title
        if self.description:
            shown["description"] = self.description
        if self.arguments:
            shown["arguments"] = [argument.listing() for argument in self.arguments]
        return shown

    def check(self, given: dict[str, str]) -> None:
        """Refuse missing and unknown arguments by name."""
        known = {argument.name for argument in self.arguments}
        for name in sorted(given.keys() - known) if self.shown is None else ():
            hint = f"known: {', '.join(sorted(known))}" if known else "this prompt takes no arguments"
            raise InvalidInput(f"prompt '{self.name}' has no argument '{name}'", hint)
        for argument in self.arguments:
            if argument.required and argument.name not in given:
                raise InvalidInput(
                    f"prompt '{self.name}' needs argument '{argument.name}'", "list the prompts to see their arguments"
                )
