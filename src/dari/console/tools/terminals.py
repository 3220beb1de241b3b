"""`dari_terminal_*`: panes in a person's hands. What agents may do too is called by its `crux_*` tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from dari.core.scopes import ADMIN
from dari.core.tool import tool
from dari.terminal.api.commands import Success
from dari.terminal.api.watch import BlockOutput, HeldPane, SearchHits, StyledRows, TypedPiece

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

PaneId = Annotated[str, Meta(description="the pane, by id or name")]
Action = Literal["press", "release", "move"]
Button = Literal["left", "middle", "right", "wheel_up", "wheel_down", "none"]
Modifier = Literal["shift", "alt", "ctrl"]


class ConsoleTerminalTools:
    """Tools named `dari_terminal_<method>`."""

    prefix = "dari_terminal"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._backends = backends

    @tool(scope=ADMIN, idempotent=False)
    async def open(
        self,
        cwd: Annotated[str, Meta(description="directory to start in; empty: that of the focused pane")] = "",
        name: Annotated[str, Meta(description="a name to call the pane by")] = "",
        where: Annotated[
            Literal["split", "tab", "window"], Meta(description="beside `target`, in a tab or a window of its own")
        ] = "window",
        direction: Annotated[
            Literal["horizontal", "vertical"], Meta(description="of a split: to the right, or below")
        ] = "horizontal",
        target: Annotated[str, Meta(description="the pane that is split; empty: the focused one")] = "",
    ) -> HeldPane:
        """Open a shell for a person and take it over; starts the terminal's daemon. Returns {pane_id, holder}."""
        terminal = self._backends.terminal(True)
        pane = await terminal.panes.spawn_pane(direction, cwd, name=name, target=target, where=where)
        return await terminal.watch.take_over(pane.id)

    @tool(scope=ADMIN)
    async def take_over(self, pane_id: PaneId) -> HeldPane:
        """Type into a pane as a person; agents are refused until it is handed back. Returns {pane_id, holder}."""
        return await self._backends.terminal(False).watch.take_over(pane_id)

    @tool(scope=ADMIN)
    async def hand_back(self, pane_id: PaneId) -> HeldPane:
        """Let agents type into the pane again; returns {pane_id}."""
        return await self._backends.terminal(False).watch.hand_back(pane_id)

    @tool(scope=ADMIN, idempotent=False, is_recorded=False)
    async def type(
        self,
        pane_id: PaneId,
        pieces: Annotated[list[TypedPiece], Meta(description="text, keys by name and pastes, in order")],
    ) -> Success:
        """Type into a pane that was taken over; returns {success}."""
        return await self._backends.terminal(False).watch.type_pieces(pane_id, pieces)

    @tool(scope=ADMIN, idempotent=False, is_recorded=False)
    async def mouse(
        self,
        pane_id: PaneId,
        action: Annotated[Action, Meta(description="what the button does")],
        button: Annotated[Button, Meta(description="which one")],
        col: Annotated[int, Meta(description="column of the cell, from 0")],
        row: Annotated[int, Meta(description="row of the cell, from 0")],
        modifiers: Annotated[list[Modifier], Meta(description="keys that are held")] | None = None,
    ) -> Success:
        """Use the mouse in a pane that was taken over; returns {success}."""
        return await self._backends.terminal(False).watch.use_mouse(pane_id, action, button, col, row, modifiers)

    @tool(scope=ADMIN, read_only=True, output="as_is", is_recorded=False)
    async def rows(
        self,
        pane_id: PaneId,
        start: Annotated[int, Meta(description="the first row; 0 is the top of the screen, history is negative")],
        count: Annotated[int, Meta(description="how many, at most 2000", ge=1, le=2000)] = 200,
        seen_history: Annotated[int, Meta(description="the history that `start` was counted with")] | None = None,
    ) -> StyledRows:
        """Return rows of a pane's screen and history with their colours: {start, rows, history, screen_rows}."""
        return await self._backends.terminal(False).watch.styled_rows(pane_id, start, count, seen_history)

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def search(
        self,
        pane_id: PaneId,
        text: Annotated[str, Meta(description="what to look for; small letters find capital ones, too")],
        regex: Annotated[bool, Meta(description="the text is a regular expression")] = False,
    ) -> SearchHits:
        """Search a pane's screen and history, newest row first; returns {hits, history, is_cut}."""
        return await self._backends.terminal(False).watch.search_rows(pane_id, text, regex)

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def command(
        self, command_id: Annotated[str, Meta(description="a command of a pane, such as 1:cmd-3")]
    ) -> BlockOutput:
        """Return a command with its output, and the row where it stands: {block, output, row, history}."""
        return await self._backends.terminal(False).watch.command_block(command_id)
