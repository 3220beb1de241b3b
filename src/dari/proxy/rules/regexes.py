"""Regular expressions that a stranger wrote, run on the event loop: bounded in size, shape and time."""

from __future__ import annotations

import importlib
import re
from time import perf_counter

from dari.errors import InvalidInput
from dari.proxy.rules.backtracking import shape_of

MAX_PATTERN_CHARS = 1000
MAX_DEGREE = 3
MAX_URL_CHARS = {0: 65536, 1: 65536, 2: 8192, 3: 2048}
"""By degree: a longer URL is searched in its first part, so that the worst search takes seconds, not days."""
SLOW_S = 0.05


class SafeRegex:
    """Searches, and stops searching for good once a search took longer than `SLOW_S`.

    `re` cannot be interrupted, so the first slow search is paid for; `slow_ms` then says what it cost.
    """

    __slots__ = ("pattern", "slow_ms", "_literal", "_max_chars", "_search")

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN_CHARS:
            raise InvalidInput(
                f"regex of {len(pattern)} characters: at most {MAX_PATTERN_CHARS} are allowed",
                "split it into several rules, or use a glob",
            )
        try:
            compiled = re.compile(pattern)
            shape = shape_of(pattern)
        except (re.error, RecursionError, OverflowError) as wrong:
            raise InvalidInput(f"invalid regex {pattern!r}: {wrong}", "escape . ? + ( ) [ ] with a backslash") from None
        if shape.is_exponential:
            raise InvalidInput(
                f"regex {pattern!r} may take exponential time: a repeat or choice stands inside a repeat",
                "write [ab]* for (a|b*)*, or use a glob",
            )
        if shape.degree > MAX_DEGREE:
            raise InvalidInput(
                f"regex {pattern!r} may take too long: {shape.degree} open repeats can trade characters",
                "start it with ^, write [^/]* for .* between slashes, or use a glob",
            )
        self.pattern = pattern
        self.slow_ms: float | None = None
        self._literal = shape.literal
        self._max_chars = MAX_URL_CHARS[shape.degree]
        self._search = compiled.search if shape.starts_anywhere else compiled.match

    def search(self, url: str) -> re.Match[str] | None:
        if self._literal not in url or self.slow_ms is not None:
            return None
        started_s = perf_counter()
        found = self._search(url[: self._max_chars])
        spent_s = perf_counter() - started_s
        if spent_s > SLOW_S:
            self.slow_ms = round(spent_s * 1000, 1)
        return found

    def checked_template(self, template: str) -> None:
        """Refuse a destination that names a group the expression does not have."""
        try:
            importlib.import_module("re._parser").parse_template(template, re.compile(self.pattern))
        except (re.error, IndexError) as wrong:
            raise InvalidInput(
                f"destination {template!r} does not fit the regex {self.pattern!r}: {wrong}",
                "refer to groups as \\1 or \\g<name>, and write a backslash as \\\\",
            ) from None
