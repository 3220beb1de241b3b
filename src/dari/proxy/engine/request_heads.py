"""The request's head as it goes to the origin: verbatim where nothing must change, else in its order and case."""

from __future__ import annotations

import asyncio
import copy
import re

from dari.proxy.engine.connector import Connector
from dari.proxy.engine.heads import BadHead, RequestHead, check_fields, edited, joined, without
from dari.proxy.engine.hooks import PASS, Decision, HeadEdit
from dari.proxy.engine.targets import RequestTarget
from dari.proxy.engine.upstream import Route, UpstreamConnection
from dari.proxy.flow import Headers, Tls

_FRAMING = (b"content-length", b"transfer-encoding")


def wire_head(head: RequestHead, target: RequestTarget, decision: Decision, dialer: Connector, route: Route) -> bytes:
    proxy = dialer.forwarder(route)
    keeps_host = head.authority is not None and head.authority.text == target.authority.text
    is_same = keeps_host and decision is PASS and proxy is None and head.version == "1.1"
    if is_same and head.kept is not None:
        if head.drop is None and head.url == target.path:
            return head.raw
        return b"%b %b HTTP/1.1\r\n%b" % (head.method.encode("ascii"), target.path, head.kept)
    headers = _headers(head, target)
    if decision.request_edits is not None:
        headers = edited(headers, decision.request_edits)
    path = target.path
    if proxy is not None:
        path = b"http://" + target.authority.text.encode("ascii") + (b"" if path == b"*" else path)
        if proxy.authorization is not None:
            headers.append((b"Proxy-Authorization", proxy.authorization))
    return joined(b"%b %b HTTP/1.1" % (head.method.encode("ascii"), path), headers)


def _headers(head: RequestHead, target: RequestTarget) -> Headers:
    host = target.authority.text.encode("ascii")
    is_upgrade = head.upgrade == b"websocket"
    drop = head.drop or set()
    if is_upgrade:
        drop = drop - {b"upgrade", b"connection"}
    headers: Headers = []
    has_host = False
    for field in head.headers:
        name = field[0].lower()
        if name == b"host":
            headers.append((field[0], host))
            has_host = True
        elif is_upgrade and name == b"connection":
            headers.append((field[0], b"Upgrade"))
        elif name not in drop:
            headers.append(field)
    if not has_host:
        headers.insert(0, (b"Host", host))
    return headers


def with_length(head: RequestHead, length: int) -> RequestHead:
    """The same head for a body that was replaced."""
    changed = copy.copy(head)
    changed.headers = [*without(head.headers, (*_FRAMING, b"expect")), (b"Content-Length", b"%d" % length)]
    changed.length = length
    changed.kept = None
    changed.expects_continue = False
    return changed


def edited_head(head: RequestHead, edit: HeadEdit, is_complete: bool) -> RequestHead:
    """What a breakpoint made of it. Framing stays ours: it describes the bytes that will follow."""
    changed = copy.copy(head)
    changed.kept = None
    if edit.method is not None:
        # The origin's answer to CONNECT would be a tunnel, which nobody has asked for.
        if not re.fullmatch("[!#$%&'*+.^_`|~0-9A-Z-]{1,40}", edit.method) or edit.method == "CONNECT":
            raise BadHead(f"bad method {edit.method[:40]!r}")
        changed.method = edit.method
    if edit.headers is not None:
        check_fields(edit.headers)
        framing = [field for field in head.headers if field[0].lower() in _FRAMING]
        changed.headers = [*without(edit.headers, _FRAMING), *framing]
    if edit.body is not None:
        if not is_complete:
            raise BadHead("the body cannot be replaced before the client has sent all of it")
        changed = with_length(changed, len(edit.body))
    return changed


def note_tls(tls: Tls, upstream: UpstreamConnection) -> None:
    """What the origin's handshake gave; asked of OpenSSL once per connection."""
    if upstream.tls is None:
        upstream.tls = tls_facts(upstream.transport)
    tls.upstream_version, tls.upstream_alpn, tls.upstream_subject = upstream.tls


def tls_facts(transport: asyncio.Transport) -> tuple[str | None, str | None, str | None]:
    """Version, ALPN and the subject of the certificate."""
    session = transport.get_extra_info("ssl_object")
    if session is None:
        return None, None, None
    names = dict(pair[0] for pair in (session.getpeercert() or {}).get("subject", ()))
    return session.version(), session.selected_alpn_protocol(), names.get("commonName")
