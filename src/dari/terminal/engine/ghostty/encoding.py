"""Keys and mouse events as the bytes that the program asked for, by libghostty-vt's encoders."""

from __future__ import annotations

from functools import cache
from typing import Any

from dari.terminal.engine.engine import MouseAction, MouseButton
from dari.terminal.engine.ghostty.binding import Binding, load
from dari.terminal.engine.ghostty.terminal import CELL_PIXELS, NativeTerminal, check
from dari.terminal.engine.keys import Key

_SHIFT, _CTRL, _ALT, _SUPER = 1, 2, 4, 8
_SHIFTED = dict(zip('~!@#$%^&*()_+{}|:"<>?', "`1234567890-=[]\\;',./", strict=True))
_PUNCTUATION = {
    "`": "BACKQUOTE",
    "\\": "BACKSLASH",
    "[": "BRACKET_LEFT",
    "]": "BRACKET_RIGHT",
    ",": "COMMA",
    "=": "EQUAL",
    "-": "MINUS",
    ".": "PERIOD",
    "'": "QUOTE",
    ";": "SEMICOLON",
    "/": "SLASH",
}
_NAMED = {
    "up": "ARROW_UP",
    "down": "ARROW_DOWN",
    "left": "ARROW_LEFT",
    "right": "ARROW_RIGHT",
    "menu": "CONTEXT_MENU",
}
_TYPED = {"space": " ", "enter": "\r", "tab": "\t"}
_BUTTONS: dict[str, int] = {"left": 1, "right": 2, "middle": 3, "wheel_up": 4, "wheel_down": 5}


class Encoders:
    """One set for all screens: each call takes its settings from the terminal that it is for."""

    def __init__(self, binding: Binding) -> None:
        ffi, lib = binding.ffi, binding.lib
        self._ffi, self._lib = ffi, lib
        made = [ffi.new(f"{kind} *") for kind in _KINDS]
        for name, pointer in zip(("key_encoder", "key_event", "mouse_encoder", "mouse_event"), made, strict=True):
            check(getattr(lib, f"ghostty_{name}_new")(ffi.NULL, pointer), f"make a {name}")
        self._keys, self._key, self._mice, self._mouse = (pointer[0] for pointer in made)
        self._buffer = ffi.new("char[]", 256)
        self._size = ffi.new("size_t *")

    def key(self, native: NativeTerminal, key: Key) -> bytes:
        lib = self._lib
        code, text, plain, modifiers = _describe(key)
        lib.ghostty_key_event_set_action(self._key, lib.GHOSTTY_KEY_ACTION_PRESS)
        lib.ghostty_key_event_set_key(self._key, getattr(lib, f"GHOSTTY_KEY_{code}"))
        lib.ghostty_key_event_set_mods(self._key, modifiers)
        lib.ghostty_key_event_set_consumed_mods(self._key, _SHIFT if text != plain and modifiers & _SHIFT else 0)
        typed = self._ffi.from_buffer("char[]", text.encode())
        lib.ghostty_key_event_set_utf8(self._key, typed, len(typed))
        lib.ghostty_key_event_set_unshifted_codepoint(self._key, ord(plain) if plain else 0)
        lib.ghostty_key_encoder_setopt_from_terminal(self._keys, native.pointer)
        encode = lib.ghostty_key_encoder_encode
        check(encode(self._keys, self._key, self._buffer, len(self._buffer), self._size), f"encode {key}")
        return bytes(self._ffi.buffer(self._buffer, self._size[0]))

    def mouse(
        self,
        native: NativeTerminal,
        action: MouseAction,
        button: MouseButton,
        place: tuple[int, int],
        screen: tuple[int, int],
        modifiers: frozenset[str],
    ) -> bytes:
        ffi, lib = self._ffi, self._lib
        numbers = {"press": lib.GHOSTTY_MOUSE_ACTION_PRESS, "release": lib.GHOSTTY_MOUSE_ACTION_RELEASE}
        lib.ghostty_mouse_event_set_action(self._mouse, numbers.get(action, lib.GHOSTTY_MOUSE_ACTION_MOTION))
        if button == "none":
            lib.ghostty_mouse_event_clear_button(self._mouse)
        else:
            lib.ghostty_mouse_event_set_button(self._mouse, _BUTTONS[button])
        lib.ghostty_mouse_event_set_mods(self._mouse, _modifier_bits(modifiers))
        width, height = CELL_PIXELS
        position = ffi.new("GhosttyMousePosition *")
        position.x, position.y = place[0] * width + width / 2, place[1] * height + height / 2
        lib.ghostty_mouse_event_set_position(self._mouse, position[0])
        size = ffi.new("GhosttyMouseEncoderSize *")
        size.size = ffi.sizeof("GhosttyMouseEncoderSize")
        size.screen_width, size.screen_height = screen[0] * width, screen[1] * height
        size.cell_width, size.cell_height = width, height
        lib.ghostty_mouse_encoder_setopt_from_terminal(self._mice, native.pointer)
        lib.ghostty_mouse_encoder_setopt(self._mice, lib.GHOSTTY_MOUSE_ENCODER_OPT_SIZE, size)
        held = ffi.new("bool *", button != "none")
        lib.ghostty_mouse_encoder_setopt(self._mice, lib.GHOSTTY_MOUSE_ENCODER_OPT_ANY_BUTTON_PRESSED, held)
        encode = lib.ghostty_mouse_encoder_encode
        check(encode(self._mice, self._mouse, self._buffer, len(self._buffer), self._size), "encode a mouse event")
        return bytes(ffi.buffer(self._buffer, self._size[0]))


_KINDS = ("GhosttyKeyEncoder", "GhosttyKeyEvent", "GhosttyMouseEncoder", "GhosttyMouseEvent")


@cache
def encoders() -> Encoders:
    return Encoders(load())


def _describe(key: Key) -> tuple[str, str, str, int]:
    """The library's word for the key, the text it types, that text without shift, and the modifiers."""
    modifiers = _modifier_bits(key.modifiers)
    if not key.is_character:
        typed = _TYPED.get(key.name, "")
        return _code(key.name), typed if key.name == "space" else "", typed, modifiers
    plain = _SHIFTED.get(key.name, key.name.lower() if len(key.name.lower()) == 1 else key.name)
    text = key.name
    if key.shift and text == plain and text.upper() != text and len(text.upper()) == 1:
        text = text.upper()
    if text != plain:
        modifiers |= _SHIFT
    if plain.isascii() and plain.isalnum():
        code = f"DIGIT_{plain}" if plain.isdigit() else plain.upper()
    else:
        code = _PUNCTUATION.get(plain, "UNIDENTIFIED")
    return code, text, plain, modifiers


def _code(name: str) -> str:
    if name in _NAMED:
        return _NAMED[name]
    return f"NUMPAD_{name[3:].upper()}" if name.startswith("kp_") else name.upper()


def _modifier_bits(modifiers: frozenset[Any]) -> int:
    bits = {"shift": _SHIFT, "ctrl": _CTRL, "alt": _ALT, "super": _SUPER}
    return sum(bits[modifier] for modifier in modifiers)
