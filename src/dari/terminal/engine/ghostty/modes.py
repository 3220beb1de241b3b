"""What the program switched on, by the numbers of the DEC and xterm modes."""

from __future__ import annotations

from typing import Any

from dari.terminal.engine.engine import Modes, MouseFormat, MouseTracking
from dari.terminal.engine.ghostty.values import Values

_MICE: tuple[tuple[int, MouseTracking], ...] = ((1003, "any"), (1002, "button"), (1000, "normal"), (9, "x10"))
_MOUSE_FORMATS: tuple[tuple[int, MouseFormat], ...] = (
    (1016, "sgr_pixels"),
    (1006, "sgr"),
    (1015, "urxvt"),
    (1005, "utf8"),
)
_ANSI = 1 << 15


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
        insert=has(4 | _ANSI),
        origin=has(6),
        wrap=has(7),
        reverse_video=has(5),
        synchronized=has(2026),
        kitty_keyboard=int(values.read(terminal, "KITTY_KEYBOARD_FLAGS") or 0),
    )
