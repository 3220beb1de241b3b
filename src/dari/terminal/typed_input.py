"""Input for a pane: the bytes that are sent, and the text that the policy judges and remembers of them.

Both are made here, of each other, so that no byte reaches a shell which was judged as something else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dari.terminal.engine.engine import Engine
from dari.terminal.engine.input_encoding import clean_paste
from dari.terminal.engine.keys import Key

_CHARACTERS = {"tab": "\t", "space": " ", "backspace": "\x7f"}
_TAKES_AWAY = frozenset("\x03\x04\x08\x15\x7f")
"""^C, ^D, ^H, ^U, DEL: characters that take something off a line, or all of it."""


@dataclass(frozen=True, slots=True)
class TypedInput:
    """`text` is what the bytes mean at a prompt; ESC stands for a key that edits the line in some way."""

    data: bytes
    text: str
    is_exact: bool = True
    """False when keys go out as sequences that only some programs take for `text`: the line may then hold anything."""


def from_text(text: str) -> TypedInput:
    """Typed characters; a line end is Enter."""
    data = text.replace("\r\n", "\r").replace("\n", "\r").encode(errors="replace")
    return TypedInput(data, data.decode())


def from_paste(text: str, engine: Engine) -> TypedInput:
    """One paste, in which no character acts as a key."""
    cleaned = clean_paste(text)
    return TypedInput(engine.encode_paste(cleaned), cleaned)


def from_keys(keys: Iterable[Key], engine: Engine) -> TypedInput:
    """Keys as the program in the pane wants them sent."""
    pressed = [_from_key(key, engine.encode_key(key)) for key in keys]
    return TypedInput(
        b"".join(each.data for each in pressed),
        "".join(each.text for each in pressed),
        all(each.is_exact for each in pressed),
    )


def _from_key(key: Key, data: bytes) -> TypedInput:
    """A key that a keyboard protocol (kitty's, modifyOtherKeys) sends as a sequence may do nothing in a shell: what it
    would take off the line stays, and what it would add or enter is judged all the same."""
    meant = _character(key)
    if data == meant.encode(errors="replace"):
        return TypedInput(data, meant)
    if meant in _TAKES_AWAY:
        return TypedInput(data, "\x1b")
    if meant.startswith("\x1b"):
        return TypedInput(data, meant, data.endswith(b"\r") or not meant.endswith("\r"))
    return TypedInput(data, meant, False)


def _character(key: Key) -> str:
    """The character that a key stands for at a shell's prompt."""
    if key.name in ("enter", "kp_enter"):
        return "\x1b\r" if key.alt or key.ctrl else "\r"
    if key.alt:
        return "\x1b" + key.name if key.is_character else "\x1b"
    if key.ctrl:
        code = ord(key.name.upper()) ^ 64 if len(key.name) == 1 and key.name.isascii() else 27
        return chr(code) if code < 32 else "\x1b"
    if key.is_character:
        return key.name.upper() if key.shift else key.name
    return _CHARACTERS.get(key.name, "\x1b")
