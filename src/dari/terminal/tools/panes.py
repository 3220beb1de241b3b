"""Pane tools of design 002 §3.1.1."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.errors import InvalidInput
from dari.terminal.api.commands import Success
from dari.terminal.api.panes import CreatedPane, PaneList, ResizeResult
from dari.terminal.layout.cells import Orientation
from dari.terminal.limits import DEFAULT_WAIT_MS, to_seconds
from dari.terminal.service import TerminalService
from dari.terminal.tools.approval import with_approval
from dari.terminal.tools.arguments import PaneId, Regex, WaitMs
from dari.terminal.tools.commands import sanitize_wait


class PaneTools:
    prefix = "crux"

    def __init__(self, terminal: TerminalService) -> None:
        self._approvals = terminal.approvals
        self._panes = terminal.panes

    @tool(scope="control", idempotent=False, timeout_s=INNER_LIMITS_ONLY)
    async def create_pane(
        self,
        context: Context,
        direction: Annotated[
            Orientation, Meta(description="where: horizontal is to the right, vertical below")
        ] = "horizontal",
        cwd: Annotated[str, Meta(description="directory to start in; left out: that of the pane it stands beside")]
        | None = None,
        command: Annotated[
            str, Meta(description="a line of shell that is typed at its first prompt, such as npm start")
        ]
        | None = None,
        name: Annotated[str, Meta(description="a name to call the pane by, such as server")] | None = None,
        shell: Annotated[str, Meta(description="bash, zsh, fish, sh or the path of a shell; left out: the user's own")]
        | None = None,
        env: Annotated[dict[str, str], Meta(description="environment variables for it, on top of the usual ones")]
        | None = None,
        pane_id: Annotated[str, Meta(description="the pane that is split, by id or name; left out: the focused one")]
        | None = None,
        focus: Annotated[
            bool, Meta(description="false: calls without pane_id go on to mean the pane that they meant")
        ] = True,
        wait_for: Annotated[str, Meta(description="return once this was printed, such as listening on port (\\d+)")]
        | None = None,
        regex: Regex = True,
        timeout_ms: WaitMs = DEFAULT_WAIT_MS,
    ) -> CreatedPane:
        """Open a shell beside or below a pane, run a command in it, wait for output; returns {id, pid, cwd, mark}."""
        timeout_s = to_seconds(timeout_ms)
        created = await with_approval(
            self._approvals,
            context,
            lambda: self._panes.spawn_pane(
                direction,
                cwd or "",
                command or "",
                None,
                name or "",
                shell or "",
                env,
                pane_id or "",
                focus=focus,
                wait_for=wait_for or "",
                is_regex=regex,
                timeout_s=timeout_s,
            ),
        )
        return replace(created, waited=None if created.waited is None else sanitize_wait(created.waited))

    @tool(scope="control", destructive=True)
    async def close_pane(
        self,
        pane_id: PaneId | None = None,
        force: Annotated[bool, Meta(description="false: refuse while a program runs in it")] = True,
    ) -> Success:
        """Close a pane and end all that runs in it; with force=false a busy pane is refused. Returns {success}."""
        return await self._panes.close_pane(pane_id or "", force)

    @tool(scope="control")
    async def focus_pane(self, pane_id: PaneId) -> Success:
        """Make a pane the one that calls without pane_id mean; returns {success}."""
        return await self._panes.focus_pane(pane_id)

    @tool()
    async def list_panes(self) -> PaneList:
        """List all panes with pid, directory, size, program and state; returns {panes, focused}."""
        return await self._panes.list_panes()

    @tool(scope="control")
    async def resize_pane(
        self,
        cols: Annotated[int, Meta(description="columns, 1 to 2000")],
        rows: Annotated[int, Meta(description="rows, 1 to 2000")],
        pane_id: PaneId | None = None,
    ) -> ResizeResult:
        """Give a pane a size in cells; returns {success} and the size that it got."""
        if cols < 1 or rows < 1:
            raise InvalidInput(f"cols and rows must be 1 or more, got {cols} and {rows}", "give both in cells")
        return await self._panes.resize_pane(pane_id or "", cols, rows)
