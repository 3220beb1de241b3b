"""The arguments of a call that waits for a person, without secrets, and with all that the call would do.

A redactor that hides a little too much is right for a log. Here it would decide for the person: `password="; rm -rf ~"`
and all that follows `-----BEGIN PRIVATE KEY` would be behind `<redacted>`, and an agent chooses its words. So what a
shell could obey is never hidden: of such a text only runs that look like keys are.
"""

from __future__ import annotations

import re
from typing import Any

from dari.text.redact import redact_secrets
from dari.text.redact.patterns import MARK

_OBEYED = re.compile(r"[;|&<>()`$\\\r\n\x0b\x0c\x85\u2028\u2029]|[\"']|\s\S+\s")
"""What separates, quotes or runs commands, and more than two words: `Bearer x` has two."""
_KEY_RUN = re.compile(r"(?=[\w+=-]*\d)(?=[\w+=-]*[A-Za-z])[\w+=-]{24,}", re.ASCII)


def redact_proposal(value: object) -> object:
    """The very object when there is no secret in it."""
    redacted = redact_secrets(value)
    return value if redacted is value else _shown(value, redacted)


def _shown(value: Any, redacted: Any) -> Any:
    if isinstance(value, str):
        return value if redacted == value else _lay_bare(value, redacted if isinstance(redacted, str) else MARK)
    if isinstance(value, dict):
        hidden = list(redacted.items()) if isinstance(redacted, dict) and len(redacted) == len(value) else None
        pairs = [(name, MARK) for name in value] if hidden is None else hidden
        return {
            (name if _OBEYED.search(name) else shown): _shown(each, after)
            for (name, each), (shown, after) in zip(value.items(), pairs, strict=True)
        }
    if isinstance(value, list):
        is_alike = isinstance(redacted, list) and len(redacted) == len(value)
        after = redacted if is_alike else [MARK] * len(value)
        return [_shown(each, shown) for each, shown in zip(value, after, strict=True)]
    return redacted


def _lay_bare(text: str, redacted: str) -> str:
    """The redacted text, with the hidden parts that could be obeyed shown again, but for what looks like a key."""
    pieces = redacted.split(MARK)
    shown: list[str] = [pieces[0]]
    at = len(pieces[0])
    is_aligned = text.startswith(pieces[0])
    for number, piece in enumerate(pieces[1:], 1):
        is_last = number == len(pieces) - 1
        end = len(text) - len(piece) if is_last and text.endswith(piece) else text.find(piece, at)
        if not is_aligned or end < at or (is_last and end + len(piece) != len(text)):
            return _without_keys(text) if _OBEYED.search(text) else redacted
        shown += [_hide(text[at:end]), piece]
        at = end + len(piece)
    return "".join(shown)


def _hide(hidden: str) -> str:
    quote = hidden[:1] if hidden[:1] in ("'", '"') and hidden[-1:] == hidden[:1] and len(hidden) > 1 else ""
    inner = hidden[len(quote) : len(hidden) - len(quote)]
    return f"{quote}{_without_keys(inner)}{quote}" if _OBEYED.search(inner) else MARK


def _without_keys(text: str) -> str:
    return _KEY_RUN.sub(MARK, text)
