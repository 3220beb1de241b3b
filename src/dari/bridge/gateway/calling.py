"""Calls of our clients, passed on: the result as the server wrote it, its errors as the client expects them."""

from __future__ import annotations

from msgspec import Raw

from dari.bridge.gateway.parking import Parking, Work
from dari.bridge.gateway.seat import CannotAsk, Seat, can_be_asked
from dari.bridge.upstream.upstream import Upstream
from dari.core.content import RawResult
from dari.core.context import Context
from dari.errors import Failed
from dari.mcp.calls import handshake_result
from dari.mcp.client.failures import RemoteError
from dari.mcp.failures import Fault


class Calling:
    """Shared by everything that one gateway passes on."""

    def __init__(self) -> None:
        self.parking = Parking()

    async def tool(self, upstream: Upstream, name: str, arguments: bytes, context: Context) -> RawResult:
        if arguments == b"null":
            arguments = b"{}"
        try:
            if context.is_stateless and can_be_asked(context):
                work: Work = lambda caller: upstream.call_tool(name, arguments, caller)  # noqa: E731
                return _passed(await self.parking.run(context, work), context)
            return _passed(await upstream.call_tool(name, arguments, Seat(context).caller()), context)
        except RemoteError as error:
            raise _fault(error) from None
        except CannotAsk as error:
            raise error.fault from None

    async def other(self, work: Work, context: Context) -> RawResult:
        """A resource, a prompt, a completion."""
        try:
            if context.is_stateless and can_be_asked(context):
                return _passed(await self.parking.run(context, work), context)
            return _passed(await work(Seat(context).caller()), context)
        except RemoteError as error:
            raise _fault(error) from None
        except CannotAsk as error:
            raise error.fault from None


def _fault(error: RemoteError) -> Fault:
    """A JSON-RPC error of the server is the client's, with the same code, message and data."""
    return Fault(error.remote_code, error.message, error.data)


def _passed(result: Raw, context: Context) -> RawResult:
    """The result as the server wrote it, without what the client's era does not know."""
    body = bytes(result)
    if not body.startswith(b"{"):
        raise Failed("the server's result is no object", "report it to its author")
    if context.is_stateless or b'"resultType"' not in body:
        return RawResult(result)
    return RawResult(Raw(handshake_result(body)))
