"""Secrets taken out of everything an agent reads. Nothing of a secret stays, not even its length.

By name (headers, query, forms, JSON, XML, `name: value` lines) and by shape (tokens, keys, JWT). It works on text,
not on parsed documents, because what is shown is often a sample that ends in the middle. Replay uses the originals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import NamedTuple
from urllib.parse import unquote_plus

Headers = list[tuple[bytes, bytes]]

MARK = "<redacted>"
MAX_CHARS = 256 * 1024
"""About 0.1 s of work at worst, and ten times what an agent is shown of one body."""
_OVERLAP_CHARS = 4096
_ROUNDS = 4
"""Taking one secret out can lay another one bare; two rounds are usual, the rest is a stop."""

_ENDINGS = (
    *("token", "secret", "password", "passwd", "passphrase", "passcode", "credential", "signature", "cookie", "jwt"),
    *("apikey", "accesskey", "accesskeyid", "secretkey", "privatekey", "signingkey", "encryptionkey", "sharedkey"),
    *("authkey", "masterkey", "accountkey", "subscriptionkey", "functionskey", "sessionkey", "sessionid"),
    *("authorization", "authcode", "connectionstring"),
)
_NAMES = frozenset({"auth", "bearer", "cvc", "cvv", "mfa", "otp", "pass", "pin", "pwd", "sid", "sig", "ssn", "totp"})
_QUERY_NAMES = frozenset({"code", "key", "codeverifier", "samlresponse", "assertion", "hmac", "session"})
"""Secrets in a query or form, everyday words in JSON (`{"code": 404}`)."""
_HARMLESS = ("pagetoken", "continuationtoken", "nexttoken", "synctoken")
"""Cursors: an agent needs them to read on."""
_NAME_HINTS = (
    *("token", "secret", "pass", "credential", "signature", "cookie", "jwt", "key", "session", "auth", "connection"),
    *sorted(_NAMES),
)

_AWS = ("akia", "asia", "aroa", "aida", "agpa", "anpa", "abia", "acca")
_SHAPES: tuple[tuple[str, str], ...] = (
    (
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]*-----|\Z)",
    ),
    ("eyj", r"(?<![\w-])eyJ[\w-]{6,}(?:(?:\.[\w-]*){1,4}|\Z)"),
    ("bearer", r"(?<![\w-])(?i:bearer)[ +]+(?=[\w.~+/=-]*\d|[\w.~+/=-]{20})[\w.~+/=-]{8,}"),
    ("basic", r"(?<![\w-])(?i:basic) +(?=[A-Za-z+/]*[\d=+/])[A-Za-z0-9+/]{8,}={0,2}"),
    *((hint, rf"(?<![A-Za-z0-9]){hint.upper()}[A-Z0-9]{{16}}(?![A-Za-z0-9])") for hint in _AWS),
    ("gh", r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{20,255}"),
    ("github_pat_", r"github_pat_\w{20,255}"),
    ("glpat-", r"glpat-[\w-]{16,}"),
    ("xox", r"xox[abeoprs]-[\w-]{10,}"),
    ("xapp-", r"xapp-[\w-]{10,}"),
    ("hooks.slack.com", r"(?<=hooks\.slack\.com/services/)[\w/]{10,}"),
    ("sk-", r"(?<![\w-])sk-[\w-]{16,}"),
    ("_live_", r"(?<![A-Za-z0-9])(?:[srp]k|whsec)_live_\w{10,}"),
    ("_test_", r"(?<![A-Za-z0-9])(?:[sr]k)_test_\w{10,}"),
    ("aiza", r"AIza[\w-]{35}"),
    ("ya29.", r"ya29\.[\w.-]{10,}"),
    ("npm_", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi-", r"pypi-[\w-]{30,}"),
    ("hf_", r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}"),
    ("sg.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("dop_v1_", r"dop_v1_[0-9a-f]{40,}"),
    ("shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("bot", r"(?<=bot)\d{8,10}:[\w-]{35}"),
    ("://", r"(?<=://)[^/\s?#\"'<>]{1,700}(?=@)"),
)

_JSON_KEY = r'(\\{0,15})"([^"\\\r\n]{1,100})\1"\s{0,20}:\s{0,20}'
_JSON_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"?'
_JSON_NESTING = r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]'
_JSON_NUMBER = r"-?\d[\d.eE+-]*"
_PAIR = r"""(?:\A|(?<=[\s?&;#,"'({\[]))([\w.%\[\]+-]{1,100})=("[^"\r\n]*"?|'[^'\r\n]*'?|[^\s&"'<>]+)"""
_FIELD = r"(?:\A|(?<=[?&#]))([^=&?#\s]{1,200})=([^&#]+)"
_LINE = r"(?m)^[ \t]{0,40}(?:- )?([\w.-]{1,60}):[ \t]{1,20}([^\s{\[|>][^\r\n]*)"
_ELEMENT = r"<([\w:.-]{1,60})(?:\s[^<>]{0,200})?>([^<\s][^<]*)"
_PART = r'name="([^"\r\n]{1,100})"[^\r\n]{0,200}\r?\n(?:[^\r\n]{1,200}\r?\n){0,3}\r?\n([^\r\n]+)'


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
        if is_secret_name(name) and value:
            text, count = MARK, int(value != MARK)
        else:
            text, count = _redact_short(value) if len(value) < 1024 else redact_text(value)
        shown.append((name, text))
        total += count
    return RedactedHeaders(shown, total)


def redact_url(url: str) -> Redacted:
    """Query and fragment by name, userinfo, and secrets by shape anywhere."""
    return _redacted(url, (_by_field, _by_shape))


def redact_body(body: bytes | str, content_type: str = "") -> Redacted:
    """A decoded body (no gzip). What exceeds `MAX_CHARS` is cut off, never passed on unread."""
    text = body if isinstance(body, str) else bytes(body[: (MAX_CHARS + _OVERLAP_CHARS) * 4]).decode(errors="replace")
    if content_type.lower().strip().startswith("application/x-www-form-urlencoded"):
        return _redacted(text, (_by_field, _by_shape))
    return redact_text(text)


def redact_text(text: str) -> Redacted:
    """Any text: JSON, XML, multipart, logs, WebSocket messages."""
    return _redacted(text, (_by_name, _by_shape))


def is_plain(text: str) -> bool:
    """Would `redact_text` surely give this text back? It asks for signs only, in a tenth of the time."""
    if "=" in text or ":" in text or ">" in text or len(text) > MAX_CHARS:
        return False
    lowered = text.lower()
    for hint, _ in _SHAPES:  # noqa: SIM110  (`all` with a generator takes twice as long)
        if hint in lowered:
            return False
    return True


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
        return self._counted(redact_body(text, mime))

    def _counted(self, redacted: Redacted) -> str:
        self.found += redacted.found
        return redacted.text


@lru_cache(maxsize=4096)
def is_secret_name(name: str, *, in_query: bool = False) -> bool:
    """Does a header, key or parameter of this name hold a secret? Case, dashes and plurals do not matter."""
    plain = re.sub(r"[^a-z0-9]", "", unquote_plus(name).lower()).rstrip("0123456789")
    single = plain.removesuffix("s")
    if plain.endswith(_HARMLESS):
        return False
    if plain.endswith(_ENDINGS) or single.endswith(_ENDINGS) or plain in _NAMES:
        return True
    return in_query and plain in _QUERY_NAMES


Pass = Callable[[str], Redacted]


def _redacted(text: str, passes: tuple[Pass, ...]) -> Redacted:
    left_out = max(0, len(text) - MAX_CHARS)
    # Cut after reading a little further, so that a secret on the edge is seen whole.
    text = text[: MAX_CHARS + _OVERLAP_CHARS]
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
        text = text[: MAX_CHARS - len(note)] + note
    return Redacted(text, total)


@lru_cache(maxsize=4096)
def _redact_short(text: str) -> Redacted:
    return redact_text(text)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _encoded(text: str, value: bytes) -> bytes:
    """The value itself if nothing was taken out of it: its bytes may not be UTF-8."""
    return value if text == _decoded(value) else text.encode(errors="replace")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when first met: all of them together cost 7 ms, and most texts need none."""
    return re.compile(pattern, re.DOTALL)


def _by_shape(text: str) -> Redacted:
    total = 0
    lowered = text.lower()  # searching it for words is a hundred times cheaper than trying the patterns
    for hint, pattern in _SHAPES:
        if hint in lowered:
            text, count = _compiled(pattern).subn(MARK, text)
            total += count
    return Redacted(text, total)


def _by_field(text: str) -> Redacted:
    return _substituted(_FIELD, text, in_query=True) if "=" in text else Redacted(text, 0)


def _by_name(text: str) -> Redacted:
    total = 0
    if "=" in text:
        text, total = _substituted(_PAIR, text)
    lowered = text.lower()
    if not any(hint in lowered for hint in _NAME_HINTS):
        return Redacted(text, total)
    text, count = _by_json_key(text)
    total += count
    for pattern, sign in ((_LINE, ":"), (_ELEMENT, ">"), (_PART, 'name="')):
        if sign in text:
            text, count = _substituted(pattern, text)
            total += count
    return Redacted(text, total)


def _substituted(pattern: str, text: str, *, in_query: bool = False) -> Redacted:
    """Group 1 is a name; group 2 its value, at the end of the match."""
    count = 0

    def replacement(found: re.Match[str]) -> str:
        nonlocal count
        name, value = found[1], found[2]
        queried = in_query or text[found.start() - 1 : found.start()] in {"?", "&"}
        if value == MARK or not is_secret_name(name, in_query=queried):
            return found[0]
        count += 1
        return found[0][: found.start(2) - found.start()] + MARK

    return Redacted(_compiled(pattern).sub(replacement, text), count)


def _by_json_key(text: str) -> Redacted:
    pieces: list[str] = []
    done = count = at = 0
    while (found := _compiled(_JSON_KEY).search(text, at)) is not None:
        at = found.end()
        if not is_secret_name(found[2]):
            continue
        end = _json_value_end(text, at, escape=found[1], is_plural=found[2].lower().endswith("s"))
        if text[at:end].strip('\\"') in ("", MARK):
            continue
        pieces += (text[done:at], f'{found[1]}"{MARK}{found[1]}"')
        done = at = end
        count += 1
    return Redacted("".join((*pieces, text[done:])), count)


def _json_value_end(text: str, start: int, *, escape: str, is_plural: bool) -> int:
    """Where the value ends, or `start` to leave it: true, false, null, and numbers such as `"max_tokens": 100`."""
    if text.startswith(escape + '"', start):
        if not escape:
            string = _compiled(_JSON_STRING).match(text, start)
            return string.end() if string else start
        # JSON inside a JSON string: it ends at the next quote that is escaped just as often.
        close = re.compile(r"(?<!\\)" + re.escape(escape) + '"').search(text, start + len(escape) + 1)
        return close.end() if close else len(text)
    if text.startswith(("{", "["), start):
        return _nesting_end(text, start)
    number = _compiled(_JSON_NUMBER).match(text, start)
    return start if number is None or is_plural else number.end()


def _nesting_end(text: str, start: int) -> int:
    depth = 0
    for token in _compiled(_JSON_NESTING).finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(text)
