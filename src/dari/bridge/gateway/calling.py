"""Calls of our clients, passed on: the result as the server wrote it, its errors as the client expects them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

from msgspec import Raw

from dari.bridge.gateway.parking import Parking, Work, is_error
from dari.bridge.gateway.seat import CannotAsk, Seat, can_be_asked
from dari.bridge.upstream.upstream import Upstream
from dari.core.content import RawResult, TextContent
from dari.core.context import Context
from dari.core.pending import PendingResult
from dari.errors import Failed
from dari.mcp.client.errors import RemoteError
from dari.mcp.error_mapping import RpcError
from dari.mcp.handlers.resources import NOT_FOUND
from dari.mcp.inflight import to_handshake_result
from dari.rpc.codec import INVALID_PARAMS, decode_members, encode

STRUCTURED_META = "dari/structuredContent"
"""Where a failed result of another server keeps its structured value."""


class Calling:
    """Shared by everything that one gateway passes on."""

    def __init__(self) -> None:
        self.parking = Parking()

    def tool(self, upstream: Upstream, name: str, arguments: bytes, context: Context) -> Awaitable[RawResult]:
        if arguments == b"null":
            arguments = b"{}"
        if context.is_stateless and can_be_asked(context):
            return self.other(lambda caller: upstream.call_tool(name, arguments, caller), context)
        seat = Seat(context)
        caller = seat.caller()
        begun = upstream.begin_call(name, arguments, caller)
        if begun is None:
            return _called(upstream.call_tool(name, arguments, caller), seat, context)
        return _passing(begun, seat, context)

    async def read(self, upstream: Upstream, uri: str, context: Context) -> RawResult:
        try:
            return await self.other(lambda caller: upstream.read_resource(uri, caller), context)
        except RpcError as fault:
            if fault.code != NOT_FOUND or not context.is_stateless:
                raise
            raise RpcError(INVALID_PARAMS, fault.message, fault.data) from None  # as this era says it

    async def other(self, work: Work, context: Context) -> RawResult:
        """A prompt, a completion."""
        try:
            if context.is_stateless and can_be_asked(context):
                return _passed(await self.parking.run(context, work), context)
            return _passed(await work(Seat(context).caller()), context)
        except (RemoteError, CannotAsk) as error:
            raise _fault(error) from None


async def _called(work: Coroutine[Any, Any, Raw], seat: Seat, context: Context) -> RawResult:
    try:
        return _answered(await work, seat, context)
    except (RemoteError, CannotAsk) as error:
        raise _fault(error) from None


def _passing(begun: PendingResult, seat: Seat, context: Context) -> PendingResult:
    finish = begun.finish

    def passed(answer: asyncio.Future[Raw]) -> RawResult | PendingResult:
        try:
            result = finish(answer)
        except (RemoteError, CannotAsk) as error:
            raise _fault(error) from None
        return (
            _passing(result, seat, context) if isinstance(result, PendingResult) else _answered(result, seat, context)
        )

    return PendingResult(begun.future, passed)


def _answered(result: Raw, seat: Seat, context: Context) -> RawResult:
    if seat.unasked is not None and is_error(result):
        raise seat.unasked  # it failed for want of an answer: the client learns what to declare
    return _passed(result, context)


def _fault(error: RemoteError | CannotAsk) -> RpcError:
    """A JSON-RPC error of the server is the client's, with the same code, message and data."""
    return error.fault if isinstance(error, CannotAsk) else RpcError(error.remote_code, error.message, error.data)


def _passed(result: Raw, context: Context) -> RawResult:
    """The result as the server wrote it, without what the client's era does not know."""
    body = bytes(result)
    if not body.startswith(b"{"):
        raise Failed("the server's result is no object", "report it to its author")
    if b'"isError"' in body and b'"structuredContent"' in body:
        result = _readable_error(result)
        body = bytes(result)
    if context.is_stateless or b'"resultType"' not in body:
        return RawResult(result)
    return RawResult(Raw(to_handshake_result(body)))


def _readable_error(result: Raw) -> Raw:
    """A failed result without `structuredContent`, which some clients check against the tool's schema even then.

    They would throw the whole result away; it stays readable in `_meta`, and as text where the server wrote none.
    """
    members = decode_members(result)
    if bytes(members.get("isError", b"")) != b"true":
        return result
    structured = members.pop("structuredContent", None)
    if structured is None:
        return result
    meta = decode_members(members["_meta"]) if "_meta" in members else {}
    members["_meta"] = Raw(encode({**meta, STRUCTURED_META: structured}))
    if bytes(members.get("content", b"[]")).strip() in (b"[]", b"null"):
        members["content"] = Raw(encode([TextContent(text=bytes(structured).decode())]))
    return Raw(encode(members))
