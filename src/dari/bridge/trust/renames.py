"""Which item that is gone a new one seems to have been; told to the person who decides, never decided upon."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from dari.bridge.trust.items import Item
from dari.bridge.trust.pin_store import Pin

ALIKE = 0.6
COMPARED = 20
"""A server that replaces a hundred tools at once is not looked at pair by pair: a comparison costs about 1 ms."""
_WORDS = 300


def likely_former_name(item: Item, gone: Iterable[Pin], content_of: Callable[[str], bytes | None]) -> str:
    """The name of the most similar one, or empty."""
    from difflib import SequenceMatcher

    best, score = "", ALIKE
    new = _words(item.content)
    for pin in list(gone)[:COMPARED]:
        old = _words(content_of(pin.digest) or b"")
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        if matcher.real_quick_ratio() > score and matcher.quick_ratio() > score and (ratio := matcher.ratio()) > score:
            best, score = pin.name, ratio
    return best


def _words(content: bytes) -> list[str]:
    return re.findall(r"\w+", content.decode(errors="replace"))[:_WORDS]
