"""Secrets: `Secret` hides a value inside a structure, `Mask` removes known values from any text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

SECRET_MARK = "<secret>"
MIN_SECRET_CHARS = 4
"""Shorter values are everyday words: masking "1" would make every log unreadable and protect nothing."""

_SENSITIVE = re.compile(
    r"key|token|secret|passw|pwd|auth|credential|cookie|session|signature|bearer|dsn|jwt|pat$", re.I
)
_REFERENCE = re.compile(r"\$\{[^{}]*\}")


class Secret:
    """Text that shows itself only to `reveal()`: not to str, repr, format, a log line or a JSON encoder."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    @property
    def shown(self) -> str:
        """What may be printed: references as they stand (`Bearer ${KEY}`), the rest masked."""
        rest = _REFERENCE.sub("", self._text).strip()
        if rest.lower() in ("", "bearer", "basic", "token"):
            # A default (`${KEY:-abc}`) is written in the file, so it can be a secret as well.
            return re.sub(r":-[^}]*\}", f":-{SECRET_MARK}}}", self._text)
        return SECRET_MARK

    def __repr__(self) -> str:
        return SECRET_MARK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(SECRET_MARK, spec)

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __bool__(self) -> bool:
        return bool(self._text)

    def __reduce__(self) -> str:
        raise TypeError("a Secret cannot be pickled")


def is_sensitive(name: str) -> bool:
    """Does a variable, header or argument of this name hold a secret?"""
    return bool(_SENSITIVE.search(name))


class Mask:
    """Takes known secrets out of text, also where they stand JSON-escaped or percent-encoded."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = tuple(values)
        values = self._values
        forms = {form for value in values if len(value) >= MIN_SECRET_CHARS for form in _forms(value)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def with_more(self, values: Iterable[str]) -> Mask:
        return Mask((*self._values, *values))

    def __call__(self, text: str) -> str:
        return self._pattern.sub(SECRET_MARK, text) if self._pattern else text

    def __repr__(self) -> str:
        return "Mask()"


def _forms(value: str) -> tuple[str, ...]:
    return value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe="")
