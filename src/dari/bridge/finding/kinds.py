"""Kinds of what is done (`read`, `create` …): what a tool does, and how well it fits what a question wants."""

from __future__ import annotations

from itertools import pairwise

from dari.bridge.finding.entries import Entry
from dari.bridge.finding.lexicon import lexicon

LOOKS = frozenset(("read", "list", "search"))
"""Kinds that change nothing."""
_KIND_FITS, _KIND_NEAR, _KIND_DIFFERS = 1.25, 1.0, 0.7
_NEAR = {
    "read": ("list", "search", "convert", "run"),
    "list": ("read", "search"),
    "search": ("read", "list", "convert", "run"),
    "create": ("send", "update", "convert"),
    "update": ("create",),
    "send": ("create",),
    "run": ("create", "read"),
    "convert": ("create", "read"),
    "delete": ("stop",),
    "stop": ("delete", "update"),
}


def kinds_of(entry: Entry) -> frozenset[str]:
    """What a tool does: by the first verb of its name, else by the first word of its description.

    A word that is a noun as well (`list`, `file`) is a verb only where a name begins with it.
    """
    known, nouns = lexicon().kinds, lexicon().nouns
    verbs = [known.get(word) if word not in nouns else None for word in (*entry.name_words, "")]
    for kinds, others in pairwise(verbs):
        if kinds:
            return kinds | (others or frozenset())  # `search_and_replace` does both
    first = entry.name_words[0] if entry.name_words else ""
    return known.get(first) or known.get(entry.first_word, frozenset())


def fit(kinds: frozenset[str], wanted: frozenset[str]) -> float:
    """What the score of a tool is multiplied by."""
    if not kinds:
        return _KIND_NEAR
    if kinds & wanted:
        return _KIND_FITS
    return _KIND_NEAR if any(near in kinds for kind in wanted for near in _NEAR.get(kind, ())) else _KIND_DIFFERS
