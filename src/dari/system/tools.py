"""The built-in toolkit: is it alive, what is it, is it healthy."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from dari.core.tool import tool
from dari.mcp.versions import SUPPORTED
from dari.system.check import Check, Status, worst
from dari.system.service import SystemService
from dari.version import VERSION


class Pong(Struct):
    pong: bool


class Version(Struct):
    dari: str
    protocols: list[str]
    parts: dict[str, str]


class Diagnosis(Struct):
    status: Status
    checks: list[Check]


class SystemTools:
    """Tools named `dari_<method>`."""

    prefix = "dari"

    def __init__(self, system: SystemService) -> None:
        self._system = system

    @tool()
    async def ping(self) -> Pong:
        """Answer at once; returns {pong: true}."""
        return Pong(pong=True)

    @tool()
    async def version(self) -> Version:
        """Tell the version of Dari, the protocol revisions it speaks and the libraries under it."""
        return Version(VERSION, list(SUPPORTED), self._system.parts())

    @tool()
    async def doctor(self) -> Diagnosis:
        """Check token file, socket, port, home directory and versions; returns one entry per check with a hint."""
        checks = await asyncio.to_thread(self._system.checks)
        return Diagnosis(worst(checks), checks)
