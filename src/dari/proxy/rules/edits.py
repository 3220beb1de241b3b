"""Header edits in the order of their rules, folded into one step: remove, then replace, then add."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dari.proxy.rules.rule import HeaderEdit

Pairs = tuple[tuple[bytes, bytes], ...]


class FoldedEdits(NamedTuple):
    """`replace` puts one header in the place of all of that name, or adds it. A name is in `remove` or `replace`."""

    remove: tuple[bytes, ...] = ()
    replace: Pairs = ()
    add: Pairs = ()


def fold(edits: Iterable[HeaderEdit]) -> FoldedEdits:
    """The same outcome as applying them one after the other, whatever headers there are."""
    cleared: dict[str, bool] = {}
    values: dict[str, list[tuple[bytes, bytes]]] = {}
    for edit in edits:
        key = edit.name.lower()
        mine = values.setdefault(key, [])
        cleared[key] = cleared.get(key, False) or edit.action != "add"
        if edit.action != "add":
            mine.clear()
        if edit.action != "remove":
            mine.append((edit.name.encode("latin-1"), edit.value.encode("latin-1")))
    remove = tuple(key.encode("latin-1") for key, gone in cleared.items() if gone and not values[key])
    replace = tuple(values[key][0] for key, gone in cleared.items() if gone and values[key])
    add = tuple(pair for key, gone in cleared.items() for pair in values[key][1 if gone else 0 :])
    return FoldedEdits(remove, replace, add)
