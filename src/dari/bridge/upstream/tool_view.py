"""The tools of a server as they are offered: filtered, renamed, described, arguments validated, `confirm` applied."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import ValidationError

from dari.bridge.config.profile import ToolRules
from dari.bridge.config.tool_switch import is_tool_on
from dari.bridge.schemas.checker import ArgumentValidator, SchemaWorker
from dari.errors import InvalidInput
from dari.rpc.codec import UNREADABLE, decode_members
from dari.text.sanitize import sanitize_value_for_model

_NAMES = 4096
"""Names remembered; a caller may ask for any."""


class ConfirmPatterns:
    """`names(tool)` is one look into a dict. Case does not matter: `*delete*` is meant for `DeleteFile` too."""

    __slots__ = ("patterns", "_match", "_known")

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        joined = "|".join(f"(?:{fnmatch.translate(pattern.lower())})" for pattern in self.patterns)
        self._match = re.compile(joined).match if joined else None
        self._known: dict[str, bool] = {}

    def names(self, tool: str) -> bool:
        if self._match is None:
            return False
        known = self._known.get(tool)
        if known is None:
            if len(self._known) >= _NAMES:
                self._known.clear()
            known = self._known[tool] = self._match(tool.lower()) is not None
        return known


JsonObject = dict[str, Any]

_MAX_LISTED_NAMES = 50


class UpstreamTool:
    """`shown` is the tool as `tools/list` shows it, under its name here and without the server in front."""

    __slots__ = ("name", "original", "shown", "is_read_only", "is_repeatable", "needs_confirmation", "_arguments")

    def __init__(
        self, original: str, shown: JsonObject, worker: SchemaWorker, *, needs_confirmation: bool = False
    ) -> None:
        self.name: str = shown["name"]
        self.original = original
        self.shown = shown
        hints = shown.get("annotations")
        hints = hints if isinstance(hints, dict) else {}
        self.is_read_only = hints.get("readOnlyHint") is True
        self.is_repeatable = self.is_read_only or hints.get("idempotentHint") is True
        self.needs_confirmation = needs_confirmation
        self._arguments = ArgumentValidator(self.name, shown.get("inputSchema"), worker)

    async def check(self, arguments: bytes) -> None:
        """Refuse arguments that do not fit the tool's schema; the error names each."""
        self._require_object(arguments)
        try:
            found = await self._arguments.complaints(arguments)
        except UNREADABLE as error:  # a member that no value can hold, such as 1e400
            raise self._unreadable(error) from None
        if found:
            raise self._refusal(found)

    def check_now(self, arguments: bytes) -> bool:
        """`check` at once; False where that could block the event loop, and `check` has to be awaited."""
        self._require_object(arguments)
        try:
            found = self._arguments.complaints_now(arguments)
        except UNREADABLE as error:
            raise self._unreadable(error) from None
        if found:
            raise self._refusal(found)
        return found is not None

    def _require_object(self, arguments: bytes) -> None:
        # The members stay unread: what a large text holds is for the check to read, where it can be stopped.
        try:
            decode_members(arguments)
        except ValidationError:
            raise InvalidInput(
                f"the arguments of '{self.name}' must be an object", 'send one, such as {"name": "value"}'
            ) from None
        except UNREADABLE as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> InvalidInput:
        return InvalidInput(f"the arguments of '{self.name}' must be JSON that can be read: {error}", "send an object")

    def _refusal(self, found: list[str]) -> InvalidInput:
        properties = self.shown.get("inputSchema", {}).get("properties", {})
        known = ", ".join(map(str, list(properties)[:_MAX_LISTED_NAMES])) if isinstance(properties, dict) else ""
        return InvalidInput(
            f"arguments of '{self.name}': {'; '.join(found)}", f"it takes: {known}" if known else "it takes none"
        )


class ToolView:
    """The rules of one profile, ready to be applied to its lists."""

    def __init__(self, rules: ToolRules, worker: SchemaWorker) -> None:
        self._rules = rules
        self._worker = worker
        self._confirming = ConfirmPatterns(rules.confirm)

    def apply(self, items: Iterable[JsonObject], cleaned: Mapping[int, JsonObject]) -> tuple[UpstreamTool, ...]:
        """What is left of the list, in its order. The first of two tools with one name is the one that counts.

        `cleaned` has by `id` those items that were already made fit for a model.
        """
        tools: dict[str, UpstreamTool] = {}
        for item in items:
            original = item.get("name")
            if not isinstance(original, str) or not self.is_allowed(original):
                continue
            shown = cleaned.get(id(item)) or sanitize_value_for_model(item)[0]
            shown = {**shown, "name": self._rules.rename.get(original, original)}
            if original in self._rules.describe:
                shown["description"] = self._rules.describe[original]
            if not isinstance(shown.get("inputSchema"), dict):
                shown["inputSchema"] = {"type": "object"}
            confirmed = self._confirming.names(original) or self._confirming.names(shown["name"])
            tools.setdefault(shown["name"], UpstreamTool(original, shown, self._worker, needs_confirmation=confirmed))
        return tuple(tools.values())

    def is_allowed(self, name: str) -> bool:
        """Globs of the original name; `deny` wins."""
        return is_tool_on(name, self._rules.allow, self._rules.deny)
