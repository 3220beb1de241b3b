"""Starting, stopping, and what a client needs to use the proxy."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dari.daemon.stub import expose
from dari.proxy.client_environment import Shell, Snippet, snippet, trusted_roots

if TYPE_CHECKING:
    from dari.proxy.runtime import ProxyRuntime

Status = Literal["running", "stopped"]


class ProxyState(Struct, frozen=True):
    status: Status


class ProxyInfo(Struct, frozen=True):
    """Everything about the run at a glance; `pinned_hosts` refused our certificate."""

    status: Status
    address: str | None
    listen_addr: str
    transparent_address: str | None
    capture: Status
    connections: int
    rules: int
    requests_recorded: int
    ca: Literal["loaded", "missing"]
    pinned_hosts: list[str]
    notes: list[str]


class ControlApi:
    def __init__(self, machine: ProxyRuntime) -> None:
        self._machine = machine

    @expose("proxy.start", "control")
    async def start(self) -> ProxyState:
        """Listen; Conflict when it does already, Failed when the port is taken."""
        await self._machine.start()
        return ProxyState("running")

    @expose("proxy.stop", "control")
    async def stop(self) -> ProxyState:
        """End every connection; no error when it does not run."""
        await self._machine.stop()
        return ProxyState("stopped")

    @expose("proxy.status", "read")
    async def status(self) -> ProxyState:
        return ProxyState("running" if self._machine.engine.is_running else "stopped")

    @expose("proxy.info", "read")
    async def info(self) -> ProxyInfo:
        machine = self._machine
        bound = machine.engine.transparent_address
        return ProxyInfo(
            status=(await self.status()).status,
            address=machine.address,
            listen_addr=machine.configuration.listen_addr,
            transparent_address=f"{bound[0]}:{bound[1]}" if bound else None,
            capture=(await self.capture_status()).status,
            connections=machine.engine.connection_count,
            rules=len(machine.book),
            requests_recorded=len(machine.traffic.ring.newest()),
            ca="loaded" if machine.authority is not None else "missing",
            pinned_hosts=sorted(machine.engine.pinned_hosts),
            notes=list(machine.files.notes),
        )

    @expose("proxy.environment", "read")
    async def environment(self, shell: Shell = "sh") -> Snippet:
        """What makes a program use the proxy and trust its CA."""
        machine = self._machine
        machine.need_running()
        if machine.authority is None:
            return snippet(machine.address or "", None, None, shell)
        bundle = await asyncio.to_thread(machine.files.save_bundle, trusted_roots(machine.authority.pem))
        return snippet(machine.address or "", machine.configuration.ca_cert_path, str(bundle), shell)

    @expose("capture.start", "control")
    async def capture_start(self) -> ProxyState:
        await self._machine.configure(capture=True)
        return ProxyState("running")

    @expose("capture.stop", "control")
    async def capture_stop(self) -> ProxyState:
        """Requests go on through the proxy and are not recorded; those that began are."""
        await self._machine.configure(capture=False)
        return ProxyState("stopped")

    @expose("capture.status", "read")
    async def capture_status(self) -> ProxyState:
        return ProxyState("running" if self._machine.configuration.capture else "stopped")
