"""One table from failures to the wire.

A failing tool on 2024-11-05 is a JSON-RPC error with the codes of design 000 §5.7; every later revision
gets a result with `isError: true`: message and hint as text, the error object in `_meta`. Protocol faults are
JSON-RPC errors in every revision.
"""

from __future__ import annotations

import logging
from typing import Any

from dari.errors import DariError, Failed
from dari.mcp.versions import V2024_11
from dari.os_errors import from_os_error
from dari.rpc.codec import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, encode
from dari.text.redact import redact_error

ERROR_META = "dari/error"
"""Where a failed result keeps the error object. Never in `structuredContent`: clients validate that against the tool's
`outputSchema` also when `isError` is set (TypeScript SDK v1, Inspector), and throw the whole result away."""

_log = logging.getLogger("dari.mcp")


class RpcError(Exception):
    """A protocol fault: answered with a JSON-RPC error in every revision."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def parse_error(error: Exception) -> RpcError:
    return RpcError(PARSE_ERROR, f"Parse error: {error}")


def invalid_request(detail: str) -> RpcError:
    return RpcError(INVALID_REQUEST, f"Invalid request: {detail}")


def invalid_params(detail: str, hint: str = "") -> RpcError:
    return RpcError(INVALID_PARAMS, f"Invalid params: {detail}", {"hint": hint} if hint else None)


def method_not_found(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, "Method not found", {"method": method})


def to_dari_error(error: BaseException, doing: str) -> DariError:
    """Any exception of a tool as one of ours. What neither we nor the system refuse is a bug: logged whole."""
    if isinstance(error, DariError):
        return redact_error(error)
    refused = from_os_error(error)
    if refused is not None:
        _log.warning("transport=core event=refused %s: %s", doing, refused.message)
        return redact_error(refused)
    _log.error("transport=core event=fatal %s", doing, exc_info=error)
    hint = "this is a bug in the tool; the server's log has the traceback"
    return redact_error(Failed(f"{type(error).__name__}: {error}", hint))


def error_data(failure: DariError) -> dict[str, Any]:
    """The error as data, the same in a JSON-RPC error and in a result."""
    return {
        "code": failure.code,
        "name": failure.name,
        "message": failure.wire_message,
        "hint": failure.hint,
    }


def maps_to_rpc_error(version: str) -> bool:
    """Whether this revision wants a tool's failure as a JSON-RPC error."""
    return version == V2024_11


def error_result(failure: DariError) -> bytes:
    """A `CallToolResult` that reports a failure."""
    text = failure.wire_message + (f"\nhint: {failure.hint}" if failure.hint else "")
    return b'{"content":[{"type":"text","text":%b}],"isError":true,"_meta":{"%b":%b}}' % (
        encode(text),
        ERROR_META.encode(),
        encode(error_data(failure)),
    )
