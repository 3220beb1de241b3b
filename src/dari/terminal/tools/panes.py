"""Pane tools of design 002 §3.1.1."""

from __future__ import annotations

from msgspec.structs import replace

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.errors import InvalidInput
from dari.terminal.desks.answers import CreatedPane, PaneList, Resized, Success
from dari.terminal.layout.cells import Orientation
from dari.terminal.service import TerminalService
from dari.terminal.tools.approval import with_approval
from dari.terminal.tools.commands import seconds, shown_wait


class PaneTools:
    prefix = "crux"

    def __init__(self, terminal: TerminalService) -> None:
        self._approvals = terminal.approvals
        self._panes = terminal.panes

    @tool(scope="control", idempotent=False, timeout_s=INNER_LIMITS_ONLY)
    async def create_pane(
        self,
        context: Context,
        direction: Orientation = "horizontal",
        cwd: str | None = None,
        command: str | None = None,
        name: str | None = None,
        shell: str | None = None,
        env: dict[str, str] | None = None,
        pane_id: str | None = None,
        focus: bool = True,
        wait_for: str | None = None,
        regex: bool = True,
        timeout_ms: int = 30_000,
    ) -> CreatedPane:
        """Open a shell beside or below a pane, run a command in it, wait for output; returns {id, pid, cwd, mark}."""
        timeout_s = seconds(timeout_ms)
        created = await with_approval(
            self._approvals,
            context,
            lambda approved: self._panes.spawn_pane(
                direction,
                cwd or "",
                command or "",
                None,
                name or "",
                shell or "",
                env,
                pane_id or "",
                focus=focus,
                approved=approved,
                wait_for=wait_for or "",
                is_regex=regex,
                timeout_s=timeout_s,
            ),
        )
        return replace(created, waited=None if created.waited is None else shown_wait(created.waited))

    @tool(scope="control", destructive=True)
    async def close_pane(self, pane_id: str | None = None, force: bool = True) -> Success:
        """Close a pane and end all that runs in it; with force=false a busy pane is refused. Returns {success}."""
        return await self._panes.close_pane(pane_id or "", force)

    @tool(scope="control")
    async def focus_pane(self, pane_id: str) -> Success:
        """Make a pane the one that calls without pane_id mean; returns {success}."""
        return await self._panes.focus_pane(pane_id)

    @tool()
    async def list_panes(self) -> PaneList:
        """List all panes with pid, directory, size, program and state; returns {panes, focused}."""
        return await self._panes.list_panes()

    @tool(scope="control")
    async def resize_pane(self, cols: int, rows: int, pane_id: str | None = None) -> Resized:
        """Give a pane a size in cells; returns {success} and the size that it got."""
        if cols < 1 or rows < 1:
            raise InvalidInput(f"{cols}×{rows} is no size of a pane", "give columns and rows, 1 or more of each")
        return await self._panes.resize_pane(pane_id or "", cols, rows)
