"""Edit distance, trigrams, and suggestions for a misspelled name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

MAX_NAME_CHARS = 200
"""A caller may send a name of megabytes, and what is made of names is remembered."""


def edit_distance(left: str, right: str, limit: int) -> int:
    """Letters to insert, delete, replace or swap; `limit + 1` as soon as it must be more."""
    if left == right:
        return 0
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for at, letter in enumerate(left, 1):
        two_before, before, row = before, row, [at]
        for to, other in enumerate(right, 1):
            cost = before[to - 1] + (letter != other)
            if before[to] + 1 < cost:
                cost = before[to] + 1
            if row[to - 1] + 1 < cost:
                cost = row[to - 1] + 1
            if (
                at > 1
                and to > 1
                and letter == right[to - 2]
                and left[at - 2] == other
                and two_before[to - 2] + 1 < cost
            ):
                cost = two_before[to - 2] + 1
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


def trigrams(word: str) -> frozenset[str]:
    """Every three letters in a row, with the ends marked."""
    padded = f"^{word}$"
    return frozenset(padded[at : at + 3] for at in range(max(1, len(padded) - 2)))


def nearest_names(name: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """Names that `name` may be a slip of, best first; case and separators do not count."""
    wanted = _plain(name[:MAX_NAME_CHARS])
    grams = _grams(wanted)
    likely: list[tuple[float, str, str]] = []
    for candidate in names:
        plain = _plain(candidate)
        other = _grams(plain)
        shared = len(grams & other)
        # A name without its server ("read_file" for "fs__read_file") shares all of its own trigrams but the first.
        alike = shared / min(len(grams), len(other)) * 0.5 + shared / len(grams | other) * 0.5
        if alike > 0.2 or (abs(len(plain) - len(wanted)) <= 2 and len(wanted) <= 5):
            likely.append((-alike, candidate, plain))
    scored: list[tuple[float, str]] = []
    for alike, candidate, plain in sorted(likely)[:50]:
        apart = edit_distance(wanted, plain, max(2, len(wanted) // 3))
        if apart <= max(1, len(wanted) // 4) or plain.endswith(wanted) or alike < -0.5:
            scored.append((apart + alike * 4, candidate))
    return [candidate for _, candidate in sorted(scored)[:limit]]


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


@lru_cache(maxsize=4096)
def _grams(plain: str) -> frozenset[str]:
    return trigrams(plain)
