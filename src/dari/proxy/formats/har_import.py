"""HAR files of browsers and other proxies as flows: strict about limits, lenient about everything else.

Chrome writes no postData for some uploads and puts WebSocket messages beside the entry, Firefox leaves content empty,
Charles gives times below zero and numbers as text. An entry that makes no sense is skipped and named, never fatal.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, get_args
from urllib.parse import urlencode, urlsplit

import msgspec

from dari.errors import InvalidInput
from dari.proxy.content_coding import in_charset, text_of
from dari.proxy.flow import SAMPLE_BYTES, Event, Flow, Headers, Tls, WebSocketFrame
from dari.proxy.recording.bodies import BodyStore
from dari.struct_types import ready

MAX_FILE_BYTES = 128 * 1024 * 1024
MAX_OBJECTS = 4_000_000
MAX_HAR_ENTRIES = 50_000
MAX_HAR_FRAMES = 10_000
_HEADERS = 1000
_SKIPPED_SHOWN = 20
_EVENTS: dict[Any, Event] = {event: event for event in get_args(Event)}


class Skipped(msgspec.Struct, frozen=True):
    index: int
    reason: str


class Imported(msgspec.Struct, frozen=True):
    """The flows, done and in the order of the file; the first reasons for what was skipped."""

    flows: list[Flow]
    skipped_count: int
    skipped: list[Skipped]


class _Log(msgspec.Struct):
    entries: list[msgspec.Raw]


class _Har(msgspec.Struct):
    log: _Log


class _Bad(Exception):
    """The entry cannot be used; the message says why."""


def load(
    data: bytes, next_id: Callable[[], int], bodies: BodyStore | None = None, most: int = MAX_HAR_ENTRIES
) -> Imported:
    """Read a HAR file; bodies beyond a flow's sample go to the body store."""
    if len(data) > MAX_FILE_BYTES:
        raise InvalidInput(
            f"the file has {len(data)} bytes, {MAX_FILE_BYTES} are read at most", "split it, or export less"
        )
    if data.count(b"{") > MAX_OBJECTS:
        raise InvalidInput(f"the file has more than {MAX_OBJECTS:,} objects", "split it, or export less")
    try:
        # Entry by entry below: to decode all at once would hold the interpreter, and the proxy, for seconds.
        entries = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=ready(_Har)).log.entries
    except msgspec.ValidationError:
        raise InvalidInput("no log.entries in it", "give a HAR file as exported by a browser or proxy") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}", "give a HAR file as exported by a browser or proxy") from error
    flows: list[Flow] = []
    skipped = [Skipped(most, f"{len(entries) - most} entries after the first {most}")] if len(entries) > most else []
    count = max(0, len(entries) - most)
    for index, item in enumerate(entries[:most]):
        try:
            flows.append(_flow(_dict(msgspec.json.decode(item)), next_id, bodies))
        except (_Bad, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            count += 1
            if len(skipped) < _SKIPPED_SHOWN:
                skipped.append(Skipped(index, str(error)))
    return Imported(flows, count, skipped)


def _flow(item: dict[str, Any], next_id: Callable[[], int], bodies: BodyStore | None) -> Flow:
    request, response, extra = (_dict(item.get(name)) for name in ("request", "response", "_dari"))
    scheme, authority, target = _url(_text(request.get("url")))
    method = _text(request.get("method")).upper()
    if not method.isascii() or not method.replace("-", "").isalnum() or len(method) > 40:
        raise _Bad(f"no method: {method[:40]!r}")
    status = _integer(response.get("status"))
    request_block, response_block = _headers(request.get("headers")), _headers(response.get("headers"))
    sent = _posted(_dict(request.get("postData")), request_block)
    received = _content(_dict(response.get("content")), response_block)
    head_ms, total_ms = _times(item)
    flow = Flow(
        next_id(),
        _text(extra.get("peer")) or "har",
        _started(_text(item.get("startedDateTime"))),
        method,
        scheme,
        authority,
        target,
        _text(request.get("httpVersion")).upper().removeprefix("HTTP/").replace("H2", "2") or "1.1",
        _decoded(request_block) if sent else request_block,
        _EVENTS.get(_text(extra.get("event")), "upstream"),
        "done",
        status if 100 <= status <= 999 else None,
        _integer(extra.get("upstream_status")) or (status if 100 <= status <= 999 else None),
        _decoded(response_block) if received else response_block,
        head_ms,
        total_ms,
    )
    for name in ("map_local", "map_remote", "map_remote_to", "status_rewrite", "process"):
        setattr(flow, name, _text(extra.get(name)) or None)
    rule_ids = extra.get("rule_ids")
    flow.rule_ids = tuple(map(_text, rule_ids[:_HEADERS])) if isinstance(rule_ids, list) else ()
    flow.pid = _integer(extra.get("pid")) or None
    flow.error = _text(response.get("_error")) or (None if flow.status else "no response")
    flow.tls = _tls(extra.get("tls"))
    flow.frames = _frames(item.get("_webSocketMessages"))
    _keep(flow, True, sent, bodies, _integer(request.get("bodySize")))
    _keep(flow, False, received, bodies, _integer(response.get("bodySize")))
    return flow


def _keep(flow: Flow, from_client: bool, data: bytes, bodies: BodyStore | None, announced: int) -> None:
    body = flow.request_body if from_client else flow.response_body
    body.outcome = "complete"
    if not data:
        body.size_bytes = max(0, announced)  # it was there, but the file does not have it
    elif bodies is not None:
        bodies.keep(flow, from_client, data)
    else:
        body.sample, body.size_bytes = data[:SAMPLE_BYTES], len(data)


def _url(url: str) -> tuple[str, str, str]:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https", "ws", "wss"):
        raise _Bad(f"no http URL: {url[:100]!r}")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme.replace("ws", "http"), parts.netloc.rpartition("@")[2], target


def _headers(listed: Any) -> Headers:
    block: Headers = []
    for item in listed[:_HEADERS] if isinstance(listed, list) else []:
        pair = _dict(item)
        name = _text(pair.get("name"))
        if name and not name.startswith(":"):  # HTTP/2's own names are in the URL and the status already
            # Chromium joins headers of one name with line breaks, and some exporters leave them so.
            block += [(_bytes(name), _bytes(value)) for value in _text(pair.get("value")).split("\n", _HEADERS)]
        if len(block) >= _HEADERS:
            break
    return block[:_HEADERS]


def _decoded(block: Headers) -> Headers:
    """HAR holds the content without its codings, so the header that names them would be wrong."""
    return [(name, value) for name, value in block if name.lower() not in (b"content-encoding", b"transfer-encoding")]


def _posted(posted: dict[str, Any], block: Headers) -> bytes:
    params = posted.get("params")
    if _text(posted.get("text")) or not params:
        return _content(posted, block)
    pairs = [_dict(item) for item in params] if isinstance(params, list) else []
    return urlencode([(_text(pair.get("name")), _text(pair.get("value"))) for pair in pairs]).encode()


def _content(content: dict[str, Any], block: Headers) -> bytes:
    text = _text(content.get("text"))
    if _text(content.get("encoding")).lower() != "base64":
        return _encoded(text, _text(content.get("mimeType")), block)
    try:
        return base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError):
        return text.encode("utf-8", "replace")


def _encoded(text: str, mime: str, block: Headers) -> bytes:
    """In the charset that the type names; else in the one that a reader of these headers takes it for."""
    data = text.encode("utf-8", "replace")
    if "charset" in mime.lower():
        named = in_charset(text, [(b"content-type", mime.encode("utf-8", "replace"))])
    else:
        found = text_of(data, _decoded(block))
        named = None if found is None else _in_codec(text, found[1])
    return data if named is None else named


def _in_codec(text: str, codec: str) -> bytes | None:
    try:
        return text.encode(codec)
    except UnicodeError:
        return None


def _times(item: dict[str, Any]) -> tuple[float, float]:
    timings = _dict(item.get("timings"))
    parts = {
        name: max(0.0, _number(timings.get(name))) for name in ("blocked", "dns", "connect", "send", "wait", "receive")
    }
    total_ms = _number(item.get("time"))
    if total_ms <= 0:
        total_ms = sum(parts.values())
    return max(0.0, min(total_ms, total_ms - parts["receive"])), total_ms


def _started(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
        return max(0, round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError, OSError) as error:
        raise _Bad(f"no startedDateTime: {text[:40]!r}") from error


def _frames(listed: Any) -> list[WebSocketFrame] | None:
    if not isinstance(listed, list):
        return None
    frames: list[WebSocketFrame] = []
    for item in listed[:MAX_HAR_FRAMES]:
        message = _dict(item)
        opcode = _integer(message.get("opcode"))
        text = _text(message.get("data"))
        payload = text.encode("utf-8", "replace") if opcode == 1 else _content({"text": text, "encoding": "base64"}, [])
        at_ms = round(_number(message.get("time")) * 1000)
        frames.append(WebSocketFrame(message.get("type") == "send", opcode, payload, len(payload), at_ms))
    return frames


def _tls(value: Any) -> Tls | None:
    try:
        return msgspec.convert(value, ready(Tls)) if isinstance(value, dict) else None
    except msgspec.ValidationError:
        return None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)[:1000]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace").translate(None, b"\r\n\0")


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if abs(number) < 1e12 else 0.0


def _integer(value: Any) -> int:
    return int(_number(value))
