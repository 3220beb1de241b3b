"""One line of JSON per message, in both directions, as data."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dari.daemon.errors import DaemonError, ErrorCode
from dari.rpc.codec import UNREADABLE, encode
from dari.struct_types import ready

MAX_LINE_BYTES = 16 * 1024 * 1024
PROTOCOL_VERSION = 1
HANDSHAKE = "system.handshake"


class DaemonRequest(Struct):
    """A call as it came; `id` and `params` keep their bytes, so an id of any JSON value is echoed exactly."""

    jsonrpc: Any = None
    id: Raw = Raw()
    method: Any = None
    params: Raw = Raw()
    acts_for: Any = msgspec.field(default=None, name="for")
    """Of a daemon that passes a client's call on: who that client is."""


class ErrorData(Struct, omit_defaults=True):
    name: str = ""
    hint: str = ""


class ErrorBody(Struct, omit_defaults=True):
    code: int
    message: str
    data: ErrorData | None = None


class DaemonReply(Struct):
    id: Raw = Raw()
    result: Raw | UnsetType = UNSET
    error: ErrorBody | UnsetType = UNSET


class HandshakeParams(Struct):
    protocol_version: int
    token: str
    client_type: str | UnsetType = UNSET


class HandshakeResult(Struct):
    """The result of a handshake."""

    session_id: str
    protocol_version: int
    principal: str
    scopes: list[str]
    principal_verified: bool


_decode_request = msgspec.json.Decoder(ready(DaemonRequest)).decode
_decode_reply = msgspec.json.Decoder(ready(DaemonReply)).decode


def decode_request(line: bytes) -> DaemonRequest:
    """The request on this line, its members unchecked."""
    try:
        # msgspec keeps the bytes of a Raw member unread, and an id is echoed: it has to be UTF-8.
        if not line.isascii():
            line.decode()
        return _decode_request(line)
    except msgspec.ValidationError as error:
        raise DaemonError(ErrorCode.INVALID_PARAMS, "a request must be a JSON object") from error
    except UNREADABLE as error:
        raise DaemonError(ErrorCode.INVALID_PARAMS, f"invalid JSON: {error}") from error


def check_request(request: DaemonRequest) -> tuple[str, bytes]:
    """The method and the params object of a request, or the first thing wrong with it."""
    if request.jsonrpc != "2.0":
        raise DaemonError(ErrorCode.INVALID_PARAMS, "jsonrpc must be 2.0")
    if not isinstance(request.method, str):
        raise DaemonError(ErrorCode.INVALID_PARAMS, "method must be a string")
    params = bytes(request.params)
    if params in (b"", b"null"):
        return request.method, b"{}"
    if not params.startswith(b"{"):
        raise DaemonError(ErrorCode.INVALID_PARAMS, "params must be a JSON object")
    return request.method, params


def encode_result(request_id: Raw, result: object) -> bytes:
    return b'{"jsonrpc":"2.0"%b,"result":%b}\n' % (_id_member(request_id), encode(result))


def encode_error(request_id: Raw, refusal: DaemonError) -> bytes:
    data = ErrorData(refusal.kind, refusal.hint) if refusal.kind or refusal.hint else None
    # A message may quote a file name that is not UTF-8, which Python spells with lone surrogates.
    message = refusal.message.encode("utf-8", "replace").decode()
    body = encode(ErrorBody(int(refusal.ipc_code), message, data))
    return b'{"jsonrpc":"2.0"%b,"error":%b}\n' % (_id_member(request_id), body)


def encode_request(request_id: int, method: str, params: object, acts_for: str = "") -> bytes:
    body = encode(params)
    more = b',"for":%b' % encode(acts_for) if acts_for else b""
    return b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b%b}\n' % (request_id, encode(method), body, more)


def decode_reply(line: bytes, request_id: int) -> Raw:
    """The result on this line; a refusal is raised as it stands, with or without an id."""
    try:
        reply = _decode_reply(line)
    except UNREADABLE as error:
        raise DaemonError(ErrorCode.INTERNAL_ERROR, f"the daemon sent an unreadable reply: {error}") from error
    if isinstance(reply.error, ErrorBody):
        data = reply.error.data or ErrorData()
        raise DaemonError(reply.error.code, reply.error.message, data.hint, data.name)
    if reply.result is UNSET or bytes(reply.id) != b"%d" % request_id:
        raise DaemonError(ErrorCode.INTERNAL_ERROR, f"the daemon did not answer request {request_id}")
    return reply.result


def _id_member(request_id: Raw) -> bytes:
    raw = bytes(request_id)
    return b',"id":%b' % raw if raw else b""
