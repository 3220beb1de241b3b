"""What hides secrets in everything an agent reads. What is stored or replayed never passes through it."""

from __future__ import annotations

from typing import Protocol

from dari.proxy.flow import Headers
from dari.text import redact


class Redactor(Protocol):
    """`dari.text.redact` has the real one."""

    def headers(self, headers: Headers) -> Headers: ...

    def url(self, url: str) -> str: ...

    def body(self, text: str, mime: str) -> str: ...


class Revealed:
    """Hides nothing: for a person who asked for it, and for tests."""

    def headers(self, headers: Headers) -> Headers:
        return headers

    def url(self, url: str) -> str:
        return url

    def body(self, text: str, mime: str) -> str:
        return text


REVEALED = Revealed()
HIDING: Redactor = redact.Redactor()
"""What every reader gets who does not ask for the originals."""
