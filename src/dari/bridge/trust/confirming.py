"""Which tools of a server wait for a person: the globs of `confirm`, matched once per name."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

_NAMES = 4096
"""Names remembered; a caller may ask for any."""


class ConfirmPatterns:
    """`names(tool)` is one look into a dict. Case does not matter: `*delete*` is meant for `DeleteFile` too."""

    __slots__ = ("patterns", "_match", "_known")

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        joined = "|".join(f"(?:{fnmatch.translate(pattern.lower())})" for pattern in self.patterns)
        self._match = re.compile(joined).match if joined else None
        self._known: dict[str, bool] = {}

    def names(self, tool: str) -> bool:
        if self._match is None:
            return False
        known = self._known.get(tool)
        if known is None:
            if len(self._known) >= _NAMES:
                self._known.clear()
            known = self._known[tool] = self._match(tool.lower()) is not None
        return known
