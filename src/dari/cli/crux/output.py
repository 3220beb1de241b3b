"""What a command prints: the result on stdout, as text or as one JSON value; everything else on stderr."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dari.errors import DariError

TOOLS = {
    "crux_create_pane": "crux split-pane",
    "crux_close_pane": "crux close-pane",
    "crux_list_panes": "crux list",
    "crux_focus_pane": "crux activate-pane",
    "crux_resize_pane": "crux resize",
    "crux_execute_command": "crux exec",
    "crux_wait_for_output": "crux wait",
    "crux_wait_command": "crux wait",
    "crux_interrupt_command": "crux send-keys C-c",
    "crux_send_keys": "crux send-keys",
    "crux_send_text": "crux send-text",
    "crux_get_output": "crux get-text",
    "crux_screenshot_pane": "crux screenshot",
    "crux_save_session": "crux save-session",
    "crux_restore_session": "crux restore-session",
    "crux_load_workspace": "crux load-workspace",
    "load with replace=true": "add --replace",
    "use send_keys and wait_for": "use crux send-keys and crux wait",
}
"""Hints of the service name the tools of an agent; a person at a shell is told the commands."""


class Output:
    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def show(self, payload: object, lines: Iterable[str] = ()) -> None:
        """The payload for a script, the lines for a person."""
        if self.as_json:
            import json

            self.write(json.dumps(payload, ensure_ascii=False) + "\n")
        else:
            self.write("".join(f"{line}\n" for line in lines))

    def write(self, text: str) -> None:
        """Text as it is; what stdout cannot spell is escaped."""
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()

    def note(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def complain(self, message: str, hint: str = "", *, name: str = "invalid_input", code: int = -32602) -> None:
        """A failure: `error:` and `hint:`, or one JSON object with both."""
        message, hint = for_shell(message), for_shell(hint)
        if self.as_json:
            import json

            body = {"code": code, "name": name, "message": message, "hint": hint}
            self.note(json.dumps({"error": body}, ensure_ascii=False))
            return
        is_coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        self.note(_paint("error:", "31", is_coloured) + " " + printable(message))
        if hint:
            self.note(_paint("hint:", "36", is_coloured) + " " + printable(hint))

    def tell(self, error: DariError) -> None:
        self.complain(error.message, error.hint, name=error.name, code=error.code)


def for_shell(text: str) -> str:
    for tool, command in TOOLS.items():
        text = text.replace(tool, command)
    return text


def printable(text: str) -> str:
    """Without control characters: what programs in panes wrote must not drive the reader's terminal."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else _escaped(character) for character in text
    )


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns as wide as their widest cell; the last one is left as it is."""
    cells = [[printable(cell).replace("\n", " ").replace("\t", " ") for cell in row] for row in rows]
    sizes = [max(map(width, column)) for column in zip(*cells, strict=True)]
    padded = [[cell + " " * (size - width(cell)) for cell, size in zip(row, sizes, strict=True)] for row in cells]
    return ["  ".join(row).rstrip() for row in padded]


def width(text: str) -> int:
    """Columns of a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _paint(text: str, style: str, is_coloured: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if is_coloured else text
