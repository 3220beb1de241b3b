"""The regular expression of a rule, searched on the event loop in every request that its host index lets through."""

from __future__ import annotations

import re

from dari.text.regex import DEFAULT_SEARCH_S, GuardedRegex, PatternTooSlow

MAX_PATTERN_CHARS = 1000


class SafeRegex:
    """Searches, and stops searching for good once a search exceeded its time limit; `slow_ms` is then that limit."""

    __slots__ = ("slow_ms", "_guarded")

    def __init__(self, pattern: str) -> None:
        self.slow_ms: float | None = None
        self._guarded = GuardedRegex(pattern, max_chars=MAX_PATTERN_CHARS)

    @property
    def pattern(self) -> str:
        return self._guarded.pattern

    def search(self, url: str) -> re.Match[str] | None:
        if self.slow_ms is not None:
            return None
        try:
            return self._guarded.search(url)
        except PatternTooSlow:
            self.slow_ms = DEFAULT_SEARCH_S * 1000
            return None

    def check_template(self, template: str) -> None:
        """InvalidInput for a destination that names a group the expression does not have."""
        self._guarded.check_template(template)
