"""The answer to a request that the hub cannot give any more, in the form its protocol version wants."""

from __future__ import annotations

from dari.cli.mcp.messages import ClientMessage, response
from dari.errors import Unavailable
from dari.mcp.error_mapping import error_data, error_result, maps_to_rpc_error
from dari.mcp.inflight import to_stateless_result
from dari.rpc.codec import encode


def render_failure(asked: ClientMessage, version: str, message: str, hint: str) -> bytes:
    """`version` is the session's; a request of the stateless era names its own."""
    assert asked.id is not None
    failure = Unavailable(message, hint)
    version = asked.stateless_version or version
    if asked.method == "tools/call" and version and not maps_to_rpc_error(version):
        result = error_result(failure)
        return response(asked.id, to_stateless_result(result) if asked.stateless_version else result)
    error = {"code": failure.code, "message": failure.wire_message, "data": error_data(failure)}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (asked.id.encode(), encode(error))
