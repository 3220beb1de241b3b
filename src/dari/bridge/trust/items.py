"""What a model sees of a server, item by item: its instructions, tools, prompts and resource templates."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from dari.core.jcs import canonical, digest, digest_of_text

JsonObject = dict[str, Any]
ItemKind = Literal["instructions", "tool", "prompt", "template"]
KINDS: tuple[ItemKind, ...] = ("instructions", "tool", "prompt", "template")

UNSEEN = ("_meta", "icons")
"""Fields that hosts read and models do not; some servers put times into them. Any other field counts, known or not."""


class ServerListing(Struct, frozen=True, kw_only=True):
    """What a server showed, as its lists show it. None: it was not asked, so nothing can be said about it."""

    instructions: str | None = None
    tools: list[JsonObject] | None = None
    prompts: list[JsonObject] | None = None
    templates: list[JsonObject] | None = None

    def of(self, kind: ItemKind) -> list[JsonObject] | None:
        if kind == "instructions":
            return None if self.instructions is None else [{"text": self.instructions}]
        return {"tool": self.tools, "prompt": self.prompts, "template": self.templates}[kind]


class ListedItem(Struct, frozen=True):
    """One thing that is pinned. `content` is the one text (`canonical`) of everything that a model sees of it."""

    kind: ItemKind
    name: str
    digest: str
    content: bytes


def item_of(kind: ItemKind, shown: JsonObject) -> ListedItem:
    seen = {key: value for key, value in shown.items() if key not in UNSEEN}
    content = canonical(seen)
    return ListedItem(kind, name_of(kind, shown), digest_of_text(content), content)


def name_of(kind: ItemKind, shown: JsonObject) -> str:
    """What an item is known by: two with one name are one item. Templates have no names that must differ."""
    if kind == "instructions":
        return ""
    return str(shown.get("uriTemplate" if kind == "template" else "name", ""))


def digest_of(items: list[ListedItem]) -> str:
    """One hash over everything a server shows under one capability profile."""
    return digest(sorted([item.kind, item.name, item.digest] for item in items))
