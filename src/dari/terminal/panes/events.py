"""Events of a pane, for its listeners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from msgspec import Struct

E = TypeVar("E")


class Fanout(Generic[E]):
    """In-process fan-out. Listeners are plain functions that only enqueue, so publishing never waits."""

    def __init__(self, kind_of: Callable[[E], type] = type) -> None:
        self._kind_of = kind_of
        self._listeners: dict[object, tuple[Callable[[E], None], frozenset[type]]] = {}
        self._by_kind: dict[type, tuple[Callable[[E], None], ...]] = {}  # for events are many more than listeners

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def subscribe(self, listener: Callable[[E], None], *kinds: type) -> Callable[[], None]:
        """Register a listener, for events of these kinds or for all; call the returned function to stop."""
        key = object()
        self._listeners[key] = listener, frozenset(kinds)
        self._by_kind.clear()
        return lambda: self._remove(key)

    def _remove(self, key: object) -> None:
        self._listeners.pop(key, None)
        self._by_kind.clear()

    def publish(self, event: E) -> None:
        kind = self._kind_of(event)
        listeners = self._by_kind.get(kind)
        if listeners is None:
            wanting = [listener for listener, kinds in self._listeners.values() if not kinds or kind in kinds]
            listeners = self._by_kind[kind] = tuple(wanting)
        for listener in listeners:
            listener(event)

    @contextmanager
    def stream(self, size: int = 1000) -> Iterator[AsyncIterator[E]]:
        """The events from now on. A reader that is `size` events behind misses the oldest ones."""
        queue: asyncio.Queue[E] = asyncio.Queue(size)

        def enqueue(event: E) -> None:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)

        async def read() -> AsyncIterator[E]:
            while True:
                yield await queue.get()

        stop = self.subscribe(enqueue)
        try:
            yield read()
        finally:
            stop()


class OutputShown(Struct, frozen=True):
    """Bytes were shown; `position` counts all bytes of the pane up to their end."""

    size_bytes: int
    position: int


class CommandStarted(Struct, frozen=True):
    command_id: str
    command: str


class CommandEnded(Struct, frozen=True):
    command_id: str
    command: str
    exit_code: int | None


class TitleChanged(Struct, frozen=True):
    title: str


class CwdChanged(Struct, frozen=True):
    cwd: str


class Bell(Struct, frozen=True):
    pass


class ClipboardWritten(Struct, frozen=True):
    """The program wrote to the clipboard (OSC 52)."""

    data: bytes


class PaneResized(Struct, frozen=True):
    cols: int
    rows: int


class Exited(Struct, frozen=True):
    """The pane's first program ended; -N stands for signal N."""

    code: int


class TypistChanged(Struct, frozen=True):
    """A person took the pane over, or handed it back."""


class LineReplaced(Struct, frozen=True):
    """A whole command was typed and entered in the place of what stood on the shell's line."""


PaneEvent = (
    LineReplaced
    | OutputShown
    | CommandStarted
    | CommandEnded
    | TitleChanged
    | CwdChanged
    | Bell
    | ClipboardWritten
    | PaneResized
    | TypistChanged
    | Exited
)
