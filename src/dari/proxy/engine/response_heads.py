"""The response's head as it goes to the client: verbatim where nothing must change, else in its order and case."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from dari.proxy.engine.heads import CHUNKED, UNTIL_CLOSE, ResponseHead, check_fields, edited, joined, without
from dari.proxy.engine.hooks import HeadEdit
from dari.proxy.engine.local_response import LocalBody, may_have_body, named_status, status_line
from dari.proxy.flow import Headers

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
    """With the request still coming in, its connection serves another one only if the rest can be told apart."""
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
