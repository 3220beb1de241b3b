"""HTTP statuses that are no answer, as errors with a next step."""

from __future__ import annotations

from dari.errors import DariError, Denied
from dari.mcp.client.failures import Refused, Unauthorized
from dari.transport.channels.address import Address
from dari.transport.channels.connection import Headers

_HINTS = {
    404: "check the path of the URL; most servers answer on /mcp",
    405: "check the path of the URL; most servers answer on /mcp",
    406: "the server does not like what we accept; it may be too old for Streamable HTTP",
    413: "send smaller arguments",
    415: "check that the URL is that of an MCP server",
    421: "the server does not know this host name",
}


def is_lost_session(status: int, body: bytes) -> bool:
    """MCP says 404; servers built on older examples say 400, and design 000 says 401."""
    return status == 404 or (status in (400, 401) and b"session" in body.lower())


def as_error(
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
        return Refused(message, "use that URL if it is the server you mean", status=status)
    hint = _HINTS.get(status, "try again later" if status >= 500 or status == 429 else "check the URL and the headers")
    wait = headers.get(b"retry-after", b"").decode("latin-1")
    if wait.isdigit():
        hint = f"{hint}, in {wait} s"
    return Refused(f"{where} answered HTTP {status}{said}", hint, status=status)


def _excerpt(body: bytes, token: str) -> str:
    text = " ".join(body[:600].decode("utf-8", "replace").split())
    if token:
        text = text.replace(token, "<secret>")
    clean = "".join(c for c in text if c.isprintable())
    return f": {clean[:300]}" if clean else ""
