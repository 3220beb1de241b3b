"""Which item that is gone a new one seems to have been; told to the person who decides, never decided upon."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice

from dari.bridge.trust.items import ListedItem
from dari.bridge.trust.pin_store import Pin

MIN_SIMILARITY = 0.6
MAX_CANDIDATES = 20
"""A new item is compared with so many that are gone."""
MAX_COMPARISONS = 60
"""In one review: a comparison costs up to 2.5 ms, and a server may replace two thousand tools at once."""
_WORDS = 150
_TEXT_BYTES = 16 * 1024


class RenameFinder:
    """The comparisons of one review."""

    def __init__(self, content_of: Callable[[str], bytes | None]) -> None:
        self._content_of = content_of
        self._left = MAX_COMPARISONS
        self._words: dict[str, list[str]] = {}

    def former_name(self, item: ListedItem, gone: Iterable[Pin]) -> str:
        """The name of the most similar one, or empty."""
        best, score = "", MIN_SIMILARITY
        if self._left <= 0:
            return best
        from difflib import SequenceMatcher

        new = _words(item.content)
        for pin in islice(gone, min(MAX_CANDIDATES, self._left)):
            self._left -= 1
            matcher = SequenceMatcher(None, self._of(pin.digest), new, autojunk=False)
            if matcher.real_quick_ratio() <= score or matcher.quick_ratio() <= score:
                continue
            if (ratio := matcher.ratio()) > score:
                best, score = pin.name, ratio
        return best

    def _of(self, digest: str) -> list[str]:
        words = self._words.get(digest)
        if words is None:
            words = self._words[digest] = _words(self._content_of(digest) or b"")
        return words


def _words(content: bytes) -> list[str]:
    return re.findall(r"\w+", content[:_TEXT_BYTES].decode(errors="replace"))[:_WORDS]
