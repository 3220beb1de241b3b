"""`resources/*`: list, templates, read, subscribe."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from msgspec import UNSET

from dari.core.content import Contents
from dari.core.grant import require
from dari.core.resource import Body
from dari.core.tool import DEFAULT_TIMEOUT_S
from dari.mcp.calls import Call
from dari.mcp.failures import Fault, invalid_params
from dari.mcp.lists import PASSING
from dari.mcp.request import Request
from dari.rpc.codec import INVALID_PARAMS, encode

MOST_SUBSCRIPTIONS = 1000
NOT_FOUND = -32002
"""Until 2025-11-25; later revisions say Invalid params."""


def list_resources(request: Request) -> bytes:
    return request.server.lists.page("resources", request.params.cursor, request.is_stateless)


def list_templates(request: Request) -> bytes:
    return request.server.lists.page("resourceTemplates", request.params.cursor, request.is_stateless)


def read_resource(request: Request) -> None:
    uri = _uri(request)
    work, mime_type = _reader(request, uri)
    stateless = request.is_stateless

    def render(body: Body) -> bytes:
        contents = encode({"contents": [Contents.of(uri, body, mime_type)]})
        return PASSING + contents[1:] if stateless else contents

    Call(request, work, render, DEFAULT_TIMEOUT_S)


def subscribe(request: Request) -> bytes:
    assert request.session is not None
    subscriptions = request.session.subscriptions
    if len(subscriptions) >= MOST_SUBSCRIPTIONS:
        raise invalid_params(f"{MOST_SUBSCRIPTIONS} resources are subscribed already", "unsubscribe from some first")
    subscriptions.add(_uri(request))
    return b"{}"


def unsubscribe(request: Request) -> bytes:
    assert request.session is not None
    request.session.subscriptions.discard(_uri(request))
    return b"{}"


def _uri(request: Request) -> str:
    uri = request.params.uri
    if uri is UNSET:
        raise invalid_params("params.uri is missing", "resources/list shows the URIs there are")
    return uri


def _reader(request: Request, uri: str) -> tuple[Coroutine[Any, Any, Body], str | None]:
    registry = request.server.registry
    resource = registry.resources.get(uri)
    if resource is not None:
        require(resource.scope, request.grant)
        return resource.read(request), resource.mime_type
    for template in registry.templates.values():
        values = template.match(uri)
        if values is not None:
            require(template.scope, request.grant)
            return template.read(request, values), template.mime_type
    code = INVALID_PARAMS if request.is_stateless else NOT_FOUND
    raise Fault(code, f"Resource not found: {uri[:200]}", {"uri": uri})
