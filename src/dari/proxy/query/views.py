"""A body as a reader wants it: decoded, named, pretty when it is JSON, described when it is not text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import msgspec

from dari.errors import InvalidInput
from dari.proxy import content_coding, headers
from dari.proxy.flow import Body, Flow, Headers
from dari.proxy.recording.bodies import BodyStore
from dari.text.redact import HIDING, MARK, MAX_WHOLE_CHARS, OVERLAP_CHARS, REVEALED, Redactor, redact_string

MAX_CHARS = 32_000
_PRETTY_BYTES = 2 * 1024 * 1024
_ROUGH_BYTES = 64
_BINARY = re.compile(r"(?:image|audio|video|font)/|application/(?:octet-stream|pdf|zip|gzip|wasm)\b")
# ASCII, and characters of UTF-8 that are whole. Shorter ones hold no name with its value, and are all over a picture.
_READABLE = re.compile(
    rb"(?:[\t\n\r\x20-\x7e]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}){10,}"
)
_JSON = re.compile(r"[/+]json$|^application/(x-ndjson|graphql-response\+json)$")


class BodyView(msgspec.Struct, frozen=True, omit_defaults=True):
    """`size_bytes` counts the wire, `decoded_bytes` what is left after Content-Encoding; `note` says what is wrong.

    A reader who does not see the secrets gets no `sha256`, and rough sizes where one is hidden: both allow guessing.
    """

    kind: str
    mime: str
    size_bytes: int
    decoded_bytes: int = 0
    encoding: str | None = None
    charset: str | None = None
    text: str | None = None
    sha256: str | None = None
    start: int = 0
    end: int = 0
    is_whole: bool = True
    truncated: bool = False
    note: str | None = None


def message(flow: Flow, from_client: bool) -> tuple[Body, Headers]:
    """The body of one direction with its headers."""
    if from_client:
        return flow.request_body, flow.request_headers
    return flow.response_body, flow.response_headers


def raw(flow: Flow, from_client: bool, bodies: BodyStore | None) -> bytes:
    """The bytes of the wire as far as they were kept."""
    body = message(flow, from_client)[0]
    return body.sample if bodies is None else b"".join(bodies.pieces(body))


def is_whole(flow: Flow, from_client: bool, bodies: BodyStore | None) -> bool:
    """Whether `raw` gives the complete body."""
    body = message(flow, from_client)[0]
    if bodies is not None:
        return bodies.is_whole(body)
    return body.outcome != "error" and len(body.sample) == body.size_bytes


def decoded(
    flow: Flow, from_client: bool, bodies: BodyStore | None, limit_bytes: int = content_coding.DECODED_LIMIT_BYTES
) -> content_coding.Decoded:
    """The content without its codings."""
    body, head = message(flow, from_client)
    pieces: Iterable[bytes] = (body.sample,) if bodies is None else bodies.pieces(body)
    return content_coding.decode(pieces, headers.codings(head), limit_bytes)


def view(
    flow: Flow,
    from_client: bool,
    bodies: BodyStore | None = None,
    *,
    start: int = 0,
    end: int | None = None,
    max_chars: int = MAX_CHARS,
    redactor: Redactor = HIDING,
) -> BodyView:
    """The bytes `start`…`end` of the decoded content (all of it by default), cut after `max_chars`."""
    if start < 0 or (end is not None and end < start):
        raise InvalidInput(f"start and end must be 0 <= start <= end, got {start} and {end}", "count decoded bytes")
    body, head = message(flow, from_client)
    mime, codings = headers.mime(head), headers.codings(head)
    if not body.size_bytes:
        return BodyView("empty", mime, 0)
    content = decoded(flow, from_client, bodies)
    data = content.data
    whole = is_whole(flow, from_client, bodies)
    # Of a whole body only the beginning is shown, so no more than that becomes text, which is four times as large.
    shown = data[:_PRETTY_BYTES] if start == 0 and end is None else data
    found = content_coding.text_of(shown, head) if content.problem is None or data else None
    notes = [content.problem] if content.problem else []
    if content.is_cut:
        notes.append(f"decoded only as far as {len(data)} bytes")
    if not whole:
        notes.append(f"{_kept(body, bodies)} of {body.size_bytes} bytes were kept")
    stop = len(data) if end is None else min(end, len(data))
    hidden = is_rough = False
    if found is None:
        kind, charset, text, cut = "binary", None, None, False
    else:
        # A range of a secret is a secret: hide first, then cut.
        charset = found[1]
        is_range = (start, stop) != (0, len(data))
        kind, text = _rendered(found[0], data, mime, not is_range)
        # No more than what is shown of it: a range ends after at most as many characters as bytes.
        reach = (stop if is_range else max_chars) + OVERLAP_CHARS
        before, has_more = text[:reach], len(text) > reach
        text = redactor.whole_body(before, mime)
        hidden = text != before
        is_rough = hidden or (has_more and redactor is not REVEALED)
        if is_range:
            text = _slice(text, charset, start, stop)
        cut, text = (has_more and not is_range) or len(text) > max_chars or len(shown) < len(data), text[:max_chars]
        if reach > MAX_WHOLE_CHARS < len(found[0]) and redactor is not REVEALED:
            notes.append(f"secrets are searched for in the first {MAX_WHOLE_CHARS} characters, and no more is shown")
    if hidden:
        notes.append("secrets are hidden, so sizes are rough")
    return BodyView(
        kind,
        mime,
        rough(body.size_bytes) if is_rough else body.size_bytes,
        rough(len(data)) if is_rough else len(data),
        ", ".join(codings) or None,
        charset,
        text,
        hashlib.sha256(data).hexdigest() if redactor is REVEALED else None,
        start,
        rough(stop) if is_rough else stop,
        whole,
        cut or content.is_cut,
        "; ".join(notes) or None,
    )


def hides(body: Body, head: Headers, redactor: Redactor) -> bool:
    """Is something of this body hidden from such a reader? Then its exact size is, too: it tells a secret's length."""
    if redactor is REVEALED or not body.sample:
        return False
    text = content_coding.sample_text(body.sample, head)
    return text is not None and redactor.body(text, headers.mime(head)) != text


def hide_readable(data: bytes, redactor: Redactor) -> bytes:
    """Data that is not text, without the secrets in its readable parts: a form with a picture, a message of gRPC."""

    def hidden(found: re.Match[bytes]) -> bytes:
        text = found[0].decode(errors="replace")
        shown = redactor.whole_body(text, "") if len(text) <= MAX_WHOLE_CHARS else redact_string(text)
        return found[0] if shown == text else shown.encode()

    return data if redactor is REVEALED else _READABLE.sub(hidden, data)


def shows_secret(data: bytes, redactor: Redactor) -> bool:
    """Can a secret be read in data that is not text? Without its NULs UTF-16 is readable, too."""
    return any(hide_readable(each, redactor) != each for each in (data, data.replace(b"\0", b"")))


def rough(size_bytes: int) -> int:
    """A size that does not give away the length of what is hidden: the next multiple of 64."""
    return -(-size_bytes // _ROUGH_BYTES) * _ROUGH_BYTES


def shown_size(body: Body, head: Headers, redactor: Redactor) -> int:
    """For lists, where looking into each body would take too long: exact for binary data, else rough."""
    is_exact = redactor is REVEALED or _BINARY.match(headers.mime(head)) is not None
    return body.size_bytes if is_exact else rough(body.size_bytes)


def shown_headers(flow: Flow, from_client: bool, redactor: Redactor) -> Headers:
    """The headers of one direction; Content-Length is hidden where it would give away a secret's length."""
    body, head = message(flow, from_client)
    block = redactor.headers(head)
    if not hides(body, head, redactor):
        return block
    return [(name, MARK.encode() if name.lower() == b"content-length" else value) for name, value in block]


def json_of(flow: Flow, from_client: bool, bodies: BodyStore | None = None) -> object:
    """The body as data, or `msgspec.UNSET` when it is not JSON."""
    content = decoded(flow, from_client, bodies, _PRETTY_BYTES)
    if content.is_cut or not content.data:
        return msgspec.UNSET
    try:
        return msgspec.json.decode(content.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.UNSET


def _rendered(text: str, data: bytes, mime: str, is_all: bool) -> tuple[str, str]:
    looks_json = bool(_JSON.search(mime)) or (not mime and text.lstrip()[:1] in ("{", "["))
    if not looks_json:
        return "text", text
    if is_all and len(data) <= _PRETTY_BYTES:
        try:
            return "json", msgspec.json.format(text, indent=2)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return "text", text
    return "json", text


def _slice(text: str, charset: str, start: int, stop: int) -> str:
    return text.encode(charset, "replace")[start:stop].decode(charset, "replace")


def _kept(body: Body, bodies: BodyStore | None) -> int:
    return len(body.sample) if bodies is None else bodies.kept_bytes(body)
