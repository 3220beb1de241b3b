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
    def __init__(self, runtime: ProxyRuntime) -> None:
        self._runtime = runtime

    @expose("proxy.start", "control")
    async def start(self) -> ProxyState:
        """Listen; Conflict when it does already, Failed when the port is taken."""
        await self._runtime.start()
        return ProxyState("running")

    @expose("proxy.stop", "control")
    async def stop(self) -> ProxyState:
        """End every connection; no error when it does not run."""
        await self._runtime.stop()
        return ProxyState("stopped")

    @expose("proxy.status", "read")
    async def status(self) -> ProxyState:
        return ProxyState("running" if self._runtime.engine.is_running else "stopped")

    @expose("proxy.info", "read")
    async def info(self) -> ProxyInfo:
        runtime = self._runtime
        bound = runtime.engine.transparent_address
        return ProxyInfo(
            status=(await self.status()).status,
            address=runtime.address,
            listen_addr=runtime.configuration.listen_addr,
            transparent_address=f"{bound[0]}:{bound[1]}" if bound else None,
            capture=(await self.capture_status()).status,
            connections=runtime.engine.connection_count,
            rules=len(runtime.book),
            requests_recorded=len(runtime.recording.ring.newest()),
            ca="loaded" if runtime.authority is not None else "missing",
            pinned_hosts=sorted(runtime.engine.pinned_hosts),
            notes=list(runtime.files.notes),
        )

    @expose("proxy.environment", "read")
    async def environment(self, shell: Shell = "sh") -> Snippet:
        """What makes a program use the proxy and trust its CA."""
        runtime = self._runtime
        runtime.need_running()
        if runtime.authority is None:
            return snippet(runtime.address or "", None, None, shell)
        bundle = await asyncio.to_thread(runtime.files.save_bundle, trusted_roots(runtime.authority.pem))
        return snippet(runtime.address or "", runtime.configuration.ca_cert_path, str(bundle), shell)

    @expose("capture.start", "control")
    async def capture_start(self) -> ProxyState:
        await self._runtime.configure(capture=True)
        return ProxyState("running")

    @expose("capture.stop", "control")
    async def capture_stop(self) -> ProxyState:
        """Requests go on through the proxy and are not recorded; those that began are."""
        await self._runtime.configure(capture=False)
        return ProxyState("stopped")

    @expose("capture.status", "read")
    async def capture_status(self) -> ProxyState:
        return ProxyState("running" if self._runtime.configuration.capture else "stopped")
