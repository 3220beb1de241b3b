"""The request to send again, as plain data: built from a stored flow and edits, with its secrets where they belong."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from dari.errors import Conflict, InvalidInput
from dari.proxy.credentials import body_without_secrets, is_same_origin, without_secrets
from dari.proxy.flow import Flow, Headers
from dari.proxy.traffic import headers, views
from dari.proxy.traffic.bodies import Bodies
from dari.text.redact import MARK

# Each belongs to one connection, or is made anew by whoever sends.
_PER_HOP = {
    b"connection",
    b"proxy-connection",
    b"keep-alive",
    b"proxy-authorization",
    b"proxy-authenticate",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
    b"http2-settings",
    b"expect",
    b"content-length",
    b"host",
}
_TOKEN = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Edits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What to change. Headers are replaced by name; removal comes first."""

    method: str | None = None
    url: str | None = None
    set_headers: dict[str, str] = {}
    remove_headers: list[str] = []
    body: str | None = None
    body_b64: bytes | None = None
    """A body that is no text; wins over `body`. Base64 where it travels as JSON."""


class Replay(msgspec.Struct, frozen=True):
    """Ready to send when `missing` is empty; Host and Content-Length are set, hop-by-hop headers are gone."""

    replay_of: int | None
    method: str
    url: str
    headers: Headers
    body: bytes
    missing: list[str]
    dropped: list[str] = []
    """Recorded headers, and "body" for secrets in it, that are not sent because the URL is another origin's."""


def build(
    flow: Flow,
    edits: Edits = Edits(),  # noqa: B008 (frozen)
    bodies: Bodies | None = None,
    *,
    keeps_secrets: bool = False,
) -> Replay:
    """The flow's request with the edits applied; `missing` names what was not kept and not replaced.

    Another scheme, host or port than the recorded one gets no recorded secret, unless `keeps_secrets`.
    """
    if flow.method == "CONNECT" or flow.is_encrypted:
        raise Conflict(
            f"flow {flow.id} is a tunnel: its content was not seen", "add an allow rule for its host, then repeat it"
        )
    method = read_method(edits.method if edits.method is not None else flow.method)
    url = read_url(edits.url if edits.url is not None else flow.url)
    missing: list[str] = []
    kept = _kept_headers(flow)
    dropped: list[str] = []
    leaves_origin = not keeps_secrets and not is_same_origin(flow.url, url)
    if leaves_origin:
        kept, dropped = without_secrets(kept)
    given = edits.body_b64 if edits.body_b64 is not None else edits.body
    if given is not None:
        body = given.encode() if isinstance(given, str) else given
        kept = [(name, value) for name, value in kept if name.lower() != b"content-encoding"]
    else:
        body = views.raw(flow, True, bodies)
        if not views.is_whole(flow, True, bodies):
            missing.append(f"request body: {len(body)} of {flow.request_body.size_bytes} bytes were kept")
        safe = body_without_secrets(body, flow.request_headers) if leaves_origin else body
        if safe != body:
            body, dropped = safe, [*dropped, "secrets in the body"]
    removed = {header_name(name).lower() for name in (*edits.remove_headers, *edits.set_headers)}
    block = [(name, value) for name, value in kept if name.lower() not in removed]
    block += [(header_name(name), header_value(name, value)) for name, value in edits.set_headers.items()]
    if not any(name.lower() == b"host" for name, _ in block):
        block.insert(0, (b"Host", urlsplit(url).netloc.rpartition("@")[2].encode()))
    had_length = headers.value(flow.request_headers, b"content-length") is not None
    if body or had_length or method in ("POST", "PUT", "PATCH"):
        block = [(name, value) for name, value in block if name.lower() != b"content-length"]
        block.append((b"Content-Length", b"%d" % len(body)))
    return Replay(flow.id, method, url, block, body, missing, dropped)


def compose(method: str, url: str, headers: dict[str, str] | None = None, body: str | bytes = b"") -> Replay:
    """A request from nothing, checked like a replay."""
    made = Flow(0, "", 0, read_method(method), "http", "", "")
    data = body.encode() if isinstance(body, str) else body
    edits = Edits(url=url, set_headers=headers or {}, body_b64=data)
    return msgspec.structs.replace(build(made, edits), replay_of=None)


def sent_headers(flow: Flow) -> Headers:
    """The request's headers that say something about the request, not about the connection it came on."""
    return _kept_headers(flow)


def _kept_headers(flow: Flow) -> Headers:
    named = {
        name.strip().lower().encode()
        for key, value in flow.request_headers
        if key.lower() == b"connection"
        for name in headers.text(value).split(",")
    }
    return [
        (name, value)
        for name, value in flow.request_headers
        if name.lower() not in _PER_HOP and name.lower() not in named and not name.startswith(b":")
    ]


def read_method(method: str) -> str:
    if not method or not set(method.encode()) <= _TOKEN or method == "CONNECT":
        raise InvalidInput(f"no method: {method!r}", "give a word such as GET or POST")
    return method


def read_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_good = False
    if not is_good or any(ord(character) <= 32 or ord(character) == 127 for character in url):
        raise InvalidInput(f"no URL to send to: {url!r}", "give an absolute http or https URL, with spaces encoded")
    return url


def header_name(name: str) -> bytes:
    if not name or not set(name.encode()) <= _TOKEN:
        raise InvalidInput(f"no header name: {name!r}", "give a name such as X-Api-Key")
    return name.encode()


def header_value(name: str, value: str) -> bytes:
    if MARK in value:
        raise InvalidInput(
            f"the value of {name} must be a real one, got {MARK!r}: that stands for a secret which is not shown",
            "leave the header out: a replay to the recorded origin sends what was recorded",
        )
    raw = value.strip(" \t").encode()
    if any(byte in b"\r\n\0" for byte in raw):
        raise InvalidInput(f"the value of {name} has a line break or NUL", "put the value on one line")
    return raw
