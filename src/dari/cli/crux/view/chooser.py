"""What covers the panes for a moment: the list to pick a window, tab or pane from, and a line to type in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dari.cli.crux.view.drawing import BEGIN, END, fit_columns

_UP, _DOWN = ("up", "k", "\x10"), ("down", "j", "\x0e")


@dataclass(frozen=True, slots=True)
class WindowChoice:
    label: str
    window: str
    tab: str = ""
    pane: str = ""


class Chooser:
    """Feed it keys until `is_open` is false; `chosen` is then what Enter picked, or None."""

    def __init__(self, overview: dict[str, Any], pane: str) -> None:
        self.choices = list_choices(overview)
        self._at = next((at for at, choice in enumerate(self.choices) if choice.pane == pane), 0)
        self.chosen: WindowChoice | None = None
        self.is_open = bool(self.choices)

    def feed(self, key: str) -> None:
        if key in _UP:
            self._at = (self._at - 1) % len(self.choices)
        elif key in _DOWN:
            self._at = (self._at + 1) % len(self.choices)
        elif key in ("g", "home"):
            self._at = 0
        elif key in ("G", "end"):
            self._at = len(self.choices) - 1
        elif key == "\r":
            self.chosen, self.is_open = self.choices[self._at], False
        elif key in ("q", "escape", "\x03"):
            self.is_open = False

    def draw(self, cols: int, rows: int) -> str:
        """The rows around the chosen one, in a terminal of this size; the last row says which keys work."""
        shown = max(1, rows - 1)
        first = max(0, min(self._at - shown // 2, len(self.choices) - shown))
        parts = [BEGIN, "\x1b[?25l\x1b[0m\x1b[2J"]
        for row, choice in enumerate(self.choices[first : first + shown]):
            style = "7" if first + row == self._at else "0"
            parts.append(f"\x1b[{row + 1};1H\x1b[0;{style}m{fit_columns(choice.label, cols)}\x1b[0m")
        parts.append(f"\x1b[{rows};1H\x1b[0;7m{fit_columns(' arrows: move   Enter: go there   q: back', cols)}\x1b[0m")
        return "".join([*parts, END])


def list_choices(overview: dict[str, Any]) -> list[WindowChoice]:
    """Every window, below it its tabs, below those their panes, from what `crux:window/list` answers."""
    panes = {pane["info"]["id"]: pane["info"] for pane in overview["panes"]}
    choices = []
    for window in overview["windows"]:
        tabs = window["tabs"]
        choices.append(WindowChoice(f"{window['name']} ({_count(len(tabs), 'tab')})", window["id"]))
        for number, tab in enumerate(tabs):
            mark = "*" if tab["id"] == window["active"] else ""
            label = f"  {number}: {tab['name']}{mark} ({_count(len(tab['panes']), 'pane')})"
            choices.append(WindowChoice(label, window["id"], tab["id"]))
            for pane in tab["panes"]:
                info = panes.get(pane, {})
                words = (info.get("name") or "", info.get("title") or "", info.get("cwd") or "")
                label = f"    {pane}: " + "  ".join(word for word in words if word)
                choices.append(WindowChoice(label, window["id"], tab["id"], pane))
    return choices


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


MAX_CHARS = 200


class StatusPrompt:
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
