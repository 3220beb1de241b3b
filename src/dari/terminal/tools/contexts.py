"""Context in shells, and snapshots of everything: design 002 §3.2.8 and §3.2.9."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.terminal.api.contexts import ContextList, InjectedContext
from dari.terminal.api.sessions import RestoreResult, SnapshotInfo, SnapshotList
from dari.terminal.service import TerminalService
from dari.terminal.tools.approval import with_approval
from dari.terminal.tools.arguments import PaneId


class ContextTools:
    prefix = "crux"

    def __init__(self, terminal: TerminalService) -> None:
        self._approvals = terminal.approvals
        self._contexts = terminal.contexts
        self._snapshots = terminal.snapshots

    @tool(scope="control", idempotent=False, timeout_s=INNER_LIMITS_ONLY)
    async def inject_context(
        self,
        context: Context,
        env: Annotated[dict[str, str], Meta(description="environment variables to set")] | None = None,
        aliases: Annotated[dict[str, str], Meta(description="alias name to command")] | None = None,
        functions: Annotated[dict[str, str], Meta(description="function name to body")] | None = None,
        expires_after_commands: Annotated[
            int, Meta(description="take it back after this many commands; left out: never")
        ]
        | None = None,
        pane_id: PaneId | None = None,
    ) -> InjectedContext:
        """Set variables, aliases and functions in a pane's running shell, for some commands; returns {context_id}."""
        return await with_approval(
            self._approvals,
            context,
            lambda: self._contexts.inject(pane_id or "", env, aliases, functions, expires_after_commands),
        )

    @tool(scope="control")
    async def remove_context(
        self, context_id: Annotated[str, Meta(description="context_id of crux_inject_context or crux_list_contexts")]
    ) -> InjectedContext:
        """Take injected variables, aliases and functions out again and put back what was there before."""
        return await self._contexts.remove(context_id)

    @tool()
    async def list_contexts(self, pane_id: PaneId | None = None) -> ContextList:
        """List what is injected into shells, with the commands that are left: {contexts}."""
        return await self._contexts.list_contexts(pane_id or "")

    @tool(scope="control", idempotent=False)
    async def create_snapshot(
        self, name: Annotated[str, Meta(description="a name to find it by; left out: the time")] | None = None
    ) -> SnapshotInfo:
        """Keep all panes as they are: layout, screens, directories, variables, commands; returns {snapshot_id}."""
        return await self._snapshots.create(name or "")

    @tool(scope="control", idempotent=False, destructive=True, timeout_s=INNER_LIMITS_ONLY)
    async def restore_snapshot(
        self,
        context: Context,
        snapshot_id: Annotated[str, Meta(description="snapshot_id of crux_create_snapshot or crux_list_snapshots")],
        commands: Annotated[bool, Meta(description="true: run again what was running")] = False,
        replace: Annotated[bool, Meta(description="true: close the panes that are open")] = False,
    ) -> RestoreResult:
        """Open the panes of a snapshot again, with commands=true run what was running; returns {success, panes}."""
        return await with_approval(
            self._approvals, context, lambda: self._snapshots.restore(snapshot_id, commands, replace)
        )

    @tool()
    async def list_snapshots(self) -> SnapshotList:
        """List snapshots, newest first: {snapshots}."""
        return await self._snapshots.list_snapshots()
