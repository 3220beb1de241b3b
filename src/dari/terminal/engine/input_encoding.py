"""Input as bytes: keys as the VT220 and xterm send them, and pasted text, in which nothing can act as a key."""

from __future__ import annotations

import re

from dari.terminal.engine.keys import Key

_LETTERS = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_PF = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_NUMBERS = {"insert": 2, "delete": 3, "page_up": 5, "page_down": 6, "menu": 29}
_NUMBERS |= dict(zip([f"f{number}" for number in range(5, 21)],
                     [15, 17, 18, 19, 20, 21, 23, 24, 25, 26, 28, 29, 31, 32, 33, 34], strict=True))  # fmt: skip
_KEYPAD = {"enter": "M", "add": "k", "subtract": "m", "multiply": "j", "divide": "o", "decimal": "n", "equal": "X"}
_KEYPAD |= {str(digit): chr(ord("p") + digit) for digit in range(10)}
_KEYPAD_TEXT = {
    "enter": "\r",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "decimal": ".",
    "equal": "=",
}
# What control makes of characters beside the letters; X11 has given digits these meanings.
_CONTROLS = dict(zip(" @2`[3\\4]5^6~_7/?8-", [0, 0, 0, 0, 27, 27, 28, 28, 29, 29, 30, 30, 30, 31, 31, 31, 127, 127, 31],
                     strict=True))  # fmt: skip


def encode_key(key: Key, *, application_cursor: bool, application_keypad: bool) -> bytes:
    """Empty for keys that no legacy sequence exists for."""
    modifiers = 1 + key.shift + 2 * key.alt + 4 * key.ctrl
    name = key.name
    if name in _LETTERS or name in _PF:
        letter = _LETTERS.get(name) or _PF[name]
        if modifiers > 1:
            return f"\x1b[1;{modifiers}{letter}".encode()
        return ("\x1bO" if application_cursor or name in _PF else "\x1b[").encode() + letter.encode()
    if name in _NUMBERS:
        return f"\x1b[{_NUMBERS[name]}{f';{modifiers}' if modifiers > 1 else ''}~".encode()
    if name.startswith("kp_"):
        pressed = name[3:]
        if application_keypad and modifiers == 1:
            return b"\x1bO" + _KEYPAD[pressed].encode()
        return _escaped(key, _KEYPAD_TEXT.get(pressed, pressed))
    if name == "tab" and key.shift:
        return b"\x1b[Z" if not key.alt else b"\x1b\x1b[Z"
    if name == "backspace":
        return _escaped(key, "\b" if key.ctrl else "\x7f")
    if name in ("enter", "tab", "escape"):
        return _escaped(key, {"enter": "\r", "tab": "\t", "escape": "\x1b"}[name])
    text = " " if name == "space" else name
    if len(name) > 1 and name != "space" and not key.is_character:
        return b""
    if key.shift and len(text.upper()) == 1:
        text = text.upper()
    if key.ctrl:
        if len(text) == 1 and text.isascii() and text.isalpha():
            text = chr(ord(text.upper()) - 64)
        elif text in _CONTROLS:
            text = chr(_CONTROLS[text])
    return _escaped(key, text)


def _escaped(key: Key, text: str) -> bytes:
    return (b"\x1b" if key.alt else b"") + text.encode(errors="replace")


_BEGIN, _END = b"\x1b[200~", b"\x1b[201~"
PASTE_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""C0 and C1 but for tab, line feed and carriage return: a paste is text, never ESC, ^C or ^D."""


def clean_paste(text: str) -> str:
    """The characters of a text that a paste sends; judge these, and not the text."""
    safe = PASTE_CONTROLS.sub("", text)
    return safe.replace("\r\n", "\r").replace("\n", "\r").encode(errors="replace").decode()


def encode_paste(text: str, is_bracketed: bool) -> bytes:
    """Line ends become Return, as terminals send them; brackets only where the program asked for them."""
    data = clean_paste(text).encode()
    return _BEGIN + data + _END if is_bracketed else data
