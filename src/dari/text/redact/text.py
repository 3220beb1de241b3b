"""Secrets taken out of text. Nothing of a secret stays, not even its length.

By name (headers, query, forms, JSON, XML, options, `name: value` lines) and by shape (tokens, keys, JWT, cards). It
works on text, not on parsed documents, because what is shown is often a sample that ends in the middle. Replay uses
the originals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from threading import Lock
from typing import NamedTuple
from urllib.parse import quote, unquote

from dari.text.redact.documents import hide_json, hide_markup
from dari.text.redact.names import is_secret, is_secret_name
from dari.text.redact.patterns import MARK, compiled, hide_patterns, may_match_pattern

Headers = list[tuple[bytes, bytes]]

MAX_CHARS = 256 * 1024
"""About 0.1 s of work at worst, and ten times what an agent is shown of one body."""
MAX_WHOLE_CHARS = 2 * 1024 * 1024
"""Of one body that somebody asks for: about two seconds."""
OVERLAP_CHARS = 4096
"""Read beyond a cut, so that a secret on the edge is seen whole."""
_ROUNDS = 4
"""Taking one secret out can lay another one bare; two rounds are usual, the rest is a stop."""
_MIN_SECRET_CHARS = 8
_MAX_REMEMBERED_CHARS = 32 * 1024
_MIN_CLEAN_CHARS = 256
_MAX_CLEAN_CHARS = 8 * 1024 * 1024
_MAX_NESTED_CHARS = 16 * 1024

_FIELD = r"(?:\A|(?<=[?&#]))([^=&?#\s]{1,200}+)=([^&#]+)"
# Read from the sign on, and the name backwards from there: a pattern that begins with a name tries every character.
_ASSIGNED = r"""=("[^"\r\n]*"?|'[^'\r\n]*'?|[^\s&"'<>=][^\s&"'<>]*)"""
_NAMED_VALUE = r"""(?::|=>)([ \t]{0,20}+)(?:(\\{0,15}["'])|([^\s,;"'<>{}()\[\]\\|]+))"""
_NAME_BACKWARDS = re.compile(r"[\w.%\[\]+-]{1,100}")
_KEY_BACKWARDS = re.compile(r"\s{0,5}('?)([\w$.-]{1,60})(?![\w$.-])\1")
_LINE_BACKWARDS = re.compile(r"(?: ?[-<>*|#])?[ \t]{0,40}(?:[\r\n]|\Z)")
_PART = r'name="?([^"\r\n;]{1,100})"?[^\r\n]{0,200}\r?\n(?:[^\r\n]{1,200}\r?\n){0,3}\r?\n([^\r\n]+)'
_OPTION = r"""--(?<![\w-]--)([A-Za-z][\w-]{1,60}+)(?:[ \t]+|["']\s*,\s*["'])(?![-<])([^\s"',\]]+)"""
_LINE_END = re.compile(r"[\r\n]")
_USER_OPTION = r"""-(?<!\S-)(?:u|-user|-proxy-user)(?:[ \t=]+["']?|["']\s*,\s*["'])([^\s"':,]+:[^\s"']+)"""
_PROSE = frozenset({"and", "as", "flag", "for", "from", "if", "in", "instead", "is", "must", "on", "option", "or"}) | {
    *("requires", "to", "was", "with", "the", "a", "an", "when", "does", "not", "needs", "are", "should", "can"),
}
"""After an option's name these belong to a sentence, not to a command."""


class Redacted(NamedTuple):
    """`found` is how many secrets were taken out."""

    text: str
    found: int


class RedactedHeaders(NamedTuple):
    headers: list[tuple[str, str]]
    found: int


def redact_headers(headers: Iterable[tuple[bytes, bytes]]) -> RedactedHeaders:
    """In the order of the wire. Values of secret headers go whole; others are searched for secrets."""
    shown: list[tuple[str, str]] = []
    total = 0
    for raw_name, raw_value in headers:
        name, value = _decoded(raw_name), _decoded(raw_value)
        text, count = _redact_short(name, value) if len(value) < 1024 else _redact_header(name, value)
        shown.append((name, text))
        total += count
    return RedactedHeaders(shown, total)


def redact_url(url: str) -> Redacted:
    """Query and fragment by name, userinfo, and secrets by shape anywhere."""
    return _redacted(url, (_by_field, hide_patterns))


def redact_body(body: bytes | str, content_type: str = "", max_chars: int = MAX_CHARS) -> Redacted:
    """A decoded body (no gzip). What exceeds `max_chars` is cut off, never passed on unread."""
    text = body if isinstance(body, str) else bytes(body[: (max_chars + OVERLAP_CHARS) * 4]).decode(errors="replace")
    is_form = content_type.lower().strip().startswith("application/x-www-form-urlencoded")
    return _redacted(text, (_by_field if is_form else _by_name, hide_patterns), max_chars)


def redact_text(text: str) -> Redacted:
    """Any text: JSON, XML, multipart, logs, WebSocket messages."""
    return _redacted(text, (_by_name, hide_patterns))


def is_surely_clean(text: str) -> bool:
    """Would `redact_text` surely give this text back? It asks for signs only, in a tenth of the time."""
    if "=" in text or ":" in text:
        return False
    if len(text) < _MIN_SECRET_CHARS:
        return True
    if ">" in text or "[" in text or "--" in text or "-u " in text or len(text) > MAX_CHARS:
        return False
    return not may_match_pattern(text)


class Redactor:
    """The functions above for a reader who wants no counts and headers as bytes; `found` adds up."""

    def __init__(self) -> None:
        self.found = 0

    def headers(self, headers: Headers) -> Headers:
        shown, found = redact_headers(headers)
        self.found += found
        if not found:
            return headers
        return [(name, _encoded(text, value)) for (name, value), (_, text) in zip(headers, shown, strict=True)]

    def url(self, url: str) -> str:
        return self._counted(redact_url(url))

    def body(self, text: str, mime: str) -> str:
        """Remembered: a page of traffic is asked for again and again, and shows the same bodies in several places."""
        return self._counted(redact_body(text, mime) if len(text) > _MAX_REMEMBERED_CHARS else _remembered(text, mime))

    def whole_body(self, text: str, mime: str) -> str:
        """The same, cut after `MAX_WHOLE_CHARS` only: for one body, not for each of many."""
        if len(text) <= MAX_CHARS:
            return self.body(text, mime)
        return self._counted(redact_body(text, mime, MAX_WHOLE_CHARS))

    def _counted(self, redacted: Redacted) -> str:
        self.found += redacted.found
        _CLEAN.add(redacted.text)
        return redacted.text


class Revealed(Redactor):
    """Hides nothing: for a person who asked for the originals, and for what is stored or sent again."""

    def headers(self, headers: Headers) -> Headers:
        return headers

    def url(self, url: str) -> str:
        return url

    def body(self, text: str, mime: str) -> str:
        return text

    def whole_body(self, text: str, mime: str) -> str:
        return text


HIDING = Redactor()
"""What every reader gets who does not ask for the originals."""
REVEALED = Revealed()


@lru_cache(maxsize=256)
def _remembered(text: str, mime: str) -> Redacted:
    return redact_body(text, mime)


class _CleanTexts:
    """Texts that a redactor gave out lately. The gate meets the same text a moment later and need not search it."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._chars = 0
        self._lock = Lock()

    def __contains__(self, text: str) -> bool:
        return text in self._texts

    def add(self, text: str) -> None:
        if len(text) < _MIN_CLEAN_CHARS or text in self._texts:
            return
        with self._lock:
            self._texts[text] = None
            self._chars += len(text)
            while self._chars > _MAX_CLEAN_CHARS:
                oldest = next(iter(self._texts))
                del self._texts[oldest]
                self._chars -= len(oldest)


_CLEAN = _CleanTexts()


def is_known_clean(text: str) -> bool:
    """Did a `Redactor` give out this very text lately?"""
    return text in _CLEAN


Pass = Callable[[str], tuple[str, int]]


def _redacted(text: str, passes: tuple[Pass, ...], max_chars: int = MAX_CHARS) -> Redacted:
    left_out = max(0, len(text) - max_chars)
    text = text[: max_chars + OVERLAP_CHARS]
    total = 0
    for _ in range(_ROUNDS):
        found = 0
        for each in passes:
            text, count = each(text)
            found += count
        total += found
        if not found:
            break
    if left_out:
        note = f"…({left_out} more characters not shown)"
        text = text[: max_chars - len(note)] + note
    return Redacted(text, total)


@lru_cache(maxsize=4096)
def _redact_short(name: str, value: str) -> Redacted:
    return _redact_header(name, value)


def _redact_header(name: str, value: str) -> Redacted:
    if is_secret(name, value):
        return Redacted(MARK, 1)
    if "://" in value[:200] or value.startswith("/"):
        value, count = redact_url(value)
        shown = redact_text(value)
        return Redacted(shown.text, shown.found + count)
    return redact_text(value)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _encoded(text: str, value: bytes) -> bytes:
    """The value itself if nothing was taken out of it: its bytes may not be UTF-8."""
    return value if text == _decoded(value) else text.encode(errors="replace")


def _by_field(text: str) -> tuple[str, int]:
    return _substituted(_FIELD, text, in_query=True) if "=" in text else (text, 0)


def _by_name(text: str) -> tuple[str, int]:
    total = 0
    for each in (_by_assignment, hide_json, hide_markup, _by_line, _by_option):
        text, count = each(text)
        total += count
    return text, total


def _by_assignment(text: str) -> tuple[str, int]:
    """`name=value` anywhere."""
    count = 0

    def replacement(found: re.Match[str]) -> str:
        nonlocal count
        start = found.start()
        name = _NAME_BACKWARDS.match(text[max(0, start - 100) : start][::-1])
        if name is None:
            return found[0]
        before = text[start - name.end() - 1 : start - name.end()] if start > name.end() else ""
        value, hidden = _hidden_value(name[0][::-1], found[1], in_query=before in ("?", "&", "#") and before != "")
        count += hidden
        return f"={value}" if hidden else found[0]

    return (compiled(_ASSIGNED).sub(replacement, text), count) if "=" in text else (text, 0)


def _by_line(text: str) -> tuple[str, int]:
    """`name: value` lines, parts of a multipart body, and `name: "value"` in GraphQL, JavaScript and Python."""
    if ":" not in text and "=>" not in text:
        return text, 0
    total = 0
    if "name=" in text:
        text, total = _substituted(_PART, text)
    pieces: list[str] = []
    done = count = at = 0
    pattern = compiled(_NAMED_VALUE)
    while (found := pattern.search(text, at)) is not None:
        at = found.end()
        if text[found.start() - 1 : found.start()] == '"':
            continue  # a key of JSON
        head = text[max(0, found.start() - 130) : found.start()][::-1]
        name = _KEY_BACKWARDS.match(head)
        if name is None:
            continue
        place = _value_after_name(text, found, head, name.end())
        if place is None or not is_secret(name[2][::-1], text[place[0] : place[1]]):
            continue
        pieces += (text[done : place[0]], MARK)
        done = at = place[1]
        count += 1
    return ("".join((*pieces, text[done:])), total + count) if count else (text, total)


def _value_after_name(text: str, found: re.Match[str], head: str, name_end: int) -> tuple[int, int] | None:
    """From where to where the value goes: to the end of its line, of its quotes, or of the word."""
    if found[1] and (found[3] or found[2]) and _LINE_BACKWARDS.match(head, name_end) and found[0][0] == ":":
        end = _LINE_END.search(text, found.end())
        return found.end(1), end.start() if end else len(text)
    if found[2]:
        end_quote = text.find(found[2], found.end())
        return found.end(), len(text) if end_quote < 0 else end_quote
    quote_mark = head[name_end : name_end + 1]
    if quote_mark in ("'", '"') and (close := text.find(quote_mark, found.end())) > 0:
        return found.start(3), close
    return (found.start(3), found.end(3)) if _looks_chosen(found[3]) else None


def _by_option(text: str) -> tuple[str, int]:
    total = 0

    def hide(found: re.Match[str]) -> str:
        nonlocal total
        if not is_secret_name(found[1]) or found[2].lower() in _PROSE or MARK in found[2]:
            return found[0]
        total += 1
        return found[0][: found.start(2) - found.start()] + MARK

    if "--" in text:
        text = compiled(_OPTION).sub(hide, text)
    if "-u" in text:
        text, count = compiled(_USER_OPTION).subn(lambda found: found[0][: -len(found[1])] + MARK, text)
        total += count
    return text, total


def _substituted(pattern: str, text: str, *, in_query: bool = False) -> tuple[str, int]:
    """Group 1 is a name; group 2 its value, at the end of the match."""
    count = 0

    def replacement(found: re.Match[str]) -> str:
        nonlocal count
        value, hidden = _hidden_value(found[1], found[2], in_query=in_query)
        count += hidden
        return found[0][: found.start(2) - found.start()] + value if hidden else found[0]

    return compiled(pattern).sub(replacement, text), count


def _hidden_value(name: str, value: str, *, in_query: bool) -> tuple[str, int]:
    """The value as it may be shown, and how many secrets that cost."""
    if is_secret(name, value, in_query=in_query):
        return MARK, 1
    return _nested(value) if "%" in value and len(value) <= _MAX_NESTED_CHARS else (value, 0)


def _nested(value: str) -> tuple[str, int]:
    """A URL or JSON document that stands percent-encoded inside a value."""
    plain = unquote(value)
    if plain == value or not any(sign in plain for sign in ("=", ":", "{")):
        return value, 0
    shown, found = redact_url(plain) if "?" in plain or "#" in plain else Redacted(plain, 0)
    text, more = redact_text(shown)
    return (quote(text, safe="<>"), found + more) if found + more else (value, 0)


def _looks_chosen(value: str) -> bool:
    """Not a word of a sentence: `invalid token: expected` stays, `token: a8f3k2` goes."""
    if len(value) < 6:
        return False
    is_mixed = value.isalnum() and value != value.lower() and not value.istitle()
    return is_mixed or len(value) >= 20 or any(each.isdigit() for each in value)
