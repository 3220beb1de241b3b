"""The one sanitiser: control and invisible characters escaped for a terminal, stripped for a log, noted for a model."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from dari.text.invisible import HiddenRun, find_hidden

_COLOUR = re.compile(r"(?:\x1b\[|\x9b)(?!(?:[\d;]*;)?0*8(?:;|m))[\d;:]*m")
_MAX_ESCAPED_CHARS = 8
"""A longer run is shown as a number: a thousand escapes are no use to a reader."""


def escape_hidden(text: str, *, one_line: bool = False) -> str:
    """The text with nothing left that a terminal obeys or does not show. Line ends and tabs stay, unless `one_line`."""
    if text.isascii() and text.isprintable():
        return text
    pieces: list[str] = []
    done = 0
    for hidden in find_hidden(text):
        pieces += (text[done : hidden.start], _visible(text, hidden))
        done = hidden.start + hidden.count
    shown = "".join((*pieces, text[done:])).replace("\r\n", "\n")
    return shown.replace("\n", "\\n").replace("\t", "\\t") if one_line else shown


class ShortenedText(NamedTuple):
    text: str
    is_truncated: bool
    left_out_chars: int


def escape_and_shorten(text: str, max_chars: int) -> ShortenedText:
    """`escape_hidden`, and of a longer text its start and its end: a failed command is read for its end, which gets
    two thirds."""
    shown = escape_hidden(text)
    if len(shown) <= max_chars:
        return ShortenedText(shown, False, 0)
    head = max_chars // 3
    tail = max_chars - head
    left_out = len(shown) - head - tail
    return ShortenedText(f"{shown[:head]}\n[… {left_out} characters left out …]\n{shown[-tail:]}", True, left_out)


def strip_hidden(text: str) -> str:
    """The text without escape sequences, and U+FFFD for every other hidden character: for what a program logs."""
    text = text.replace("\r\n", "\n")
    found = find_hidden(text)
    if not found:
        return text
    pieces: list[str] = []
    done = 0
    for hidden in found:
        pieces += (text[done : hidden.start], "" if hidden.sort == "ansi" else "\ufffd" * hidden.count)
        done = hidden.start + hidden.count
    return "".join((*pieces, text[done:]))


def sanitize_for_model(text: str) -> tuple[str, list[HiddenRun]]:
    """The text with each hidden run replaced by a note of its size, and the runs, for the audit log and for people.

    What a run spells is not in the note: to write it out would do what its author wanted.
    """
    found = find_hidden(text)
    if not found:
        return text, found
    pieces: list[str] = []
    done = 0
    for hidden in found:
        pieces += (text[done : hidden.start], _note(text, hidden))
        done = hidden.start + hidden.count
    return "".join((*pieces, text[done:])), found


def sanitize_value_for_model(value: Any) -> tuple[Any, list[HiddenRun]]:
    """Any JSON value, keys included, through `for_model`; the value itself when nothing is hidden in it."""
    found: list[HiddenRun] = []
    cleaned = _cleaned(value, found)
    return (cleaned if found else value), found


def sanitize_value_for_terminal(value: Any) -> Any:
    """Any JSON value with its texts made harmless, for printing in another form than JSON."""
    if isinstance(value, str):
        return escape_hidden(value)
    if isinstance(value, dict):
        return {
            escape_hidden(str(key), one_line=True): sanitize_value_for_terminal(each) for key, each in value.items()
        }
    if isinstance(value, list):
        return [sanitize_value_for_terminal(each) for each in value]
    return value


def _cleaned(value: Any, found: list[HiddenRun]) -> Any:
    if isinstance(value, str):
        text, here = sanitize_for_model(value)
        found += here
        return text
    if isinstance(value, dict):
        return {_cleaned(key, found): _cleaned(each, found) for key, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each, found) for each in value]
    return value


def _note(text: str, hidden: HiddenRun) -> str:
    """Colours go without a word, as programs use them all the time; "conceal" (8) is not a colour."""
    if hidden.sort == "ansi" and _COLOUR.fullmatch(text, hidden.start, hidden.start + hidden.count):
        return ""
    return f"[{hidden.count} hidden {hidden.sort} characters removed]"


def _visible(text: str, hidden: HiddenRun) -> str:
    run = text[hidden.start : hidden.start + hidden.count]
    if hidden.sort in ("ansi", "control"):
        return "".join(f"\\x{ord(each):02x}" if not each.isprintable() else each for each in run)
    if hidden.count <= _MAX_ESCAPED_CHARS:
        shown = "".join(f"<U+{ord(each):04X}>" for each in run)
    else:
        shown = f"<{hidden.count} {hidden.sort} characters>"
    # What a run spells comes from the attacker too; tags hold printable ASCII, bytes of selectors may be anything.
    return f"{shown}<spells {escape_hidden(hidden.says, one_line=True)!r}>" if hidden.says else shown
