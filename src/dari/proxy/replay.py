"""The request to send again, as plain data: built from a stored flow and edits, with its secrets where they belong."""

from __future__ import annotations

import asyncio
import re
import string
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from dari.errors import Conflict, Failed, InvalidInput, TimedOut
from dari.proxy import headers
from dari.proxy.configuration import shown_address
from dari.proxy.credentials import body_without_secrets, is_same_origin, without_secrets
from dari.proxy.flow import Flow, Headers
from dari.proxy.query import views
from dari.proxy.query.fields import row_of
from dari.proxy.recording.bodies import BodyStore
from dari.text.redact import MARK
from dari.transport.authority import parse_authority

if TYPE_CHECKING:
    from dari.proxy.runtime import ProxyRuntime

# Each belongs to one connection, or is made anew by the sender.
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
_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Z-]{1,40}")
# The time of Python's IDNA codec grows with the square of the name.
_MAX_AUTHORITY_CHARS = 300
_URL_CHARACTERS = string.punctuation
_FRAMING = (b"content-length", b"transfer-encoding")
_TOKEN = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class RequestEdits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What to change. Headers are replaced by name; removal comes first."""

    method: str | None = None
    url: str | None = None
    set_headers: dict[str, str] = {}
    remove_headers: list[str] = []
    body: str | None = None
    body_b64: bytes | None = None
    """A binary body; wins over `body`. Base64 in JSON."""


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
    edits: RequestEdits = RequestEdits(),  # noqa: B008 (frozen)
    bodies: BodyStore | None = None,
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
    if edits.url is not None:
        refuse_mark("url", edits.url)
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
    block = [(name, value) for name, value in block if name.lower() not in _FRAMING]
    if body or had_length or method in ("POST", "PUT", "PATCH"):
        block.append((b"Content-Length", b"%d" % len(body)))
    return Replay(flow.id, method, url, block, body, missing, dropped)


def compose(method: str, url: str, headers: dict[str, str] | None = None, body: str | bytes = b"") -> Replay:
    """A request from nothing, checked like a replay."""
    made = Flow(0, "", 0, read_method(method), "http", "", "")
    data = body.encode() if isinstance(body, str) else body
    edits = RequestEdits(url=url, set_headers=headers or {}, body_b64=data)
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
    if not _METHOD.fullmatch(method) or method == "CONNECT":
        raise InvalidInput(
            f"method must be a word of capitals such as GET, got {method[:80]!r}",
            "give an HTTP method; their case counts",
        )
    return method


def read_url(url: str) -> str:
    """The URL as it is sent: a host of other letters in punycode, other characters behind it percent-encoded."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_good = False
    if not is_good or any(ord(character) <= 32 or ord(character) == 127 for character in url):
        raise InvalidInput(f"url must be an absolute http or https URL, got {url[:200]!r}", "encode spaces in it")
    if "@" in parts.netloc:
        raise InvalidInput(
            f"url must name no user, got {url[:200]!r}", "leave the user and password out; set the header Authorization"
        )
    try:
        if len(parts.netloc) > _MAX_AUTHORITY_CHARS:
            raise ValueError
        authority = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode("ascii")
        parse_authority(authority.encode())
    except ValueError as error:  # the codec's, or that of the authority
        raise InvalidInput(f"url must name a host, got {parts.netloc[:200]!r}", "give a name or an address") from error
    if url.isascii():
        return url
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{authority}{quote(rest[len(parts.netloc) :], safe=_URL_CHARACTERS)}"


def refuse_mark(what: str, given: str | bytes) -> None:
    """InvalidInput for what was copied from a result: the mark would be sent in the place of the secret."""
    text = given if isinstance(given, str) else given.decode("latin-1")
    if MARK in text or quote(MARK) in text:
        raise InvalidInput(
            f"{what} must hold real values, got {MARK!r}: that stands for a secret which is not shown",
            f"leave {what} out to send it as it was, or put the secret itself into it",
        )


def header_name(name: str) -> bytes:
    if not name or not set(name.encode()) <= _TOKEN:
        raise InvalidInput(f"invalid header name {name!r}", "give a name such as X-Api-Key")
    return name.encode()


def header_value(name: str, value: str) -> bytes:
    if MARK in value:
        raise InvalidInput(
            f"the value of {name} must be a real one, got {MARK!r}: that stands for a secret which is not shown",
            "leave the header out: a replay to the recorded origin sends what was recorded",
        )
    raw = value.strip(" \t").encode()
    if any((byte < 32 and byte != 9) or byte == 127 for byte in raw):
        raise InvalidInput(f"the value of {name} has a line break or a control character", "put the value on one line")
    return raw


_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_PIECE_BYTES = 64 * 1024
_FIELDS = (
    "id",
    "method",
    "url",
    "status",
    "event",
    "duration_ms",
    "error",
    "replay_of",
    "response_headers",
    "response_body",
)


class SentRequest(Struct, frozen=True):
    """The new request as it was recorded, and what could not be sent again as it was."""

    request_id: str
    flow: dict[str, Any]
    notes: list[str]


class Sender:
    def __init__(self, runtime: ProxyRuntime) -> None:
        self._runtime = runtime

    async def send(self, request: Replay, timeout_s: float) -> SentRequest:
        """Send it and wait for the whole response."""
        runtime = self._runtime
        runtime.need_running()
        if request.missing:
            raise Conflict(
                f"request {request.replay_of} cannot be sent again as it was: {'; '.join(request.missing)}",
                "give a body of your own",
            )
        try:
            async with asyncio.timeout(timeout_s):
                flow = await self._exchange(request)
        except TimeoutError:
            raise TimedOut(f"no whole answer from {request.url} within {timeout_s:g} s", "allow more time") from None
        row = await runtime.recording.read(row_of, flow, _FIELDS, runtime.recording.bodies, runtime.recording.redactor)
        return SentRequest(str(flow.id), row, _notes(request))

    async def _exchange(self, request: Replay) -> Flow:
        from dari.proxy.rule_adapter import Sent

        runtime = self._runtime
        bound = runtime.engine.address
        assert bound is not None
        reader, writer = await asyncio.open_connection(_ANY.get(bound[0], bound[0]), bound[1])
        name = writer.get_extra_info("sockname")
        peer = shown_address(name[0], name[1])
        arrived: asyncio.Future[Flow] = asyncio.get_running_loop().create_future()
        runtime.rules.sent[peer] = Sent(request.replay_of, arrived)
        begun = b""
        try:
            writer.write(_wire(request))
            begun = await reader.read(_PIECE_BYTES)
            # The proxy closes after one response, so the end of the stream is the end of the response.
            while await reader.read(_PIECE_BYTES):
                pass
        except ConnectionError:
            pass  # a fault rule, or the origin: the flow tells
        finally:
            runtime.rules.sent.pop(peer, None)
            writer.close()
        if not arrived.done():
            refusal = begun.partition(b"\r\n\r\n")[2].decode("utf-8", "replace").strip()
            raise Failed(f"the proxy did not take the request for {request.url}: {refusal}", "change the request")
        flow = arrived.result()
        await self._finished(flow)
        return flow

    async def _finished(self, flow: Flow) -> None:
        """The client's end of the stream may come a turn before the flow is closed."""
        deadline = time.monotonic() + 1
        while flow.state != "done" and time.monotonic() < deadline:  # noqa: ASYNC110 (a flow has no event)
            await asyncio.sleep(0.005)


def _notes(request: Replay) -> list[str]:
    if not request.dropped:
        return []
    dropped = ", ".join(request.dropped)
    return [f"not sent, since the URL is of another origin than the one they were recorded for: {dropped}"]


def _wire(request: Replay) -> bytes:
    head = b"%b %b HTTP/1.1\r\n" % (request.method.encode(), request.url.encode())
    fields = b"".join(b"%b: %b\r\n" % field for field in request.headers)
    return head + fields + b"Connection: close\r\n\r\n" + request.body
