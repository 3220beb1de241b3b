"""Regular expressions written by people and agents, searched in bounded time.

`re` backtracks and cannot be interrupted: `(x+x+)+y` on the wrong text stops a daemon for hours. The search is done by
the package `regex`, which gives up after a time limit; the syntax is that of `re`, and nothing more (`regex` alone
would read `/users/{i}` as a fuzzy match). The limit is CPU time, so a busy machine makes no search fail.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from time import perf_counter
from typing import Any, cast

from dari.errors import InvalidInput

MAX_PATTERN_CHARS = 1024
DEFAULT_SEARCH_S = 0.05
_FREE_S = 0.001
"""A quicker search does not count towards a total, so that a filter may live as long as a connection."""
_HINT = "escape . ? + ( ) [ ] with a backslash, or give plain text"
# A brace that `re` takes literally and `regex` may not; `\N{…}` and `\{` stay as they are.
_BRACE = re.compile(r"\\N\{[^}]*\}|\\.|\{(?!\d+\}|\d*,\d*\})", re.DOTALL)


class PatternTooSlow(InvalidInput):
    """A search took longer than its limit."""


class GuardedRegex:
    """One pattern. A search that exceeds `search_s`, or all searches that exceed `total_s`, raise `PatternTooSlow`."""

    __slots__ = ("pattern", "_compiled", "_left_s", "_literal", "_search_s")

    def __init__(
        self,
        pattern: str,
        *,
        ignore_case: bool = False,
        multiline: bool = False,
        max_chars: int = MAX_PATTERN_CHARS,
        search_s: float = DEFAULT_SEARCH_S,
        total_s: float | None = None,
    ) -> None:
        """InvalidInput when `re` would refuse the pattern, or it has more than `max_chars` characters."""
        if len(pattern) > max_chars:
            raise InvalidInput(f"a pattern may have {max_chars} characters, got {len(pattern)}", "shorten it")
        self.pattern = pattern
        self._search_s = search_s
        self._left_s = total_s
        self._compiled, self._literal = _compile(pattern, ignore_case, multiline)

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in the text, as an object with the methods of `re.Match`."""
        if self._literal not in text:
            return None
        if self._left_s is None:
            return self._try(text, self._search_s)
        if self._left_s <= 0:
            raise self._too_slow("all searches together took too long")
        started_s = perf_counter()
        try:
            return self._try(text, min(self._search_s, self._left_s))
        finally:
            spent_s = perf_counter() - started_s
            if spent_s > _FREE_S:
                self._left_s -= spent_s

    def sub(self, replace: Callable[[re.Match[str]], str], text: str) -> str:
        """The text with every match replaced, in the time of one search."""
        if self._literal not in text:
            return text
        try:
            return cast(str, self._compiled.sub(replace, text, timeout=self._search_s))
        except TimeoutError:
            raise self._too_slow(f"a search took more than {self._search_s:g} s of CPU time") from None

    def check_template(self, template: str) -> None:
        """InvalidInput when `match.expand(template)` would fail: an unknown group, a bad escape."""
        try:
            re.compile(self.pattern).sub(template, "")
        except (re.error, IndexError) as error:
            raise InvalidInput(
                f"the template {template!r} does not fit the pattern {self.pattern!r}: {error}",
                "refer to groups as \\1 or \\g<name>, and write a backslash as \\\\",
            ) from None

    def _try(self, text: str, timeout_s: float) -> re.Match[str] | None:
        try:
            return cast("re.Match[str] | None", self._compiled.search(text, timeout=timeout_s))
        except TimeoutError:
            raise self._too_slow(f"a search took more than {timeout_s:g} s of CPU time") from None

    def _too_slow(self, fact: str) -> PatternTooSlow:
        return PatternTooSlow(
            f"the pattern {self.pattern!r} is too slow: {fact}",
            "repeat nothing that is itself repeated: [ab]* for (a|b*)*, [^/]* for .*",
        )


def _compile(pattern: str, ignore_case: bool, multiline: bool) -> tuple[Any, str]:
    import regex  # 50 ms, and most processes never search

    try:
        parsed = importlib.import_module("re._parser").parse(pattern)
        re.compile(pattern)
        escaped = _BRACE.sub(lambda found: "\\{" if found[0] == "{" else found[0], pattern)
        flags = regex.VERSION0 | (regex.IGNORECASE if ignore_case else 0) | (regex.MULTILINE if multiline else 0)
        compiled = regex.compile(escaped, flags)
    except (re.error, regex.error, RecursionError, OverflowError) as error:
        raise InvalidInput(f"{pattern!r} must be a regular expression of Python: {error}", _HINT) from None
    folds_case = ignore_case or bool(parsed.state.flags & re.IGNORECASE) or "(?i" in pattern
    return compiled, "" if folds_case else _required_literal(parsed)


def _required_literal(parsed: Any) -> str:
    """The longest text that every match contains. To look for it costs a hundredth of a search with a time limit."""
    best = run = ""
    for operation, argument in parsed:
        if str(operation) == "LITERAL":
            run += chr(argument)
            best = max(best, run, key=len)
        elif str(operation) != "AT":
            run = ""
    return best
