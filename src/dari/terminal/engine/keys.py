"""Keys by name: `C-c`, `ctrl-c`, `<Ctrl-C>`, `^C`, `Enter`, `M-x`, `S-F5`, `Up Up Enter`, or literal text.

Each word given to `parse_keys` is read like this, in this order:

    one key or chord                 Enter   C-c   Ctrl+Shift+T   ^D   é
    several with blanks between      Up Up Enter      C-x C-s      y Enter
    text with <keys> inside          :wq<Enter>       ls<Tab><Tab>
    anything else                    typed character by character
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from dari.errors import InvalidInput

Modifier = Literal["ctrl", "alt", "shift", "super"]
MODIFIERS: tuple[Modifier, ...] = ("ctrl", "alt", "shift", "super")
MAX_KEYS = 100_000

_MODIFIER_WORDS: dict[str, Modifier] = {
    **dict.fromkeys(("c", "ctrl", "control", "ctl"), "ctrl"),
    **dict.fromkeys(("m", "a", "alt", "meta", "opt", "option"), "alt"),
    **dict.fromkeys(("s", "shift"), "shift"),
    **dict.fromkeys(("d", "super", "cmd", "command", "win", "windows"), "super"),
}

_SPELLINGS = {
    "enter": "return cr ret nl newline",
    "tab": "",
    "escape": "esc",
    "space": "spc",
    "backspace": "bspace bs back",
    "delete": "del dc",
    "insert": "ins ic",
    "home": "",
    "end": "",
    "page_up": "pageup pgup ppage prior",
    "page_down": "pagedown pgdn pgdown npage next",
    "up": "arrowup cursorup",
    "down": "arrowdown cursordown",
    "left": "arrowleft cursorleft",
    "right": "arrowright cursorright",
    "pause": "break",
    "print_screen": "printscreen prtsc sysrq",
    "scroll_lock": "scrolllock",
    "caps_lock": "capslock",
    "num_lock": "numlock",
    "menu": "contextmenu apps",
    "kp_enter": "kpenter numpadenter",
    "kp_add": "kpadd kpplus kp+ numpadadd",
    "kp_subtract": "kpsubtract kpminus kp- numpadsubtract",
    "kp_multiply": "kpmultiply kp* numpadmultiply",
    "kp_divide": "kpdivide kp/ numpaddivide",
    "kp_decimal": "kpdecimal kp. numpaddecimal",
    "kp_equal": "kpequal kp= numpadequal",
}
_NAMES: dict[str, str] = {}
for _name, _others in _SPELLINGS.items():
    _NAMES |= dict.fromkeys((_name.replace("_", ""), *_others.split()), _name)
_NAMES |= {f"f{number}": f"f{number}" for number in range(1, 26)}
_NAMES |= {f"{prefix}{digit}": f"kp_{digit}" for prefix in ("kp", "numpad") for digit in range(10)}

NAMES = frozenset(_NAMES.values())
_IN_TEXT = re.compile(r"<([^<>\s]{2,40})>")


@dataclass(frozen=True, slots=True)
class Key:
    """A key pressed with modifiers: `name` is one of NAMES or the single character that is typed."""

    name: str
    ctrl: bool = False
    alt: bool = False
    shift: bool = False
    super: bool = False

    @property
    def modifiers(self) -> frozenset[Modifier]:
        return frozenset(word for word in MODIFIERS if getattr(self, word))

    @property
    def is_character(self) -> bool:
        return self.name not in NAMES

    def __str__(self) -> str:
        return "".join(f"{word}-" for word in MODIFIERS if getattr(self, word)) + self.name


def parse_keys(*words: str) -> list[Key]:
    """The keys that these words name, in order; text that names no key is typed as it is."""
    keys = [key for word in words for key in _parse_word(word)]
    if len(keys) > MAX_KEYS:
        raise InvalidInput(f"{len(keys)} keys are too many for one call", f"send at most {MAX_KEYS}, or paste the text")
    return keys


def parse_key(word: str) -> Key:
    """One key or chord; InvalidInput when the word is neither."""
    key = _chord(word)
    if key is None:
        raise InvalidInput(f"unknown key {word!r}", "use a name such as Enter, Up, F5, C-c, M-x, or one character")
    return key


def type_text(text: str) -> list[Key]:
    """The keys that a person presses to type this."""
    typed = text.replace("\r\n", "\n")
    return [_CONTROLS.get(character) or Key(character) for character in typed]


_CONTROLS = {
    "\n": Key("enter"),
    "\r": Key("enter"),
    "\t": Key("tab"),
    "\x1b": Key("escape"),
    "\x7f": Key("backspace"),
    "\b": Key("backspace"),
    " ": Key("space"),
    **{chr(code): Key(chr(code + 96), ctrl=True) for code in range(1, 27) if chr(code) not in "\b\t\n\r"},
}


def _parse_word(word: str) -> list[Key]:
    single = _chord(word)
    if single is not None:
        return [single]
    parts = word.split()
    if len(parts) > 1:
        chords = [_chord(part) for part in parts]
        # `a b` is text; one name among single characters (`y Enter`) makes them all keys.
        if any(len(part) > 1 for part in parts) and all(chord is not None for chord in chords):
            return [chord for chord in chords if chord is not None]
    keys: list[Key] = []
    position = 0
    for found in _IN_TEXT.finditer(word):
        chord = _chord(found[0])
        if chord is not None:
            keys += type_text(word[position : found.start()])
            keys.append(chord)
            position = found.end()
    return keys + type_text(word[position:])


def _chord(word: str) -> Key | None:
    if len(word) == 1:
        return _CONTROLS.get(word) or Key(word)
    if len(word) > 2 and word[0] == "<" and word[-1] == ">":
        word = word[1:-1]
        if word.lower() == "lt":
            return Key("<")
        if len(word) == 1:
            return None
    if len(word) == 2 and word[0] == "^" and word[1].isascii() and word[1].isprintable() and word[1] != " ":
        return Key(word[1].lower(), ctrl=True)
    modifiers: set[Modifier] = set()
    while True:
        if word.lower() in ("backtab", "btab"):
            return _key("tab", modifiers | {"shift"})
        name = _named(word)
        if name is not None:
            return _key(name, modifiers)
        if modifiers and len(word) == 1:
            return _key(word.lower() if "ctrl" in modifiers else word, modifiers)
        found = re.match(r"([A-Za-z]+)[-+](?=.)", word)
        modifier = _MODIFIER_WORDS.get(found[1].lower()) if found else None
        if found is None or modifier is None:
            return None
        modifiers.add(modifier)
        word = word[found.end() :]


def _named(word: str) -> str | None:
    lowered = word.lower()
    if len(lowered) < 2:
        return None
    # `page-up`, but not `C-r`: that is not `cr`.
    return _NAMES.get(lowered) or _NAMES.get(re.sub(r"(?<=[a-z]{2})[-_](?=[a-z0-9])", "", lowered))


def _key(name: str, modifiers: set[Modifier]) -> Key:
    return Key(name, "ctrl" in modifiers, "alt" in modifiers, "shift" in modifiers, "super" in modifiers)


def spell_keys(keys: list[Key]) -> tuple[str, bool]:
    """One text that is read as the same keys again; the flag says that it is plain text.

    A blank is spelled out: between words it would part them.
    """
    if all(key.is_character and not key.modifiers for key in keys):
        return "".join(key.name for key in keys), True
    return "".join(map(_spell, keys)), False


def _spell(key: Key) -> str:
    if key.is_character and not key.modifiers:
        return "<lt>" if key.name == "<" else key.name
    return f"<{key}>"
