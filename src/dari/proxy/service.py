"""The proxy as a service: its desks in one place, here or behind a daemon's socket, with the same methods.

control      start, stop, status, capture, environment for clients
settings     listen address, inspection, throttle, allowlist, transparent mode, upstream, CA files
authority    the CA: generate, status, export
rules        the original's four kinds, and all kinds by id
traffic      log, search, wait, bodies, diff, replay, HAR
breakpoints  what is held, resume
health       ping, version, doctor
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dari.daemon.caller_scopes import require_scope
from dari.daemon.client import DaemonClient
from dari.daemon.errors import DaemonError, from_daemon_error
from dari.daemon.methods import Method
from dari.daemon.stub import exposed_methods, make_stub
from dari.errors import Denied, NotFound
from dari.proxy.authority import AuthorityDesk
from dari.proxy.breakpoints import Breakpoints
from dari.proxy.control import Control
from dari.proxy.disclosure import ADMIN, gated
from dari.proxy.engine_settings import EngineSettings
from dari.proxy.health import Health
from dari.proxy.rule_desk import RuleDesk
from dari.proxy.traffic_desk import TrafficDesk

if TYPE_CHECKING:
    from dari.proxy.machine import Machine

Rpc = Callable[[str, dict[str, object]], Awaitable[object]]


@dataclass(slots=True, frozen=True)
class ProxyService:
    control: Control
    settings: EngineSettings
    authority: AuthorityDesk
    rules: RuleDesk
    traffic: TrafficDesk
    breakpoints: Breakpoints
    health: Health
    rpc: Rpc
    """Any method by its wire name."""

    @property
    def desks(self) -> tuple[object, ...]:
        return tuple(getattr(self, each.name) for each in fields(self) if each.name != "rpc")


def local_service(machine: Machine, socket: Path | None = None) -> ProxyService:
    """The service of a proxy in this process. Nothing leaves it but through the gate (`disclosure`)."""
    desks = (
        gated(Control(machine)),
        gated(EngineSettings(machine)),
        gated(AuthorityDesk(machine)),
        gated(RuleDesk(machine)),
        gated(TrafficDesk(machine)),
        gated(machine.breakpoints),
        gated(Health(machine, socket)),
    )
    table = {method.name: method for desk in desks for method in exposed_methods(desk)}

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

    return ProxyService(*desks, rpc)


def remote_service(client: DaemonClient) -> ProxyService:
    """The same behind a daemon."""

    async def rpc(name: str, params: dict[str, object]) -> object:
        return await client.call(name, params, alone=True)

    return ProxyService(
        make_stub(Control, client),
        make_stub(EngineSettings, client),
        make_stub(AuthorityDesk, client),
        make_stub(RuleDesk, client),
        make_stub(TrafficDesk, client),
        make_stub(Breakpoints, client),
        make_stub(Health, client),
        rpc,
    )


def daemon_methods(service: ProxyService) -> list[Method]:
    """What a daemon serves beside its own `system.*`."""
    own = ("system.ping", "system.version")
    return [method for desk in service.desks for method in exposed_methods(desk, without=own)]
