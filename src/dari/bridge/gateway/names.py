"""Names that every client and every model takes, told apart by their server, the same in every run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Literal

MAX_NAME_CHARS = 64
_HASH_CHARS = 8
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
Naming = Literal["prefixed", "plain", "verbatim"]
"""With the server in front, without it, or exactly as the server says (where there is only one)."""


def fit(name: str) -> str:
    """The name with letters, digits, `_` and `-` only; one that is too long ends with a hash of the whole."""
    fitted = _FOREIGN.sub("_", name) or "_"
    return fitted if len(fitted) <= MAX_NAME_CHARS else _hashed(name)


def expose(
    server: str, names: Iterable[str], taken: Iterable[str], *, separator: str, naming: Naming
) -> dict[str, str]:
    """Original name → the one to show. A name that is taken, or that two share once fitted, gets a hash.

    Names that fit as they are come first, so that no other one can take their place.
    """
    if naming == "verbatim":
        return {name: name for name in names}
    used = set(taken)
    wanted = {name: f"{server}{separator}{name}" if naming == "prefixed" else name for name in names}
    exposed: dict[str, str] = {}
    for name in sorted(wanted, key=lambda one: fit(wanted[one]) != wanted[one]):
        full = f"{server}{separator}{name}"
        shown = next((one for one in (fit(wanted[name]), fit(full)) if one not in used), None) or _hashed(full)
        used.add(shown)
        exposed[name] = shown
    return {name: exposed[name] for name in wanted}


def _hashed(name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{_FOREIGN.sub('_', name)[: MAX_NAME_CHARS - _HASH_CHARS - 1]}_{digest}"
