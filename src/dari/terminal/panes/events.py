"""Events of a pane, for its listeners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

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


@dataclass(frozen=True, slots=True)
class OutputShown:
    """Bytes were shown; `position` counts all bytes of the pane up to their end."""

    size_bytes: int
    position: int


@dataclass(frozen=True, slots=True)
class CommandStarted:
    command_id: str
    command: str


@dataclass(frozen=True, slots=True)
class CommandEnded:
    command_id: str
    command: str
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class TitleChanged:
    title: str


@dataclass(frozen=True, slots=True)
class CwdChanged:
    cwd: str


@dataclass(frozen=True, slots=True)
class Bell:
    pass


@dataclass(frozen=True, slots=True)
class ClipboardWritten:
    """The program wrote to the clipboard (OSC 52)."""

    data: bytes


@dataclass(frozen=True, slots=True)
class PaneResized:
    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Exited:
    """The pane's first program ended; -N stands for signal N."""

    code: int


@dataclass(frozen=True, slots=True)
class TypistChanged:
    """A person took the pane over, or handed it back."""


@dataclass(frozen=True, slots=True)
class LineReplaced:
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
