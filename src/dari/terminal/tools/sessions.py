"""Session tools of design 002 §3.1.4."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.terminal.api.sessions import RestoreResult, SaveResult, SessionList
from dari.terminal.service import TerminalService
from dari.terminal.tools.approval import with_approval


class SessionTools:
    prefix = "crux"

    def __init__(self, terminal: TerminalService) -> None:
        self._approvals = terminal.approvals
        self._sessions = terminal.sessions

    @tool(scope="control", idempotent=False)
    async def save_session(
        self,
        name: Annotated[str, Meta(description="a name to find it by; left out: the time")] | None = None,
        scrollback: Annotated[bool, Meta(description="false: leave what panes show out")] = True,
    ) -> SaveResult:
        """Save all panes: layout, directories, environment, scrollback, commands; returns {session_id}."""
        return await self._sessions.save_session(name or "", scrollback)

    @tool(scope="control", idempotent=False, timeout_s=INNER_LIMITS_ONLY)
    async def restore_session(
        self,
        context: Context,
        session_id: Annotated[str, Meta(description="session_id of crux_save_session or crux_list_sessions")],
        commands: Annotated[bool, Meta(description="true: run again what was running")] = False,
        replace: Annotated[bool, Meta(description="true: close the panes that are open")] = False,
    ) -> RestoreResult:
        """Open the panes of a saved session, with commands=true run what was running; returns {success, panes}."""
        return await with_approval(
            self._approvals,
            context,
            lambda: self._sessions.restore_session(session_id, commands, replace),
        )

    @tool()
    async def list_sessions(self) -> SessionList:
        """List saved sessions, newest first: {sessions}."""
        return await self._sessions.list_sessions()
