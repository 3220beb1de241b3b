"""What a call asks for, in the terms of panes: sizes, ranges of rows, keys, orientation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dari.errors import InvalidInput
from dari.terminal.engine.keys import Key, parse_key, type_text
from dari.terminal.layout.cells import Orientation
from dari.terminal.tmux.command_line import TmuxCall, read_number

MAX_SENT_CHARS = 1 << 20


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """`split-window` as asked: `size` in cells, or None for half; `command` as words (one: a shell text)."""

    target: str | None
    orientation: Orientation
    size: int | None
    is_before: bool
    is_full: bool
    is_focused: bool
    cwd: str | None
    environment: tuple[tuple[str, str], ...]
    format: str | None
    command: tuple[str, ...]


def split_request(call: TmuxCall, cols: int, rows: int) -> SplitRequest:
    """Read `split-window`; `cols` and `rows` are those of the pane (of the window with `-f`)."""
    orientation: Orientation = "horizontal" if call.has("h") else "vertical"
    whole = cols if orientation == "horizontal" else rows
    size: int | None = None
    if (text := call.get("l")) is not None:
        size = parse_size(text, whole)
    elif (percent := call.get("p")) is not None:
        size = parse_size(percent + "%", whole)
    return SplitRequest(
        target=call.get("t"),
        orientation=orientation,
        size=size,
        is_before=call.has("b"),
        is_full=call.has("f"),
        is_focused=not call.has("d"),
        cwd=call.get("c"),
        environment=parse_environment(call),
        format=(call.get("F") or "") if call.has("P") and call.has("F") else ("" if call.has("P") else None),
        command=call.words,
    )


def parse_environment(call: TmuxCall) -> tuple[tuple[str, str], ...]:
    """The `-e NAME=value` flags."""
    pairs = (text.partition("=") for text in call.flags.get("e", ()))
    return tuple((name, value) for name, sign, value in pairs if sign)


def parse_size(text: str, whole: int) -> int:
    """Cells from `20` or `70%` of `whole`."""
    match = re.fullmatch(r"(\d{1,9})(%?)", text.strip())
    if match is None:
        raise InvalidInput(f"size invalid: {text}", "write cells such as 20, or a share such as 70%")
    number = int(match[1])
    if match[2]:
        if number > 100:
            raise InvalidInput(f"size too large: {text}", "a share is at most 100%")
        return whole * number // 100
    return number


def capture_range(call: TmuxCall, history: int, rows: int) -> tuple[int, int]:
    """First and last row of `capture-pane`: 0 is the top of the screen, negative numbers are history, both included."""
    start = _row(call.get("S"), 0, -history, history, rows)
    end = _row(call.get("E"), rows - 1, rows - 1, history, rows)
    return (start, end) if start <= end else (end, start)


def _row(text: str | None, missing: int, dash: int, history: int, rows: int) -> int:
    if text == "-":
        return dash
    if text is None or not re.fullmatch(r"-?\d{1,9}", text):
        return missing
    return max(-history, min(int(text), rows - 1))


def keys_of(call: TmuxCall) -> list[Key | str]:
    """What `send-keys` sends, in order: keys, or text that is sent as it is."""
    repeat = call.get("N")
    times = 1 if repeat is None else read_number(repeat, "repeat count", 1, 10_000)
    if times * sum(map(len, call.words)) > MAX_SENT_CHARS:
        raise InvalidInput(f"at most {MAX_SENT_CHARS} characters may be sent at once", "send less at a time")
    sent: list[Key | str] = []
    for word in call.words:
        sent += _sent(word, call)
    return sent * times


def _sent(word: str, call: TmuxCall) -> Sequence[Key | str]:
    if call.has("H"):
        if not re.fullmatch(r"[0-9A-Fa-f]{1,2}", word):
            raise InvalidInput(f"a byte must have two hexadecimal digits, got {word!r}", "write for example 0d")
        return [chr(int(word, 16))]
    if call.has("l"):
        return [word]
    if len(word) == 1 or not _is_key(word):
        return list(type_text(word)) if len(word) == 1 and not word.isprintable() else [word]
    return [parse_key(word)]


# tmux knows a key only in these spellings; every other word is text, `enter please` as well as `ctrl-c`.
_KEY = re.compile(
    r"(?:[CMS]-|\^)*(?:F\d{1,2}|IC|Insert|DC|Delete|Home|End|NPage|PageDown|PgDn|PPage|PageUp|PgUp|Tab|BTab|Space|"
    r"BSpace|Enter|Escape|Up|Down|Left|Right|KP[/*\-+.0-9]|KPEnter|.)",
    re.IGNORECASE,
)


def _is_key(word: str) -> bool:
    return _KEY.fullmatch(word) is not None
