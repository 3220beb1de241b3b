"""A terminal for tests: real shells, ended with the block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from dari.core.approval_service import ApprovalService
from dari.core.approvals import ApprovalQueue
from dari.core.audit.redact import redact_value
from dari.errors import NeedsApproval
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.policy.config import Security
from dari.terminal.service import TerminalService, local_service


@dataclass(frozen=True)
class House:
    service: TerminalService
    multiplexer: Multiplexer
    hub: ApprovalService


def queue_here() -> ApprovalService:
    """The hub's queue of approvals, in this process."""
    return ApprovalService(ApprovalQueue(redact=redact_value))


async def approve(house: House, need: NeedsApproval) -> None:
    """A person agrees to what was asked."""
    await house.service.approvals.answer(need.approval_id, True, "somebody")


@asynccontextmanager
async def house_in(home: Path, security: Security | None = None) -> AsyncIterator[House]:
    async with Multiplexer(security, home / "mcp.sock", home / "control") as multiplexer:
        hub = queue_here()
        yield House(local_service(multiplexer, home / "sessions", hub=hub), multiplexer, hub)
