"""`resources/*`: list, templates, read, subscribe."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from msgspec import UNSET

from dari.core.content import Contents, RawResult
from dari.core.resource import Body, Resource, ResourceTemplate
from dari.core.scopes import require_scope
from dari.core.tool import DEFAULT_TIMEOUT_S, INNER_LIMITS_ONLY
from dari.mcp.error_mapping import RpcError, invalid_params
from dari.mcp.handlers.subscriptions import MAX_SUBSCRIPTIONS
from dari.mcp.inflight import InflightCall
from dari.mcp.list_cache import UNCACHEABLE, list_page, wait_for_list, without_caching
from dari.mcp.request import Request
from dari.rpc.codec import INVALID_PARAMS, encode
from dari.text.redact import redact_secrets

NOT_FOUND = -32002
"""Until 2025-11-25; later revisions say Invalid params."""


def list_resources(request: Request) -> bytes | None:
    return list_page(request, "resources")


def list_templates(request: Request) -> bytes | None:
    return list_page(request, "resourceTemplates")


def read_resource(request: Request) -> None:
    uri = _uri(request)
    waiting = wait_for_list(request, "resources") if request.server.registry.find_reader(uri) is None else None
    if waiting is None:
        reader, work = _start_reading(request, uri)
        InflightCall(request, work, lambda body: _render(request, uri, reader, body), _timeout_s(reader))
    else:
        InflightCall(request, _read_later(request, uri, waiting), lambda result: result, INNER_LIMITS_ONLY)


async def _read_later(request: Request, uri: str, waiting: Coroutine[Any, Any, None]) -> bytes:
    await waiting
    reader, work = _start_reading(request, uri)
    return _render(request, uri, reader, await work)


def _render(request: Request, uri: str, reader: Resource | ResourceTemplate, body: Body | RawResult) -> bytes:
    if not isinstance(body, RawResult):
        body = body if reader.output == "as_is" else redact_secrets(body)
        contents = encode({"contents": [Contents.of(uri, body, reader.mime_type)]})
        return UNCACHEABLE + contents[1:] if request.is_stateless else contents
    raw = bytes(body.body)
    return without_caching(raw) if request.is_stateless else raw


def subscribe(request: Request) -> bytes | None:
    assert request.session is not None
    subscriptions, registry = request.session.subscriptions, request.server.registry
    if len(subscriptions) >= MAX_SUBSCRIPTIONS:
        raise invalid_params(f"{MAX_SUBSCRIPTIONS} resources are subscribed already", "unsubscribe from some first")
    uri = _uri(request)
    if uri in subscriptions:
        return b"{}"
    subscriptions.add(uri)
    pending = registry.watch(uri)
    if not pending:
        return b"{}"

    async def watched() -> None:
        try:
            await asyncio.gather(*pending)
        except BaseException:
            # The session may have ended meanwhile, and given everything back.
            if uri in subscriptions:
                subscriptions.discard(uri)
                registry.unwatch(uri)
            raise

    InflightCall(request, watched(), lambda _: b"{}", DEFAULT_TIMEOUT_S)
    return None


def unsubscribe(request: Request) -> bytes:
    assert request.session is not None
    uri = _uri(request)
    if uri in request.session.subscriptions:
        request.session.subscriptions.discard(uri)
        request.server.registry.unwatch(uri)
    return b"{}"


def _uri(request: Request) -> str:
    uri = request.params.uri
    if uri is UNSET:
        raise invalid_params("params.uri is missing", "resources/list shows the URIs there are")
    return uri


def _start_reading(
    request: Request, uri: str
) -> tuple[Resource | ResourceTemplate, Coroutine[Any, Any, Body | RawResult]]:
    found = request.server.registry.find_reader(uri)
    if found is None:
        code = INVALID_PARAMS if request.is_stateless else NOT_FOUND
        raise RpcError(code, f"Resource not found: {uri[:200]}", {"uri": uri})
    reader, values = found
    require_scope(reader.scope, request.grant)
    if request.params.request_state is not UNSET:
        request.recall()
    return reader, reader.read(request) if isinstance(reader, Resource) else reader.read(request, values)


def _timeout_s(reader: Resource | ResourceTemplate) -> float | None:
    return DEFAULT_TIMEOUT_S if reader.shown is None else INNER_LIMITS_ONLY
