"""`prefix M`: a box over the pane to pick a tool of any server, fill its arguments and see or type what it returns."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dari.cli.crux.view.drawing import BEGIN, END, fit_columns
from dari.cli.crux.view.hub_tools import HubTools
from dari.text.sanitize import escape_hidden
from dari.text.width import take_columns

MAX_COLS, MAX_ROWS = 96, 24
MAX_LINE_CHARS = 4 * MAX_COLS
"""Of a description; a row shows less."""
_KEYS = {
    "list": "type to search   arrows move   Enter picks   Escape closes",
    "form": "Enter next, runs at the end   arrows move   Ctrl-r runs   Escape back",
    "running": "running …   Escape cancels",
    "result": "t types it into the pane   arrows scroll   Enter closes   Escape back",
}
_DOWN, _UP = ("down", "\x0e", "\t"), ("up", "\x10")


class ToolPalette:
    """Feed it keys while `is_open`. `type_text` gets a result that the person wants in the pane."""

    def __init__(self, hub: HubTools, type_text: Callable[[str], None]) -> None:
        self._hub = hub
        self._type_text = type_text
        self.is_open = True
        self._step = "list"
        self._search = ""
        self._at = 0
        self._tool: dict[str, Any] = {}
        self._fields: list[tuple[str, dict[str, Any], bool]] = []
        self._values: list[str] = []
        self._problem = ""
        self._lines: list[str] = []
        self._folded_from = ("", 0)
        self._result = ""

    def fileno(self) -> int:
        return self._hub.fileno()

    def close(self) -> None:
        self.is_open = False
        self._hub.close()

    def read(self) -> None:
        """Take what the hub has said; draw again after it."""
        self._hub.read()
        if self._step == "running" and self._hub.result is not None:
            text, is_error = self._hub.result
            self._result, self._problem = escape_hidden(text), "the tool reported an error" if is_error else ""
            self._step, self._at = "result", 0

    def feed(self, key: str) -> None:
        if key == "\x03":
            self.close()
        elif self._step == "list":
            self._pick(key)
        elif self._step == "form":
            self._fill(key)
        elif self._step == "running":
            if key == "escape":
                self._hub.cancel()
                self._step, self._at = "form", 0
        else:
            self._look(key)

    # Steps

    def _found(self) -> list[dict[str, Any]]:
        words = self._search.lower().split()
        tools = self._hub.tools or []
        named = [one for one in tools if all(word in str(one["name"]).lower() for word in words)]
        shown = set(map(id, named))
        told = [
            one
            for one in tools
            if id(one) not in shown
            and all(word in f"{one['name']} {one.get('description', '')}".lower() for word in words)
        ]
        return [*named, *told]

    def _pick(self, key: str) -> None:
        found = self._found()
        if key == "escape":
            self.close()
        elif key in _DOWN or key in _UP:
            self._at = (self._at + (1 if key in _DOWN else -1)) % max(1, len(found))
        elif key == "\r" and found:
            self._open_form(found[min(self._at, len(found) - 1)])
        elif (edited := _edit(self._search, key)) is not None:
            self._search, self._at = edited, 0

    def _open_form(self, tool: dict[str, Any]) -> None:
        schema = tool.get("inputSchema") or {}
        properties, required = schema.get("properties") or {}, set(schema.get("required") or ())
        self._tool, self._problem, self._step, self._at = tool, "", "form", 0
        self._fields = sorted(
            ((name, one if isinstance(one, dict) else {}, name in required) for name, one in properties.items()),
            key=lambda field: not field[2],
        )
        self._values = [""] * len(self._fields)
        if not self._fields:
            self._run()

    def _fill(self, key: str) -> None:
        last = len(self._fields) - 1
        if key == "escape":
            self._step, self._at = "list", 0
        elif key == "\x12" or (key == "\r" and self._at == last):
            self._run()
        elif key == "\r" or key in _DOWN:
            self._at = min(last, self._at + 1)
        elif key in _UP:
            self._at = max(0, self._at - 1)
        elif self._fields and (edited := _edit(self._values[self._at], key)) is not None:
            self._values[self._at] = edited

    def _run(self) -> None:
        arguments: dict[str, Any] = {}
        for at, ((name, schema, is_required), typed) in enumerate(zip(self._fields, self._values, strict=True)):
            if not typed and not is_required:
                continue
            try:
                arguments[name] = _value_of(typed, schema)
            except ValueError:
                self._problem, self._at = f"{name} must be {_kind_of(schema)}, got {typed!r}", at
                return
        self._problem, self._step = "", "running"
        self._hub.call(str(self._tool["name"]), arguments)

    def _look(self, key: str) -> None:
        if key == "escape":
            self._step, self._at = ("form" if self._fields else "list"), 0
        elif key in ("\r", "q"):
            self.close()
        elif key == "t" and self._result:
            self.close()
            self._type_text(self._result)
        else:
            page = MAX_ROWS // 2
            steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page_up": -page, "page_down": page}
            self._at = max(0, min(len(self._lines) - 1, self._at + steps.get(key, 0)))

    # Drawing

    def draw(self, cols: int, rows: int) -> str:
        """The box in the middle of a terminal of this size."""
        width, height = max(10, min(MAX_COLS, cols - 4)), max(5, min(MAX_ROWS, rows - 3))
        body, cursor = self._body(width - 2, height - 4)
        left, top = (cols - width) // 2 + 1, (rows - height) // 2 + 1
        title = " tools of the hub " if self._step == "list" else f" {self._tool.get('name', '')} "
        head = fit_columns(escape_hidden(title, one_line=True), min(len(title), width - 4)).rstrip()
        lines = [f"┌─{head}{'─' * (width - 3 - len(head))}┐"]
        blanks = [("", "0")] * (height - 4 - len(body))
        for text, style in [*body, *blanks, (self._problem, "31"), (_KEYS[self._step], "2")]:
            lines.append(f"│\x1b[0;{style}m{fit_columns(text, width - 2)}\x1b[0m│")
        lines.append(f"└{'─' * (width - 2)}┘")
        drawn = "".join(f"\x1b[{top + at};{left}H\x1b[0m{line}" for at, line in enumerate(lines))
        place = "\x1b[?25l" if cursor is None else f"\x1b[{top + 1 + cursor[1]};{left + 1 + cursor[0]}H\x1b[?25h"
        return f"{BEGIN}\x1b[?25l{drawn}{place}{END}"

    def _body(self, cols: int, rows: int) -> tuple[list[tuple[str, str]], tuple[int, int] | None]:
        """Lines with their style, and where the cursor stands."""
        if self._step == "list":
            found = self._found()
            self._at = min(self._at, max(0, len(found) - 1))
            first = max(0, min(self._at - (rows - 2), len(found) - rows + 1))
            listed = [
                (f" {one['name']}  {_one_line(one.get('description'))}", "7" if at == self._at else "0")
                for at, one in list(enumerate(found))[first : first + rows - 1]
            ]
            if not listed:
                listed = [(" loading …" if self._hub.tools is None else " no tool has these words", "2")]
            return [(f"> {self._search}", "1"), *listed], (2 + len(self._search), 0)
        if self._step == "result":
            if self._folded_from != (self._result, cols):  # a result may have a megabyte, and every frame is drawn
                self._folded_from = (self._result, cols)
                self._lines = [part for line in self._result.split("\n") for part in _folded(line, cols - 1)]
            self._at = min(self._at, max(0, len(self._lines) - 1))
            return [(f" {line}", "0") for line in self._lines[self._at : self._at + rows]], None
        about = _one_line(self._tool.get("description"))
        lines: list[tuple[str, str]] = [(f" {about}", "2"), ("", "0")]
        labels = [f" {name}{'*' if is_required else ''} ({_kind_of(one)}): " for name, one, is_required in self._fields]
        first = max(0, self._at - (rows - 4))
        for at in range(first, min(len(labels), first + rows - 3)):
            lines.append((labels[at] + self._values[at], "1" if at == self._at else "0"))
        if not labels:
            return lines, None
        hint = _one_line(self._fields[self._at][1].get("description"))
        cursor = (min(cols - 1, len(labels[self._at]) + len(self._values[self._at])), 2 + self._at - first)
        return [*lines, (f"   {hint}", "2")], cursor if self._step == "form" else None


def _one_line(text: object) -> str:
    return escape_hidden(str(text or "")[:MAX_LINE_CHARS], one_line=True)


def _edit(text: str, key: str) -> str | None:
    """The text after the key; None when the key edits nothing."""
    if key in ("\x7f", "\x08"):
        return text[:-1]
    if key == "\x15":
        return ""
    return text + key if len(key) == 1 and key.isprintable() else None


def _kind_of(schema: dict[str, Any]) -> str:
    if isinstance(schema.get("enum"), list):
        return " | ".join(map(str, schema["enum"]))[:60]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "")
    return str(kind or next((_kind_of(one) for one in schema.get("anyOf", ()) if one.get("type") != "null"), "json"))


def _value_of(typed: str, schema: dict[str, Any]) -> Any:
    """What the person typed as a value for the schema; ValueError when it cannot be one."""
    kind = _kind_of(schema)
    if isinstance(schema.get("enum"), list):
        chosen = [one for one in schema["enum"] if str(one) == typed]
        if not chosen:
            raise ValueError(typed)
        return chosen[0]
    if kind == "string":
        return typed
    value = json.loads(typed)
    wanted = _TYPES.get(kind)
    if wanted is not None and (not isinstance(value, wanted) or (isinstance(value, bool) and kind != "boolean")):
        raise ValueError(typed)
    return value


_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _folded(line: str, cols: int) -> list[str]:
    parts = []
    at = 0
    while at < len(line):
        part = take_columns(line[at : at + 4 * cols], cols) or line[at]
        parts.append(part)
        at += len(part)
    return parts or [""]
