"""Every value that is read from libghostty-vt, each with the one C type it has.

The C functions write through a `void *`: a wrong type there overwrites the heap. So no caller names a type; it
is looked up here by the value's name, and a test fills the memory around each one to see that it stays as it was.
"""

from __future__ import annotations

from typing import Any

from dari.terminal.engine.engine import Modes, MouseFormat, MouseTracking
from dari.terminal.engine.ghostty.binding import Binding

TERMINAL: dict[str, str] = {
    "COLS": "uint16_t",
    "ROWS": "uint16_t",
    "CURSOR_X": "uint16_t",
    "CURSOR_Y": "uint16_t",
    "CURSOR_PENDING_WRAP": "bool",
    "ACTIVE_SCREEN": "GhosttyTerminalScreen",
    "CURSOR_VISIBLE": "bool",
    "KITTY_KEYBOARD_FLAGS": "uint8_t",
    "TITLE": "GhosttyString",
    "PWD": "GhosttyString",
    "TOTAL_ROWS": "size_t",
    "SCROLLBACK_ROWS": "size_t",
    "MODE": "GhosttyTerminalModeConfig",
    "VT_GROUND": "bool",
    "SCROLLBACK_MAX_BYTES": "size_t",
}
RENDER: dict[str, str] = {
    "COLS": "uint16_t",
    "ROWS": "uint16_t",
    "DIRTY": "GhosttyRenderStateDirty",
    "CURSOR_VISUAL_STYLE": "GhosttyRenderStateCursorVisualStyle",
    "CURSOR_VISIBLE": "bool",
    "CURSOR_BLINKING": "bool",
}
ROW: dict[str, str] = {"RAW": "GhosttyRow", "CELLS_RAW": "GhosttyCellsView"}
CELL: dict[str, str] = {"STYLE": "GhosttyStyle", "GRAPHEMES_LEN": "uint32_t"}

_ENUMS = {
    "terminal": "GHOSTTY_TERMINAL_DATA_",
    "render_state": "GHOSTTY_RENDER_STATE_DATA_",
    "render_state_row": "GHOSTTY_RENDER_STATE_ROW_DATA_",
    "render_state_row_cells": "GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_",
}
KINDS: dict[str, dict[str, str]] = {
    "terminal": TERMINAL,
    "render_state": RENDER,
    "render_state_row": ROW,
    "render_state_row_cells": CELL,
}


class Values:
    """Reads one kind of object; the memory for each value is made once."""

    def __init__(self, binding: Binding, kind: str) -> None:
        prefix = _ENUMS[kind]
        self._get = getattr(binding.lib, f"ghostty_{kind}_get")
        self._cells = {
            name: (getattr(binding.lib, prefix + name), _memory(binding, ctype)) for name, ctype in KINDS[kind].items()
        }

    def read(self, of: Any, name: str) -> Any:
        """The value, or None when there is none. A struct is only good until the same name is read again."""
        key, memory = self._cells[name]
        return memory[0] if self._get(of, key, memory) == 0 else None

    def memory(self, name: str) -> Any:
        """Where `read` puts it, for values that are asked with a question in the same struct."""
        return self._cells[name][1]


def _memory(binding: Binding, ctype: str) -> Any:
    return binding.sized(ctype) if ctype == "GhosttyStyle" else binding.ffi.new(ctype + " *")


_MICE: tuple[tuple[int, MouseTracking], ...] = ((1003, "any"), (1002, "button"), (1000, "normal"), (9, "x10"))
_MOUSE_FORMATS: tuple[tuple[int, MouseFormat], ...] = (
    (1016, "sgr_pixels"),
    (1006, "sgr"),
    (1015, "urxvt"),
    (1005, "utf8"),
)
_ANSI_BIT = 1 << 15


def is_set(values: Values, terminal: Any, number: int) -> bool:
    values.memory("MODE").mode = number
    answer = values.read(terminal, "MODE")
    return bool(answer is not None and answer.value)


def read_modes(values: Values, terminal: Any) -> Modes:
    def has(number: int) -> bool:
        return is_set(values, terminal, number)

    mice: list[MouseTracking] = [word for number, word in _MICE if has(number)]
    formats: list[MouseFormat] = [word for number, word in _MOUSE_FORMATS if has(number)]
    return Modes(
        alternate=bool(values.read(terminal, "ACTIVE_SCREEN")),
        application_cursor=has(1),
        application_keypad=has(66),
        bracketed_paste=has(2004),
        mouse=mice[0] if mice else "off",
        mouse_format=formats[0] if formats else "x10",
        focus=has(1004),
        insert=has(4 | _ANSI_BIT),
        origin=has(6),
        wrap=has(7),
        reverse_video=has(5),
        synchronized=has(2026),
        kitty_keyboard=int(values.read(terminal, "KITTY_KEYBOARD_FLAGS") or 0),
    )
