"""What the store reads out of raw headers."""

from __future__ import annotations

from dari.proxy.flow import Headers


def value(headers: Headers, name: bytes) -> str | None:
    """The first header of this lower-case name, as text."""
    for key, content in headers:
        if len(key) == len(name) and key.lower() == name:
            return text(content)
    return None


def text(raw: bytes) -> str:
    """UTF-8 where it is UTF-8; Latin-1 never fails, and is what HTTP/1.1 once said."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def lines(headers: Headers) -> str:
    """`name: value` lines, as the log records of design 000 hold them."""
    return "".join(f"{text(key)}: {text(content)}\n" for key, content in headers)


def mime(headers: Headers) -> str:
    """The media type in lower case without its parameters; empty when there is none."""
    return (value(headers, b"content-type") or "").partition(";")[0].strip().lower()


def charset(headers: Headers) -> str | None:
    """The charset that Content-Type names."""
    for part in (value(headers, b"content-type") or "").split(";")[1:]:
        key, _, content = part.partition("=")
        if key.strip().lower() == "charset":
            return content.strip().strip("\"'") or None
    return None


def codec(charset: str) -> str | None:
    """The Python codec for a charset that a peer named, if it is one for text and its time grows with the text.

    Python knows more names: `zlib` and `rot13` make no text, `punycode` needs 20 s for 8,000 characters.
    """
    try:
        b"a".decode(charset, "replace")
    except (LookupError, ValueError):
        return None
    return None if charset.lower().replace("-", "_").replace(" ", "_") in _NO_CHARSETS else charset.lower()


_NO_CHARSETS = frozenset(("idna", "punycode", "unicode_escape", "raw_unicode_escape"))


def codings(headers: Headers) -> list[str]:
    """The content codings in the order in which they were applied."""
    found: list[str] = []
    for key, content in headers:
        if key.lower() == b"content-encoding":
            found += [one.strip().lower() for one in text(content).split(",")]
    return [one for one in found if one and one != "identity"]
