"""Characters that hide something from a person: terminal control, reversed text, and text that is not drawn at all.

    ansi        escape sequences: they drive a terminal (colours, titles, clipboard, links, rewritten lines)
    control     any other of C0, C1 and DEL; a carriage return alone lets a line write over itself
    bidi        overrides and isolates: what is read is not what is written ("Trojan Source", CVE-2021-42574)
    invisible   zero-width and other characters without a shape: words that filters do not find
    tags        U+E0000–E007F: a second ASCII that models read and no screen shows
    variation   runs of variation selectors: 256 of them carry one byte each behind any character
    surrogate   halves of a pair, which no text may hold

What people write with them stays: joined emoji, flags, joiners in Persian and Indian scripts, one emoji selector.
"""

from __future__ import annotations

import functools
import re
from typing import Literal

from msgspec import Struct

HiddenKind = Literal["ansi", "control", "bidi", "invisible", "tags", "variation", "surrogate"]

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# Everything that is Default_Ignorable in Unicode and not in another class, soft hyphen and separators included.
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2028\u2029\u2060-\u2065\u206a-\u206f\u3164\ufeff"
    "\uffa0\ufff0-\ufffb"
)
_INVISIBLE_FAR = "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
_TAGS = "\U000e0000-\U000e007f"
_SELECTORS, _SELECTORS_FAR = "\ufe00-\ufe0f", "\U000e0100-\U000e01ef"
_VARIATION = _SELECTORS + _SELECTORS_FAR
_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_SURROGATE = "\ud800-\udfff"

# A country inside the United Kingdom is a black flag and its code in tags; no other tag sequence is in use.
_COUNTRIES = ("".join(chr(0xE0000 + ord(letter)) for letter in code) for code in ("gbeng", "gbsct", "gbwls"))
_FLAG = f"(?<=\U0001f3f4)(?:{'|'.join(_COUNTRIES)})\U000e007f"
_PICTURE = "\u203c-\u3299\U0001f000-\U0001faff"
# Scripts whose spelling needs joiners: Arabic, Syriac, N'Ko, the Indian ones, Sinhala, Khmer, Mongolian.
_JOINING = "\u0600-\u07ff\u0840-\u08ff\u0900-\u0dff\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc"
_ALLOWED = (
    f"{_FLAG}"
    f"|(?<=[{_PICTURE}\ufe0f])\u200d(?=[{_PICTURE}])"
    f"|(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
    f"|(?<=[{_PICTURE}0-9#*©®])[\ufe0e\ufe0f](?![{_VARIATION}])"
    "|\r\n"
)
# CSI with its final byte, strings (OSC, DCS, SOS, PM, APC) with their end or up to the end of the line, the rest.
_ANSI = (
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]?"
)
_FOUND = (
    f"(?P<allowed>{_ALLOWED})|(?P<ansi>{_ANSI})|(?P<control>(?:(?!\r\n|\x1b)[{_CONTROL}])+)|(?P<bidi>[{_BIDI}]+)"
    f"|(?P<tags>[{_TAGS}]+)|(?P<variation>[{_VARIATION}]+)|(?P<invisible>[{_INVISIBLE}{_INVISIBLE_FAR}]+)"
    f"|(?P<surrogate>[{_SURROGATE}]+)"
)
_CONTROLS = re.compile(f"[{_CONTROL}]")
# A class that ends below U+10000 is a table for `re`; one that goes beyond costs six times as much a character.
_NEAR = f"[{_CONTROL}{_BIDI}{_INVISIBLE}{_SELECTORS}{_SURROGATE}]"
_FAR = f"[{_TAGS}{_SELECTORS_FAR}{_INVISIBLE_FAR}]"
_ANY = f"{_NEAR[:-1]}{_FAR[1:]}"

# In the bytes of JSON, control characters are escapes and the rest may be; a yes too many costs time only.
_ESCAPED = re.compile(
    rb"\\(?:[bf]|r(?!\\n)|u(?:00[0189aA]|007[fF]|034|061|115|116|17[bB]|18|20[0-6]|316|[dD][89a-fA-F]|[fF][eEfF]))"
)
_FAR_UTF8 = (b"\xf3\xa0", b"\xf0\x9b\xb2", b"\xf0\x9d\x85")
"""How the characters of `_FAR` begin."""


class HiddenRun(Struct, frozen=True):
    """A run of such characters. `says` is the text that tags or variation selectors spell, else empty."""

    sort: HiddenKind
    start: int
    count: int
    says: str = ""

    def __str__(self) -> str:
        what = f"{self.count} {self.sort} character{'s' if self.count > 1 else ''} at {self.start}"
        return f"{what} that spell {self.says!r}" if self.says else what


# To compile these takes 6 ms, and most texts are plain ASCII or hide nothing.
_compiled = functools.lru_cache(maxsize=4)(re.compile)


def may_contain_hidden(data: bytes) -> bool:
    """Is a closer look at this JSON needed? The check of the hot path: 0.2 µs for a plain result."""
    if b"\\" in data and _ESCAPED.search(data) is not None:
        return True
    if data.isascii():
        return b"\x7f" in data
    if any(start in data for start in _FAR_UTF8):
        return True
    return _compiled(_NEAR).search(data.decode(errors="replace")) is not None


def find_hidden(text: str) -> list[HiddenRun]:
    """Every run, in order; empty for what people usually write."""
    found: list[HiddenRun] = []
    suspect = _CONTROLS if text.isascii() else _compiled(_NEAR if _compiled(_FAR).search(text) is None else _ANY)
    at = 0
    while (candidate := suspect.search(text, at)) is not None:
        run = _compiled(_FOUND).match(text, candidate.start())
        if run is None or run.lastgroup is None:
            raise AssertionError(f"U+{ord(candidate[0]):04X} is suspect, and no sort of hidden character")
        at = run.end()
        if run.lastgroup != "allowed":
            sort: HiddenKind = run.lastgroup  # type: ignore[assignment]
            found.append(HiddenRun(sort, run.start(), at - run.start(), _says(sort, run[0])))
    return found


def _says(sort: str, run: str) -> str:
    if sort == "tags":
        return "".join(chr(ord(each) - 0xE0000) for each in run if 0x20 <= ord(each) - 0xE0000 < 0x7F)
    if sort == "variation":
        values = bytes(ord(each) - (0xFE00 if each < "\uffff" else 0xE0100 - 16) for each in run)
        return values.decode(errors="replace") if len(values) > 1 else ""
    return ""
