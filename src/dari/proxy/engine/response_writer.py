"""A response as HTTP/1.1 puts it on the wire, its head verbatim where nothing must change.

A changed head keeps the order and case of its fields. `http2.client` has the other form.
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Protocol

from dari.proxy.engine.heads import CHUNKED, UNTIL_CLOSE, ResponseHead, check_fields, edited, joined, without
from dari.proxy.engine.hooks import HeadEdit
from dari.proxy.engine.local_response import LocalBody, may_have_body, named_status, status_line
from dari.proxy.flow import Flow, Headers

if TYPE_CHECKING:
    from dari.proxy.engine.exchange import Exchange

_FRAMING = (b"content-length", b"transfer-encoding")


def wire_head(exchange: Exchange, head: ResponseHead, status: int) -> bytes:
    """Decides how the client's connection goes on, and says so in the head."""
    is_old = exchange.head.version == "1.0"
    if head.length == UNTIL_CLOSE:
        exchange.keeps = False
    elif head.length == CHUNKED and is_old:
        exchange.dechunks = True
        exchange.keeps = False
    _settle_upload(exchange, head.keep_alive)
    edits = exchange.decision.response_edits
    is_same = head.status == status and edits is None and head.version == "1.1"
    if is_same and exchange.keeps and not is_old and head.kept is not None:
        return head.kept
    headers = final_headers(exchange, head, status)
    _say_connection(exchange, headers)
    return joined(status_line(status, head.reason if head.status == status else None), headers)


def final_headers(exchange: Exchange, head: ResponseHead, status: int) -> Headers:
    """Without what stays on the origin's hop, with what the rules want."""
    headers = without(head.headers, head.drop or ())
    if head.status != status and not may_have_body(status, "GET"):
        # A client reads no body after such a status: what the origin sent of one would look like the next response.
        exchange.is_muted = True
        exchange.keeps = exchange.head.keep_alive and exchange.is_request_done
    if exchange.is_muted:
        headers = without(headers, (*_FRAMING, b"trailer"))
    elif exchange.dechunks and head.length == CHUNKED:
        headers = without(headers, (b"transfer-encoding",) if exchange.head.version == "2" else (*_FRAMING, b"trailer"))
    edits = exchange.decision.response_edits
    if edits is not None:
        headers = edited(headers, edits)
    if head.status != status:
        headers.append(_rewritten(head.status, status))
    return headers


def local_head(exchange: Exchange, source: LocalBody, before: int, status: int) -> tuple[Headers, bytes]:
    """The headers of an answer made here, and the whole head on the wire."""
    _settle_upload(exchange, True)
    headers = without(source.headers, (*_FRAMING, b"connection"))
    if exchange.decision.response_edits is not None:
        headers = edited(headers, exchange.decision.response_edits)
    if before != status:
        headers.append(_rewritten(before, status))
    if may_have_body(status, "GET"):
        headers.append((b"Content-Length", b"%d" % source.length))
    _say_connection(exchange, headers)
    return headers, joined(status_line(status), headers)


def informational_head(head: ResponseHead) -> bytes:
    if head.drop is None and head.version == "1.1":
        return head.raw
    return joined(status_line(head.status, head.reason), without(head.headers, head.drop or ()))


def switching_head(head: ResponseHead) -> bytes:
    drop = (head.drop or set()) - {b"upgrade", b"connection"}
    return joined(status_line(101, head.reason), without(head.headers, drop))


def with_length(head: ResponseHead, length: int) -> ResponseHead:
    """The same head for a body that was replaced."""
    changed = copy.copy(head)
    changed.headers = [*without(head.headers, (*_FRAMING, b"trailer")), (b"Content-Length", b"%d" % length)]
    changed.length = length
    changed.kept = None
    return changed


def edited_head(head: ResponseHead, edit: HeadEdit) -> ResponseHead:
    """What a breakpoint made of it. Framing stays ours."""
    changed = copy.copy(head)
    changed.kept = None
    if edit.headers is not None:
        check_fields(edit.headers)
        framing = [field for field in head.headers if field[0].lower() in _FRAMING]
        changed.headers = [*without(edit.headers, _FRAMING), *framing]
    return changed if edit.body is None else with_length(changed, len(edit.body))


def shows_its_end(head: ResponseHead) -> bool:
    """Whether a client notices that the body was cut off when its connection simply closes."""
    return head.length != UNTIL_CLOSE


def _settle_upload(exchange: Exchange, origin_goes_on: bool) -> None:
    """With the request still coming in, its connection serves another one only if its end can be found."""
    if not exchange.is_request_done and (exchange.head.expects_continue or not origin_goes_on):
        exchange.keeps = False


def _say_connection(exchange: Exchange, headers: Headers) -> None:
    if exchange.head.version == "2":
        return
    if not exchange.keeps:
        headers.append((b"Connection", b"close"))
    elif exchange.head.version == "1.0":
        headers.append((b"Connection", b"keep-alive"))


def _rewritten(before: int, after: int) -> tuple[bytes, bytes]:
    return b"x-crab-mitm-status-rewrite", named_status(before) + b"->" + named_status(after)


class ResponseWriter(Protocol):
    """How the head, the 100 and the end of one response reach the client; bodies are written to its transport."""

    is_http2: bool

    def send_continue(self) -> None: ...

    def send_interim(self, head: ResponseHead) -> None:
        """A 1xx of the origin."""

    def prepare(self, exchange: Exchange, head: ResponseHead, status: int) -> None:
        """Make the final head, ready for `send_head`; raises BadHead when it may not be sent."""

    def send_head(self, body: bytes) -> None:
        """Send the head that was prepared, and the first bytes of the body with it."""

    def send_local_head(self, wire: bytes, flow: Flow) -> None:
        """The head of a response made here: as bytes of HTTP/1.1, or from the flow."""

    def end(self, exchange: Exchange) -> None:
        """The body is complete."""

    def leaves_upload(self, exchange: Exchange) -> bool:
        """Whether the exchange may end while its request is still coming."""


class Http1Writer:
    __slots__ = ("_head", "_transport")

    is_http2 = False

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def send_continue(self) -> None:
        self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def send_interim(self, head: ResponseHead) -> None:
        self._transport.write(informational_head(head))

    def prepare(self, exchange: Exchange, head: ResponseHead, status: int) -> None:
        self._head = wire_head(exchange, head, status)

    def send_head(self, body: bytes) -> None:
        # One write for head and body: on stock asyncio each is a system call.
        self._transport.write(self._head + body if body else self._head)

    def send_local_head(self, wire: bytes, flow: Flow) -> None:
        self._transport.write(wire)

    def end(self, exchange: Exchange) -> None:
        """Its framing has said so."""

    def leaves_upload(self, exchange: Exchange) -> bool:
        # With `keeps` the rest of an upload is awaited: the next request begins behind it.
        return not exchange.keeps
