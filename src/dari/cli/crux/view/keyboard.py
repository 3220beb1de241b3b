"""What a person types and clicks, taken apart: bytes for the program, mouse reports, and the prefix with its key."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dari.errors import InvalidInput

_SEQUENCE = re.compile(
    rb"\x1b\[<(?P<button>\d+);(?P<col>\d+);(?P<row>\d+)(?P<end>[Mm])"
    rb"|(?P<paste>\x1b\[200~)"
    rb"|(?P<kitty>\x1b\[(?P<code>\d+);5(?::\d+)?u)"
)
_UNFINISHED = re.compile(rb"\x1b(?:\[(?:<[\d;]*|\d{0,3}(?:;\d?)?)?)?$")
_PASTE_END = b"\x1b[201~"
# A key as one piece: an escape sequence, ESC with a character, or one character of UTF-8.
_KEY = re.compile(rb"\x1b\[[\d;:<?]*[ -/]*[@-~]|\x1bO.|\x1b.|[\xc2-\xf4][\x80-\xbf]+|.", re.DOTALL)
_NAMES = {
    b"A": "up",
    b"B": "down",
    b"C": "right",
    b"D": "left",
    b"5~": "page_up",
    b"6~": "page_down",
    b"H": "home",
    b"F": "end",
}
_BUTTONS = {0: "left", 1: "middle", 2: "right", 3: "none", 64: "wheel_up", 65: "wheel_down"}


@dataclass(frozen=True, slots=True)
class TypedBytes:
    data: bytes


@dataclass(frozen=True, slots=True)
class PrefixCommand:
    """The key after the prefix: a character, or a name such as `up`."""

    key: str


@dataclass(frozen=True, slots=True)
class MouseReport:
    action: str
    button: str
    col: int
    row: int
    modifiers: tuple[str, ...]


Input = TypedBytes | PrefixCommand | MouseReport


def parse_prefix(text: str) -> int:
    """The code of `C-b`, `ctrl-b` or `^b`."""
    found = re.fullmatch(r"(?:C-|ctrl[-+]|\^)([a-zA-Z\[\\\]_@])", text)
    if found is None:
        raise InvalidInput(
            f"the prefix must be Ctrl and a letter, such as C-a, got {text[:40]!r}", "choose another prefix"
        )
    return ord(found[1].upper()) & 31


class Keyboard:
    """Feed it what was read; a sequence that is cut in two is kept until the rest comes, or `flush`."""

    def __init__(self, prefix: int) -> None:
        self._prefix = bytes((prefix,))
        self._code = prefix + 96
        self._rest = b""
        self._is_pasting = False
        self._is_prefixed = False

    @property
    def is_waiting(self) -> bool:
        """Something is kept that may be a whole key: flush it when nothing follows soon."""
        return bool(self._rest) and not self._is_pasting  # the end of a paste comes, however late its rest is

    def feed(self, data: bytes) -> list[Input]:
        data, self._rest = self._rest + data, b""
        found: list[Input] = []
        while data:
            data = self._paste(data, found) if self._is_pasting else self._typed(data, found)
        return _joined(found)

    def flush(self) -> list[Input]:
        if self._is_pasting:
            return []
        data, self._rest = self._rest, b""
        if self._is_prefixed and data:
            self._is_prefixed = False
            return [PrefixCommand(name_key(data))]
        return [TypedBytes(data)] if data else []

    def _paste(self, data: bytes, found: list[Input]) -> bytes:
        """Everything up to the end of the paste is text, whatever it looks like."""
        end = data.find(_PASTE_END)
        if end >= 0:
            self._is_pasting = False
            end += len(_PASTE_END)
            found.append(TypedBytes(data[:end]))
            return data[end:]
        kept = next((size for size in range(len(_PASTE_END) - 1, 0, -1) if data.endswith(_PASTE_END[:size])), 0)
        self._rest = data[len(data) - kept :] if kept else b""
        if len(data) > kept:
            found.append(TypedBytes(data[: len(data) - kept]))
        return b""

    def _typed(self, data: bytes, found: list[Input]) -> bytes:
        if self._is_prefixed:
            return self._after_prefix(data, found)
        special = _SEQUENCE.search(data)
        at = data.find(self._prefix)
        if special is not None and (at < 0 or special.start() < at):
            if special.start():
                found.append(TypedBytes(data[: special.start()]))
            if special["paste"]:
                self._is_pasting = True
                found.append(TypedBytes(special[0]))
            elif special["kitty"]:
                self._is_prefixed = int(special["code"]) == self._code
                if not self._is_prefixed:
                    found.append(TypedBytes(special[0]))
            else:
                found.append(_mouse(special))
            return data[special.end() :]
        if at >= 0:
            if at:
                found.append(TypedBytes(data[:at]))
            self._is_prefixed = True
            return data[at + 1 :]
        unfinished = _UNFINISHED.search(data)
        if unfinished is not None:
            self._rest = unfinished[0]
            data = data[: unfinished.start()]
        if data:
            found.append(TypedBytes(data))
        return b""

    def _after_prefix(self, data: bytes, found: list[Input]) -> bytes:
        if data == b"\x1bO" or _UNFINISHED.fullmatch(data):
            self._rest = data
            return b""
        mouse = _SEQUENCE.match(data)
        if mouse is not None and mouse["button"]:
            found.append(_mouse(mouse))
            return data[mouse.end() :]
        key = _KEY.match(data)
        assert key is not None
        self._is_prefixed = False
        if key[0] == self._prefix:
            found.append(TypedBytes(self._prefix))
        else:
            found.append(PrefixCommand(name_key(key[0])))
        return data[key.end() :]


def name_key(data: bytes) -> str:
    """The name of one key as a terminal sends it; a character is its own name, and an unknown key has none."""
    if data[:1] != b"\x1b":
        return data.decode(errors="replace")
    if data == b"\x1b":
        return "escape"
    if data[:2] in (b"\x1b[", b"\x1bO"):
        modified = re.match(rb"1;([35])(?=[A-D]$)", data[2:])
        if modified is not None:  # Alt and Ctrl with an arrow; every other modifier leaves a key what it is
            return ("alt-" if modified[1] == b"3" else "ctrl-") + _NAMES[data[-1:]]
        tail = re.sub(rb"^1;\d+", b"", data[2:])
        if (kitty := re.fullmatch(rb"(\d+)(?:;1)?u", tail)) is not None:
            return chr(int(kitty[1]))
        return _NAMES.get(tail, "")
    return ""


def split_keys(data: bytes) -> list[bytes]:
    """The bytes of each key; `name_key` names it."""
    return _KEY.findall(data)


def _mouse(found: re.Match[bytes]) -> MouseReport:
    code = int(found["button"])
    button = _BUTTONS.get(code & ~60, "none")
    modifiers = tuple(word for bit, word in ((4, "shift"), (8, "alt"), (16, "ctrl")) if code & bit)
    action = "move" if code & 32 else "release" if found["end"] == b"m" else "press"
    return MouseReport(action, button, int(found["col"]) - 1, int(found["row"]) - 1, modifiers)


def _joined(found: list[Input]) -> list[Input]:
    """Bytes that follow each other as one piece."""
    joined: list[Input] = []
    for each in found:
        last = joined[-1] if joined else None
        if isinstance(each, TypedBytes) and isinstance(last, TypedBytes):
            joined[-1] = TypedBytes(last.data + each.data)
        else:
            joined.append(each)
    return joined
