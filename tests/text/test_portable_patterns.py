"""Regular expressions mean the same on every Python that we run on."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

from tests.support.wire import ROOT

# Below 3.11.5 a possessive repeat of a group keeps what its last, failed round matched (CPython gh-106052): Debian's
# 3.11.2 read the cell `CONTAINER ID ` with the blank. A possessive repeat of one character is fine everywhere.
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+|\(\?>")


def test_no_pattern_repeats_a_group_possessively() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{token.start[0]}: {token.string}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for token in _strings(path)
        if POSSESSIVE_GROUP.search(token.string)
    ]
    assert found == []


def _strings(path: Path) -> list[tokenize.TokenInfo]:
    with path.open("rb") as file:
        return [token for token in tokenize.tokenize(file.readline) if token.type == tokenize.STRING]
