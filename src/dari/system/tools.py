"""The built-in toolkit: ping, information, health checks."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from dari.core.tool import tool
from dari.mcp.versions import SUPPORTED
from dari.system.service import Check, Status, SystemService, worst_status
from dari.version import VERSION


class PingReply(Struct):
    pong: bool


class VersionInfo(Struct):
    dari: str
    protocols: list[str]
    parts: dict[str, str]


class DoctorReport(Struct):
    status: Status
    checks: list[Check]


class DariTools:
    """Tools named `dari_<method>`."""

    prefix = "dari"

    def __init__(self, system: SystemService) -> None:
        self._system = system

    @tool()
    async def ping(self) -> PingReply:
        """Answer at once; returns {pong: true}."""
        return PingReply(pong=True)

    @tool()
    async def version(self) -> VersionInfo:
        """Tell the version of Dari, the protocol revisions it speaks and the libraries under it."""
        return VersionInfo(VERSION, list(SUPPORTED), self._system.parts())

    @tool()
    async def doctor(self) -> DoctorReport:
        """Check token file, socket, port, home directory and versions; returns one entry per check with a hint."""
        checks = await asyncio.to_thread(self._system.checks)
        return DoctorReport(worst_status(checks), checks)
