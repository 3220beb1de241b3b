"""What changed, told to whoever listens: list changes and resource updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

ListKind = Literal["tools", "prompts", "resources"]


class ListChanged(Struct, frozen=True):
    """The set of tools, prompts or resources is no longer what was listed."""

    kind: ListKind


class ResourceUpdated(Struct, frozen=True):
    """The contents behind a URI changed."""

    uri: str


Event = ListChanged | ResourceUpdated
Listener = Callable[[Event], None]


class Events:
    """In-process fan-out. Listeners are plain functions that only enqueue, so publishing never waits."""

    def __init__(self) -> None:
        self._listeners: dict[object, Listener] = {}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Register a listener; call what is returned to stop."""
        key = object()
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None

    def publish(self, event: Event) -> None:
        for listener in list(self._listeners.values()):
            listener(event)
