"""One line that a person types in the status line: a text to search for, a new name."""

from __future__ import annotations

from collections.abc import Callable

MAX_CHARS = 200


class Prompt:
    """Feed it keys; `on_done` gets the text when Enter is typed, and nothing happens after Escape."""

    def __init__(self, label: str, on_done: Callable[[str], None], text: str = "") -> None:
        self._label = label
        self._on_done = on_done
        self._text = text
        self.is_open = True

    @property
    def line(self) -> str:
        return f"{self._label}{self._text}▏"

    def feed(self, key: str) -> None:
        if key == "\r":
            self.is_open = False
            self._on_done(self._text)
        elif key in ("escape", "\x03", "\x07"):
            self.is_open = False
        elif key in ("\x7f", "\x08"):
            self._text = self._text[:-1]
        elif key == "\x15":
            self._text = ""
        elif len(key) == 1 and key.isprintable():
            self._text = (self._text + key)[:MAX_CHARS]
