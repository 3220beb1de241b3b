"""HTTP error statuses as errors with a next step."""

from __future__ import annotations

import re
from html import unescape

from dari.errors import DariError, Denied
from dari.mcp.client.errors import ServerRefused, Unauthorized
from dari.transport.client.address import Address
from dari.transport.client.http_connection import Headers

_HINTS = {
    406: "the server does not like what we accept; it may be too old for Streamable HTTP",
    413: "send smaller arguments",
    415: "check that the URL is that of an MCP server",
    421: "the server does not know this host name",
}

MAX_PAGE_BYTES = 64 * 1024
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,500})</title", re.IGNORECASE)


def is_lost_session(status: int, body: bytes) -> bool:
    """MCP says 404; servers built on older examples say 400, and design 000 says 401."""
    return status == 404 or (status in (400, 401) and b"session" in body.lower())


def to_error(
    address: Address, status: int, headers: Headers, body: bytes, *, token: str = "", denied_hint: str = ""
) -> DariError:
    """`token` is what we sent, in case the server repeats it; `denied_hint` is the next step for 401 and 403."""
    where, said = address.shown, _excerpt(body, token)
    if status == 401:
        wants_oauth = b"resource_metadata" in headers.get(b"www-authenticate", b"")
        hint = "it asks for OAuth: give the client `oauth`" if wants_oauth else "give it a bearer token"
        return Unauthorized(f"{where} does not accept us (HTTP 401){said}", denied_hint or hint)
    if status == 403:
        hint = denied_hint or "ask for access, or use another token"
        return Denied(f"{where} refuses this (HTTP 403){said}", hint)
    if 300 <= status < 400:
        there = headers.get(b"location", b"?").decode("latin-1").partition("?")[0]
        message = f"{where} redirects to {there}, which was not followed"
        return ServerRefused(message, "use that URL if it is the server you mean", status=status)
    hint = (
        _likely(address)
        if status in (404, 405)
        else _HINTS.get(
            status, "try again later" if status >= 500 or status == 429 else "check the URL and the headers"
        )
    )
    wait = headers.get(b"retry-after", b"").decode("latin-1")
    if wait.isdigit():
        hint = f"{hint}, in {wait} s"
    return ServerRefused(f"{where} answered HTTP {status}{said}", hint, status=status)


def begins_as_json(body: bytes) -> bool:
    """Whether it may be a message, or several."""
    return body[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def not_mcp(address: Address, status: int, headers: Headers, body: bytes) -> ServerRefused:
    """A good status above something else than MCP: a web page, a text, nothing."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().decode("latin-1")
    what = _page(body) or (f"{kind or 'something'}{_excerpt(body, '')}" if body.strip() else "nothing")
    message = f"{address.shown} must answer with MCP, and answered HTTP {status} with {what}"
    return ServerRefused(message, _likely(address), status=status)


def _page(body: bytes) -> str:
    """A web page by its title; empty for anything else."""
    text = body[:MAX_PAGE_BYTES].decode("utf-8", "replace")
    begins = text.lstrip("\ufeff \t\r\n")[:300].lower()
    if not begins.startswith("<") or not ("<html" in begins or "<!doctype html" in begins or "<title" in text.lower()):
        return ""
    found = _TITLE.search(text)
    title = " ".join(unescape(found[1]).split()) if found else ""
    clean = "".join(character for character in title if character.isprintable())[:100]
    return f"a web page ('{clean}')" if clean else "a web page"


def _likely(address: Address) -> str:
    path = address.target.partition("?")[0]
    if path.rstrip("/").endswith("/mcp"):
        return "check the URL: is an MCP server behind it, and does a proxy or a login stand in front?"
    root = f"{address.scheme}://{address.host_header}"
    return f"check the path of the URL; most servers answer on {root}/mcp"


def _excerpt(body: bytes, token: str) -> str:
    if page := _page(body):
        return f": {page}"
    text = " ".join(body[:600].decode("utf-8", "replace").split())
    if token:
        text = text.replace(token, "<secret>")
    clean = "".join(c for c in text if c.isprintable())
    return f": {clean[:300]}" if clean else ""
