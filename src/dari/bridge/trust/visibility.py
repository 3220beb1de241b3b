"""What may be seen and called of one server right now: the check that every call passes, a look into a set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dari.bridge.trust.items import ItemKind, JsonObject, name_of
from dari.bridge.trust.pin_store import HeldItem
from dari.errors import DariError, Denied, NeedsApproval, NotFound

_LISTS = {"tool": "list-tools", "prompt": "list-prompts", "template": "list-resources", "instructions": "servers"}


class Visibility:
    """`tools` is replaced, never changed, so a reader needs no lock. Nothing is open before the first review."""

    __slots__ = ("server", "tools", "_open", "_held")

    def __init__(self, server: str) -> None:
        self.server = server
        self.tools: frozenset[str] = frozenset()
        self._open: dict[ItemKind, frozenset[str]] = {}
        self._held: dict[tuple[ItemKind, str], HeldItem] = {}

    def check_tool(self, name: str) -> None:
        """Return if the tool may be called; the only part on the hot path."""
        if name not in self.tools:
            raise self._refusal("tool", name)

    def check(self, kind: ItemKind, name: str = "") -> None:
        if name not in self._open.get(kind, ()):
            raise self._refusal(kind, name)

    def update(self, shown: Mapping[ItemKind, list[JsonObject]], held: Iterable[HeldItem]) -> None:
        """Take over a whole review."""
        self._open = {kind: frozenset(name_of(kind, each) for each in objects) for kind, objects in shown.items()}
        self._held = {(each.kind, each.name): each for each in held}
        self.tools = self._open.get("tool", frozenset())

    def _refusal(self, kind: ItemKind, name: str) -> DariError:
        held = self._held.get((kind, name))
        what = f"{kind} {self.server}/{name}" if name else f"the {kind} of {self.server}"
        if held is None:
            return NotFound(f"{self.server} shows no {kind} {name!r}", f"see: dari remote {_LISTS[kind]}")
        if held.rejected_by:
            return Denied(
                f"{what} was rejected by {held.rejected_by}", "a person can still approve it: dari remote approve"
            )
        fact = {"changed": "changed since it was approved", "added": "is new", "renamed": "is new, and others are gone"}
        return NeedsApproval(
            f"{what} {fact[held.reason]}",
            f"a person looks at the difference and agrees: dari remote approve {self.server}",
        )
