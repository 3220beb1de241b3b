"""A command that is started and not waited for."""

from __future__ import annotations

from dari.terminal.multiplexer import Multiplexer
from dari.terminal.panes.commands import CommandRecord
from dari.terminal.panes.execution import PROMPT_S
from dari.terminal.panes.pane import Pane


async def start_command(multiplexer: Multiplexer, pane: Pane, command: str, approved: str = "") -> CommandRecord:
    """Judge the command where the pane is now and start it; a shell that has just been opened is waited for."""
    multiplexer.guard.check(command, pane.cwd(), pane.kind or "bash", approved)
    if pane.kind is not None and pane.commands.zone != "running":
        await pane.commands.ready(PROMPT_S)
    sent = await pane.execute(command, 0.0)
    return pane.commands.find(sent.command_id)
