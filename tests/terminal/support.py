"""A terminal for tests: real shells, ended with the block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from dari.terminal.multiplexer import Multiplexer
from dari.terminal.policy.config import Security
from dari.terminal.service import TerminalService, local_service


@dataclass(frozen=True)
class House:
    service: TerminalService
    multiplexer: Multiplexer


@asynccontextmanager
async def house_in(home: Path, security: Security | None = None) -> AsyncIterator[House]:
    async with Multiplexer(security, home / "mcp.sock", home / "control") as multiplexer:
        yield House(local_service(multiplexer, home / "sessions"), multiplexer)
