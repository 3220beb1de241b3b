"""Calls of our clients, passed on: the result as the server wrote it, its errors as the client expects them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

from msgspec import Raw

from dari.bridge.gateway.caller_context import CallerCannotAnswer, CallerContext, can_be_asked
from dari.bridge.gateway.suspended_calls import SuspendedCalls, Work, is_error
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


class CallForwarder:
    """Shared by everything that one gateway passes on."""

    def __init__(self) -> None:
        self.parking = SuspendedCalls()

    def tool(self, upstream: Upstream, name: str, arguments: bytes, context: Context) -> Awaitable[RawResult]:
        if arguments == b"null":
            arguments = b"{}"
        if context.is_stateless and can_be_asked(context):
            return self.other(lambda caller: upstream.call_tool(name, arguments, caller), context)
        caller_context = CallerContext(context)
        caller = caller_context.caller()
        begun = upstream.begin_call(name, arguments, caller)
        if begun is None:
            return _await_result(upstream.call_tool(name, arguments, caller), caller_context, context)
        return _forward_pending(begun, caller_context, context)

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
                return _adapt_result(await self.parking.run(context, work), context)
            return _adapt_result(await work(CallerContext(context).caller()), context)
        except (RemoteError, CallerCannotAnswer) as error:
            raise _to_rpc_error(error) from None


async def _await_result(work: Coroutine[Any, Any, Raw], caller_context: CallerContext, context: Context) -> RawResult:
    try:
        return _to_result(await work, caller_context, context)
    except (RemoteError, CallerCannotAnswer) as error:
        raise _to_rpc_error(error) from None


def _forward_pending(begun: PendingResult, caller_context: CallerContext, context: Context) -> PendingResult:
    finish = begun.finish

    def passed(answer: asyncio.Future[Raw]) -> RawResult | PendingResult:
        try:
            result = finish(answer)
        except (RemoteError, CallerCannotAnswer) as error:
            raise _to_rpc_error(error) from None
        return (
            _forward_pending(result, caller_context, context)
            if isinstance(result, PendingResult)
            else _to_result(result, caller_context, context)
        )

    return PendingResult(begun.future, passed)


def _to_result(result: Raw, caller_context: CallerContext, context: Context) -> RawResult:
    if caller_context.unasked is not None and is_error(result):
        raise caller_context.unasked  # it failed for want of an answer: the client learns what to declare
    return _adapt_result(result, context)


def _to_rpc_error(error: RemoteError | CallerCannotAnswer) -> RpcError:
    """A JSON-RPC error of the server is the client's, with the same code, message and data."""
    return (
        error.fault if isinstance(error, CallerCannotAnswer) else RpcError(error.remote_code, error.message, error.data)
    )


def _adapt_result(result: Raw, context: Context) -> RawResult:
    """The result as the server wrote it, without what the client's era does not know."""
    body = bytes(result)
    if not body.startswith(b"{"):
        raise Failed("the server's result must be an object", "report it to its author")
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
    given = bytes(members.get("_meta", b"")).strip()
    meta = decode_members(given) if given.startswith(b"{") else {}  # some servers send null
    members["_meta"] = Raw(encode({**meta, STRUCTURED_META: structured}))
    if bytes(members.get("content", b"[]")).strip() in (b"[]", b"null"):
        members["content"] = Raw(encode([TextContent(text=bytes(structured).decode())]))
    return Raw(encode(members))
