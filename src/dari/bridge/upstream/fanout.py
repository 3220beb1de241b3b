"""What happened to a server, told to whoever wants to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Fanout(Generic[T]):
    """Listeners are plain functions that only enqueue."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[T], object]] = {}

    def subscribe(self, listener: Callable[[T], object]) -> Callable[[], None]:
        """Call what is returned to stop."""
        key = object()
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None

    def publish(self, told: T) -> None:
        for listener in list(self._listeners.values()):
            listener(told)
