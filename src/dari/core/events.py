"""Events inside one process: list changes and resource updates of the registry, and the bus that carries any event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from msgspec import Struct

ListKind = Literal["tools", "prompts", "resources"]
T = TypeVar("T")


class ListChanged(Struct, frozen=True):
    """The set of tools, prompts or resources is no longer what was listed."""

    kind: ListKind


class ResourceUpdated(Struct, frozen=True):
    """The contents behind a URI changed."""

    uri: str


Event = ListChanged | ResourceUpdated


class EventBus(Generic[T]):
    """Fan-out to listeners. A listener is a plain function that only enqueues, so publishing never waits."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[T], object]] = {}

    def subscribe(self, listener: Callable[[T], object]) -> Callable[[], None]:
        """Register a listener; call the returned function to remove it."""
        key = object()
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None

    def publish(self, event: T) -> None:
        for listener in list(self._listeners.values()):
            listener(event)
