"""One verdict over a name with its value: both say something, and only together they tell a count from a secret."""

from __future__ import annotations

import re

from dari.redaction.names import Sensitivity, sensitivity
from dari.redaction.shapes import MARK, is_opaque

_TELLS_NOTHING = frozenset({"", MARK, "true", "false", "null", "none", "undefined", "yes", "no", "nil", "*", "..."})
_NUMBER = re.compile(r"-?\d{1,10}(?:\.\d{1,10})?")


def is_secret(name: str, value: str, *, in_query: bool = False) -> bool:
    """Has this value to be hidden? Flags and empty values tell nothing, and stay."""
    level = sensitivity(name, in_query=in_query)
    if level is Sensitivity.HARMLESS:
        return False
    plain = value.strip(" \t\"'\\;,").lower() if len(value) < 200 else value
    if plain in _TELLS_NOTHING:
        return False
    if level is Sensitivity.SUSPICIOUS:
        return is_opaque(value.strip(" \t\\"), name)
    if level is Sensitivity.UNLESS_COUNT:
        return _NUMBER.fullmatch(plain) is None
    return True
