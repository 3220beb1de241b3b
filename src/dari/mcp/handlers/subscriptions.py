"""`subscriptions/listen`: the stateless era's stream of changes, one long request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct

from dari.core.events import Event, ListChanged
from dari.mcp.error_mapping import invalid_params
from dari.rpc.codec import encode, notification_message, result_message
from dari.struct_types import ready

if TYPE_CHECKING:
    from dari.mcp.request import Request

MAX_SUBSCRIPTIONS = 1000
OPENING_S = 30.0
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"


class SubscriptionFilter(Struct, rename="camel", omit_defaults=True):
    """Which events a listener asked for."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []

    def wants(self, event: Event) -> bool:
        if isinstance(event, ListChanged):
            return bool(getattr(self, f"{event.kind}_list_changed"))
        return event.uri in self.resource_subscriptions


class ListenStream:
    """An open listen request: acknowledged first, then every event that was asked for, then its result."""

    def __init__(self, request: Request, wanted: SubscriptionFilter) -> None:
        self._request = request
        self._wanted = wanted
        self._meta = {SUBSCRIPTION_ID: request.request_id}
        self._early: list[Event] | None = []
        self._uris = set(wanted.resource_subscriptions)
        request.server.listening.add(self)
        if request.channel.session is not None:
            request.channel.session.running[request.request_id] = self
        request.channel.started(self)
        registry = request.server.registry
        pending = [waiting for uri in sorted(self._uris) for waiting in registry.watch(uri)]
        self._opening = asyncio.ensure_future(self._open_later(pending)) if pending else None
        if not pending:
            self._acknowledge()

    @property
    def transport(self) -> str:
        return self._request.channel.transport

    def tell(self, event: Event) -> None:
        if not self._wanted.wants(event):
            return
        if self._early is not None:
            self._early.append(event)
        elif isinstance(event, ListChanged):
            self._emit(f"notifications/{event.kind}/list_changed", {})
        else:
            self._emit("notifications/resources/updated", {"uri": event.uri})

    def finish(self) -> None:
        """The server ends the stream: the request gets its result."""
        self.cancel("")
        result = encode({"resultType": "complete", "_meta": self._meta})
        self._request.channel.reply(result_message(self._request.request_id, result))

    def cancel(self, reason: str) -> None:
        """The client is gone or does not want more."""
        self._request.server.listening.discard(self)
        if self._opening is not None:
            self._opening.cancel()
        while self._uris:
            self._request.server.registry.unwatch(self._uris.pop())
        session = self._request.channel.session
        if session is not None and session.running.get(self._request.request_id) is self:
            del session.running[self._request.request_id]

    async def _open_later(self, pending: list[Awaitable[None]]) -> None:
        """Other servers are asked for updates first; one that refuses takes nothing from the rest."""
        await asyncio.wait([asyncio.ensure_future(one) for one in pending], timeout=OPENING_S)
        self._acknowledge()

    def _acknowledge(self) -> None:
        self._emit("notifications/subscriptions/acknowledged", {"notifications": self._wanted})
        early, self._early = self._early or [], None
        for event in early:
            self.tell(event)

    def _emit(self, method: str, params: dict[str, Any]) -> None:
        self._request.channel.emit(notification_message(method, {"_meta": self._meta, **params}))


def listen(request: Request) -> None:
    raw = request.params.notifications
    if raw is UNSET:
        raise invalid_params("params.notifications is missing", "name at least one kind, e.g. toolsListChanged")
    try:
        wanted = msgspec.json.decode(raw, type=ready(SubscriptionFilter))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_params(f"params.notifications: {error}") from None
    if len(wanted.resource_subscriptions) > MAX_SUBSCRIPTIONS:
        raise invalid_params(f"more than {MAX_SUBSCRIPTIONS} resourceSubscriptions", "listen to fewer")
    ListenStream(request, wanted)
