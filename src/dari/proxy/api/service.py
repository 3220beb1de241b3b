"""The proxy as a service: its apis in one place, here or behind a daemon's socket, with the same methods.

control      start, stop, status, capture, environment for clients
settings     listen address, inspection, throttle, allowlist, transparent mode, upstream, CA files
ca           the CA: generate, status, export
rules        the original's four kinds, and all kinds by id
traffic      log, search, wait, bodies, diff, replay, HAR
table        rows of requests for a page, and their changes
breakpoints  what is held, resume
health       ping, version, doctor
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dari.daemon.caller_scopes import require_scope
from dari.daemon.client import DaemonClient
from dari.daemon.errors import DaemonError, from_daemon_error
from dari.daemon.methods import Method
from dari.daemon.stub import exposed_methods, iter_exposed, make_stub
from dari.errors import DariError, Denied, NotFound
from dari.proxy.api.breakpoints import BreakpointsApi
from dari.proxy.api.ca import CaApi
from dari.proxy.api.control import ControlApi
from dari.proxy.api.flow_table import FlowTableApi
from dari.proxy.api.health import HealthApi
from dari.proxy.api.rules import RulesApi
from dari.proxy.api.settings import SettingsApi
from dari.proxy.api.traffic import TrafficApi
from dari.text.redact import redact_error, redact_secrets

if TYPE_CHECKING:
    from dari.proxy.runtime import ProxyRuntime

ADMIN = "admin"
S = TypeVar("S")
_INLINE_BYTES = 8 * 1024
"""More than this is searched in a thread: 100 requests take 20 ms, in which the proxy has others to serve."""


def hide_secrets_of(service: S) -> S:
    """The same service, sharing its state, with every exposed method behind the gate."""
    cls = type(service)
    wrapped: dict[str, Any] = {
        name: _hide_secrets(function) for name, function, mark in iter_exposed(cls) if mark.scope != ADMIN
    }
    twin: S = object.__new__(type(cls.__name__, (cls,), wrapped))
    twin.__dict__ = service.__dict__  # one state: a change through either is a change
    return twin


def _hide_secrets(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(function)
    async def shown(*positional: Any, **named: Any) -> Any:
        try:
            value = await function(*positional, **named)
        except DariError as error:
            raise redact_error(error) from error.__cause__
        if len(msgspec.json.encode(value)) <= _INLINE_BYTES:
            return redact_secrets(value)
        return await asyncio.to_thread(redact_secrets, value)

    return shown


Rpc = Callable[[str, dict[str, object]], Awaitable[object]]


@dataclass(slots=True, frozen=True)
class ProxyService:
    control: ControlApi
    settings: SettingsApi
    ca: CaApi
    rules: RulesApi
    traffic: TrafficApi
    table: FlowTableApi
    breakpoints: BreakpointsApi
    health: HealthApi
    rpc: Rpc
    """Any method by its wire name."""

    @property
    def apis(self) -> tuple[object, ...]:
        return tuple(getattr(self, each.name) for each in fields(self) if each.name != "rpc")


def local_service(runtime: ProxyRuntime, socket: Path | None = None) -> ProxyService:
    """The service of a proxy in this process, with secrets hidden in every result and error."""
    apis = (
        hide_secrets_of(ControlApi(runtime)),
        hide_secrets_of(SettingsApi(runtime)),
        hide_secrets_of(CaApi(runtime)),
        hide_secrets_of(RulesApi(runtime)),
        hide_secrets_of(TrafficApi(runtime)),
        hide_secrets_of(FlowTableApi(runtime)),
        hide_secrets_of(runtime.breakpoints),
        hide_secrets_of(HealthApi(runtime, socket)),
    )
    table = {method.name: method for api in apis for method in exposed_methods(api)}

    async def rpc(name: str, params: dict[str, object]) -> object:
        method = table.get(name)
        if method is None:
            raise NotFound(f"unknown method: {name}", f"methods: {', '.join(sorted(table))}")
        if method.scope == ADMIN:
            raise Denied("insufficient scope", f"{name} shows secrets: it is for a person, with dari proxy … --reveal")
        require_scope(method.scope, f"{name} is not for this caller")
        try:
            return msgspec.to_builtins(await method.call(msgspec.json.encode(params)))
        except DaemonError as refusal:
            raise from_daemon_error(refusal, {}) from refusal

    return ProxyService(*apis, rpc)


def remote_service(client: DaemonClient) -> ProxyService:
    """The same behind a daemon."""

    async def rpc(name: str, params: dict[str, object]) -> object:
        return await client.call(name, params, alone=True)

    return ProxyService(
        control=make_stub(ControlApi, client),
        settings=make_stub(SettingsApi, client),
        ca=make_stub(CaApi, client),
        rules=make_stub(RulesApi, client),
        traffic=make_stub(TrafficApi, client),
        table=make_stub(FlowTableApi, client),
        breakpoints=make_stub(BreakpointsApi, client),
        health=make_stub(HealthApi, client),
        rpc=rpc,
    )


def daemon_methods(service: ProxyService) -> list[Method]:
    """What a daemon serves beside its own `system.*`."""
    own = ("system.ping", "system.version")
    return [method for api in service.apis for method in exposed_methods(api, without=own)]
