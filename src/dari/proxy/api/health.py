"""Is the daemon well? Real checks, under the names the original's clients know."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dari.daemon.stub import expose
from dari.proxy.configuration import read_address
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.proxy.runtime import ProxyRuntime

_LOW_DISK_BYTES = 200 * 1024 * 1024


class ProxyPong(Struct, frozen=True):
    pong: bool


class ProxyVersion(Struct, frozen=True):
    engine: str
    protocol: int


class HealthCheck(Struct, frozen=True):
    name: str
    status: Literal["ok", "warning", "failed"]
    found: str
    hint: str = ""


class ProxyDiagnosis(Struct, frozen=True):
    """The first eight fields are the original's; `checks` says what was looked at and what to do."""

    socket: str
    state_db: str
    helper_xpc: str
    ca: Literal["loaded", "missing"]
    launch_agent: str
    principal_verification: str
    running: bool
    capture: Literal["running", "stopped"]
    checks: list[HealthCheck]


class HealthApi:
    """`socket` is where the daemon serves; None when the service runs without one."""

    def __init__(self, runtime: ProxyRuntime, socket: Path | None = None) -> None:
        self._runtime = runtime
        self._socket = socket

    @expose("system.ping", "read")
    async def ping(self) -> ProxyPong:
        return ProxyPong(True)

    @expose("system.version", "read")
    async def version(self) -> ProxyVersion:
        return ProxyVersion(VERSION, 1)

    @expose("daemon.doctor", "read")
    async def doctor(self) -> ProxyDiagnosis:
        runtime = self._runtime
        checks = await asyncio.to_thread(self._checks)
        found = {check.name: check for check in checks}
        return ProxyDiagnosis(
            socket=_word(found["socket"]),
            state_db=_word(found["state_db"]),
            helper_xpc="not_needed",
            ca="loaded" if runtime.authority is not None else "missing",
            launch_agent="unmanaged",
            principal_verification="uid_and_token",
            running=runtime.engine.is_running,
            capture="running" if runtime.configuration.capture else "stopped",
            checks=checks,
        )

    def _checks(self) -> list[HealthCheck]:
        return [self._check_socket(), self._check_state(), self._check_bodies(), self._check_disk(), self._check_ca(),
                self._check_listener(), self._check_clients(), *self._notes()]  # fmt: skip

    def _check_socket(self) -> HealthCheck:
        if self._socket is None:
            return HealthCheck("socket", "ok", "served in this process, without a socket")
        try:
            info = self._socket.lstat()
        except OSError as error:
            return HealthCheck("socket", "failed", f"{self._socket}: {error.strerror}", "restart crabd")
        if not stat.S_ISSOCK(info.st_mode) or info.st_uid != os.geteuid():
            return HealthCheck("socket", "failed", f"{self._socket} is not our socket", "restart crabd")
        if stat.S_IMODE(info.st_mode) & 0o077 and stat.S_IMODE(self._socket.parent.stat().st_mode) & 0o077:
            return HealthCheck(
                "socket", "warning", f"{self._socket} can be opened by others", f"chmod 600 {self._socket}"
            )
        return HealthCheck("socket", "ok", str(self._socket))

    def _check_state(self) -> HealthCheck:
        store = self._runtime.recording.store
        if store is None:
            return HealthCheck("state_db", "warning", "traffic is kept in memory only", "")
        if store.problem is not None:
            return HealthCheck(
                "state_db", "failed", f"{store.problem} ({store.lost} flows lost)", "check disk and folder"
            )
        return HealthCheck("state_db", "ok", f"{self._runtime.files.traffic} (last flow {store.last_id()})")

    def _check_bodies(self) -> HealthCheck:
        bodies = self._runtime.recording.bodies
        if bodies is None:
            return HealthCheck("bodies", "warning", "only the first bytes of bodies are kept", "")
        kept = f"{bodies.used_bytes} bytes kept, {bodies.evicted} bodies evicted"
        if bodies.failed:
            return HealthCheck(
                "bodies", "failed", f"{bodies.failed} bodies could not be written; {kept}", "check the disk"
            )
        return HealthCheck("bodies", "ok", kept)

    def _check_disk(self) -> HealthCheck:
        free = shutil.disk_usage(self._runtime.files.directory).free
        if free < _LOW_DISK_BYTES:
            return HealthCheck("disk", "warning", f"{free >> 20} MiB free", "free some space: captures need it")
        return HealthCheck("disk", "ok", f"{free >> 20} MiB free")

    def _check_ca(self) -> HealthCheck:
        authority = self._runtime.authority
        if authority is None:
            return HealthCheck("ca", "warning", "no CA: HTTPS passes through unread", "crab_ca_generate makes one")
        for warning in authority.warnings():
            problem, _, hint = warning.partition("; ")
            is_over = authority.days_left < 0 or "not valid before" in problem
            return HealthCheck("ca", "failed" if is_over else "warning", problem, hint)
        pinned = sorted(self._runtime.engine.pinned_hosts)
        if pinned:
            shown = ", ".join(pinned[:5])
            hint = "make these clients trust the CA; a pinned client needs crab_engine_set_policy"
            return HealthCheck("ca", "warning", f"clients refused our certificate for {shown}", hint)
        return HealthCheck("ca", "ok", f"{authority.days_left} days left, SHA-256 {authority.fingerprint[:23]}…")

    def _check_listener(self) -> HealthCheck:
        runtime = self._runtime
        if not runtime.engine.is_running:
            return HealthCheck("listener", "ok", f"stopped; {runtime.configuration.listen_addr} when started")
        return HealthCheck("listener", "ok", f"{runtime.address}, {runtime.engine.connection_count} connections")

    def _check_clients(self) -> HealthCheck:
        now = self._runtime.configuration
        host, _ = read_address(now.listen_addr)
        if host in ("127.0.0.1", "::1") or host.startswith("127.") or now.client_allowlist.enabled:
            return HealthCheck("clients", "ok", "this machine and listed devices only")
        hint = "crab_engine_set_client_allowlist names the devices that may use it"
        return HealthCheck(
            "clients", "warning", f"every machine that reaches {now.listen_addr} may use the proxy", hint
        )

    def _notes(self) -> list[HealthCheck]:
        return [HealthCheck("start", "warning", note, "") for note in self._runtime.files.notes]


def _word(check: HealthCheck) -> str:
    return "ok" if check.status == "ok" else check.found
