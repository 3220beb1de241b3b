"""Output of a pane as a model may read it: rendered text, nothing hidden, bounded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

LONGEST_CHARS = 200_000

# C0 but tab and newline, DEL, C1; the rest (bidi, zero-width, tags) is what `clean` shows.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Cleaned:
    text: str
    is_truncated: bool
    left_out_chars: int


def clean_output(text: str, clean: Callable[[str], str], longest_chars: int = LONGEST_CHARS) -> Cleaned:
    """Controls are shown as `\\x1b`, then `clean` shows what else hides; a text too long keeps its start and its end.

    The end is what a failed command is read for, so it gets two thirds.
    """
    shown = clean(_CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text.replace("\r\n", "\n")))
    if len(shown) <= longest_chars:
        return Cleaned(shown, False, 0)
    head = longest_chars // 3
    tail = longest_chars - head
    left_out = len(shown) - head - tail
    return Cleaned(f"{shown[:head]}\n[… {left_out} characters left out …]\n{shown[-tail:]}", True, left_out)
