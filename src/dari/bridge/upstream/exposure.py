"""A remote tool as it is offered: filtered, renamed, described anew, its arguments checked before they are sent."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Callable, Iterable
from typing import Any

from dari.bridge.profiles.profile import ToolRules
from dari.bridge.trust.confirming import Confirming
from dari.errors import InvalidInput
from dari.log import event
from dari.rpc.codec import UNREADABLE, decode_any
from dari.sanitising import value_for_model

JsonObject = dict[str, Any]
Check = Callable[[Any], object]

_log = logging.getLogger("dari.bridge")
_COMPLAINTS = 5


class RemoteTool:
    """`shown` is the tool as `tools/list` shows it, under its name here and without the server in front."""

    __slots__ = ("name", "original", "shown", "is_read_only", "is_repeatable", "needs_confirmation", "_validator")

    def __init__(self, original: str, shown: JsonObject, *, needs_confirmation: bool = False) -> None:
        self.name: str = shown["name"]
        self.original = original
        self.shown = shown
        hints = shown.get("annotations")
        hints = hints if isinstance(hints, dict) else {}
        self.is_read_only = hints.get("readOnlyHint") is True
        self.is_repeatable = self.is_read_only or hints.get("idempotentHint") is True
        self.needs_confirmation = needs_confirmation
        self._validator: Any = _UNMADE

    def check(self, arguments: bytes) -> None:
        """Refuse arguments that do not fit the tool's schema; the error names each."""
        validator = self._validator
        if validator is _UNMADE:
            validator = self._validator = _validator_of(self)
        try:
            value = decode_any(arguments)
        except UNREADABLE as error:
            raise InvalidInput(f"the arguments of '{self.name}' are no JSON: {error}", "send an object") from None
        if not isinstance(value, dict):
            raise InvalidInput(f"the arguments of '{self.name}' are no object", 'send one, such as {"name": "value"}')
        if validator is not None and not validator.is_valid(value):
            raise self._refusal(validator, value)

    def _refusal(self, validator: Any, value: JsonObject) -> InvalidInput:
        found = []
        for error in validator.iter_errors(value):
            where = ".".join(str(step) for step in error.instance_path)
            found.append(f"{where}: {error.message}" if where else str(error.message))
            if len(found) == _COMPLAINTS:
                break
        properties = self.shown.get("inputSchema", {}).get("properties", {})
        known = ", ".join(map(str, properties)) if isinstance(properties, dict) and properties else ""
        return InvalidInput(
            f"arguments of '{self.name}': {'; '.join(found)}", f"it takes: {known}" if known else "it takes none"
        )


_UNMADE = object()


def _validator_of(tool: RemoteTool) -> Any:
    """None where there is nothing to check with: no schema, one that is none, or no `jsonschema-rs` here."""
    schema = tool.shown.get("inputSchema")
    if not isinstance(schema, dict) or not schema:
        return None
    try:
        import jsonschema_rs
    except ImportError:
        return None
    try:
        # A schema must not make us fetch anything: references leave nothing but the schema itself.
        return jsonschema_rs.validator_for(schema, retriever=_refuse_to_fetch)
    except Exception as error:  # whatever a server calls a schema
        _log.warning(event("bridge", "schema", f"tool={tool.name} its inputSchema is none: {error}"))
        return None


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched")


class Exposure:
    """The rules of one profile, ready to be applied to its lists."""

    def __init__(self, rules: ToolRules) -> None:
        self._rules = rules
        self._confirming = Confirming(rules.confirm)

    def apply(self, items: Iterable[JsonObject]) -> tuple[RemoteTool, ...]:
        """What is left of the list, in its order. The first of two tools with one name is the one that counts."""
        tools: dict[str, RemoteTool] = {}
        for item in items:
            original = item.get("name")
            if not isinstance(original, str) or not self.is_allowed(original):
                continue
            shown, _ = value_for_model(item)
            shown = {**shown, "name": self._rules.rename.get(original, original)}
            if original in self._rules.describe:
                shown["description"] = self._rules.describe[original]
            if not isinstance(shown.get("inputSchema"), dict):
                shown["inputSchema"] = {"type": "object"}
            confirmed = self._confirming.names(original) or self._confirming.names(shown["name"])
            tools.setdefault(shown["name"], RemoteTool(original, shown, needs_confirmation=confirmed))
        return tuple(tools.values())

    def is_allowed(self, name: str) -> bool:
        """Globs of the original name; `deny` wins."""
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in self._rules.deny):
            return False
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self._rules.allow)
