"""What is left of a matcher once scheme and authority are known: a condition on path and query.

Every prefix matcher becomes a prefix of the target, so that a hundred rules cost as much as one. A regular expression
is searched on the event loop, in every request that the site index lets through.
"""

from __future__ import annotations

import re
from typing import Protocol

from dari.proxy.rules.site import Site
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


class Condition(Protocol):
    """`prefix` is a necessary start of the target (cheap, for filters); `holds` is the exact answer."""

    prefix: str

    @property
    def covers_all(self) -> bool:
        """Does it hold for every target of the site?"""
        ...

    def holds(self, target: str) -> bool: ...

    def mapped(self, destination: str, target: str) -> str:
        """The destination followed by what the matcher left over; only asked when the condition holds."""
        ...


class PrefixCondition:
    """The target starts with `prefix`; `rest` is what a short authority matcher left of the authority."""

    __slots__ = ("prefix", "_rest")

    def __init__(self, prefix: str = "", rest: str = "") -> None:
        self.prefix = prefix
        self._rest = rest

    @property
    def covers_all(self) -> bool:
        return self.prefix in {"", "/"}

    def holds(self, target: str) -> bool:
        return target.startswith(self.prefix)

    def mapped(self, destination: str, target: str) -> str:
        return destination + self._rest + target[len(self.prefix) :]


class CaselessPrefixCondition:
    """Allow rules of the form `host/path` ignore case in the path too."""

    __slots__ = ("prefix", "_folded")

    def __init__(self, folded: str) -> None:
        self.prefix = ""
        self._folded = folded

    @property
    def covers_all(self) -> bool:
        return self._folded == "/"

    def holds(self, target: str) -> bool:
        return target[: len(self._folded)].lower() == self._folded

    def mapped(self, destination: str, target: str) -> str:
        return destination + target[len(self._folded) :]


class GlobCondition:
    """Pieces between `*` found in order, the first at the start, the last at the end: linear, unlike a regex."""

    __slots__ = ("prefix", "_middle", "_tail")

    def __init__(self, pattern: str) -> None:
        self.prefix, *rest = pattern.split("*")
        self._tail = rest.pop() if rest else None
        self._middle = tuple(filter(None, rest))

    @property
    def covers_all(self) -> bool:
        return self.prefix in {"", "/"} and not self._middle and self._tail == ""

    def holds(self, target: str) -> bool:
        return self._end(target) is not None

    def mapped(self, destination: str, target: str) -> str:
        """What a final `*` stood for follows the destination, as with a prefix."""
        return destination + (target[self._end(target) :] if self._tail == "" else "")

    def _end(self, target: str) -> int | None:
        """Where the part before the last `*` ends; None if the glob does not match."""
        if self._tail is None:
            return len(target) if target == self.prefix else None
        if not target.startswith(self.prefix):
            return None
        at = len(self.prefix)
        for piece in self._middle:
            found = target.find(piece, at)
            if found < 0:
                return None
            at = found + len(piece)
        return at if len(target) - len(self._tail) >= at and target.endswith(self._tail) else None


class RegexCondition:
    """A regular expression over the whole URL."""

    __slots__ = ("prefix", "_regex", "_site")

    def __init__(self, regex: SafeRegex, site: Site) -> None:
        self.prefix = ""
        self._regex = regex
        self._site = f"{site.scheme}://{site.authority}"

    @property
    def covers_all(self) -> bool:
        return False

    def holds(self, target: str) -> bool:
        return self._regex.search(self._site + target) is not None

    def mapped(self, destination: str, target: str) -> str:
        """Groups (`\\1`) are filled into the destination; what follows the match is kept."""
        url = self._site + target
        found = self._regex.search(url)
        return destination if found is None else found.expand(destination) + url[found.end() :]
