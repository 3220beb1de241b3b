"""Output of panes as a model reads it: nothing hidden, no more than it asked for, a note where something lacks."""

from __future__ import annotations

import re

from dari.errors import InvalidInput
from dari.terminal.policy.cleaning import Cleaned, clean_output
from dari.text.sanitize import escape_hidden

CHARS_PER_TOKEN = 4
MAX_TOKENS = 10_000
MOST_TOKENS = 100_000
_SGR = re.compile(r"(\x1b\[[\d;:]*m)")


def shown(text: str, max_tokens: int = MAX_TOKENS) -> Cleaned:
    """The text with what hides made visible, cut to about so many tokens; its start and its end stay."""
    return clean_output(text, escape_hidden, _budget(max_tokens))


def shown_formatted(text: str, max_tokens: int = MAX_TOKENS) -> Cleaned:
    """The same for text whose colours are wanted: SGR sequences stay, everything else is made visible.

    The end counts: what is left out is the beginning, at a line end.
    """
    budget = _budget(max_tokens)
    left_out = 0
    if len(text) > budget:
        cut = text.find("\n", len(text) - budget) + 1
        left_out, text = cut, text[cut:]
    parts = _SGR.split(text)
    pieces = [part if at % 2 else escape_hidden(part) for at, part in enumerate(parts)]
    return Cleaned("".join(pieces), left_out > 0, left_out)


def fitting_lines(text: str, max_tokens: int = MAX_TOKENS) -> tuple[str, int]:
    """As many whole lines from the start as fit, with what hides made visible, and how many they are.

    A line that does not fit alone is cut, so that a reader who asks line by line comes to an end.
    """
    budget = _budget(max_tokens)
    taken: list[str] = []
    size = 0
    for line in escape_hidden(text).split("\n"):
        size += len(line) + 1
        if taken and size > budget:
            break
        taken.append(line if len(line) <= budget else f"{line[:budget]}[… {len(line) - budget} characters left out]")
    return "\n".join(taken), len(taken)


def _budget(max_tokens: int) -> int:
    if not 1 <= max_tokens <= MOST_TOKENS:
        raise InvalidInput(f"{max_tokens} is no number of tokens", f"give 1…{MOST_TOKENS}")
    return max_tokens * CHARS_PER_TOKEN
