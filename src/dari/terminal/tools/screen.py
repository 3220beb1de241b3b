"""State and content tools of design 002 §3.1.3 and §3.1.4."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict, replace

from dari.core.content import ImageContent, TextContent, ToolResult
from dari.core.tool import tool
from dari.terminal.api.screen import PaneState, PlainText, RunningProcess, Scrollback, WorkingDirectory
from dari.terminal.service import TerminalService
from dari.terminal.tools.arguments import MaxTokens, PaneId
from dari.terminal.tools.commands import fit_page
from dari.terminal.tools.output import DEFAULT_TOKENS, limit_formatted, limit_output


class ScreenTools:
    prefix = "crux"

    def __init__(self, terminal: TerminalService) -> None:
        self._screen = terminal.screen

    @tool()
    async def get_current_directory(self, pane_id: PaneId | None = None) -> WorkingDirectory:
        """Return the working directory of what runs in a pane: {cwd}."""
        return await self._screen.get_cwd(pane_id or "")

    @tool()
    async def get_running_process(self, pane_id: PaneId | None = None) -> RunningProcess:
        """Return the program that has a pane's terminal now: {name, pid, command_line, is_shell}."""
        found = await self._screen.get_process(pane_id or "")
        return replace(found, name=limit_output(found.name).text, command_line=limit_output(found.command_line).text)

    @tool()
    async def get_pane_state(self, pane_id: PaneId | None = None) -> PaneState:
        """Return a pane's {cols, rows, cursor, scroll_pos}, whether it is at a prompt or asks a password."""
        found = await self._screen.get_pane_state(pane_id or "")
        return replace(
            found, title=limit_output(found.title).text, running_command=limit_output(found.running_command, 500).text
        )

    @tool(output="as_is")
    async def get_selection(self, pane_id: PaneId | None = None) -> PlainText:
        """Return the text that is selected in a pane, empty when none is: {text}."""
        return PlainText(limit_output((await self._screen.get_selection(pane_id or "")).text).text)

    @tool(scope="control", output="as_is")
    async def set_selection(
        self,
        start_row: Annotated[int, Meta(description="first row; 0 is the top of the screen, -1 the row above it")],
        start_col: Annotated[int, Meta(description="first column, 0 for the leftmost")],
        end_row: Annotated[int, Meta(description="last row")],
        end_col: Annotated[int, Meta(description="the column behind the last one")],
        pane_id: PaneId | None = None,
    ) -> PlainText:
        """Select cells of a pane up to, not including, the end (history rows are negative); returns {text}."""
        found = await self._screen.select(pane_id or "", start_row, start_col, end_row, end_col)
        return PlainText(limit_output(found.text).text)

    @tool(output="as_is")
    async def get_scrollback(
        self,
        pane_id: PaneId | None = None,
        offset: Annotated[int, Meta(description="first line, 0 for the oldest; left out: the newest lines")]
        | None = None,
        limit: Annotated[int, Meta(description="how many lines")] = 500,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> Scrollback:
        """Return lines of a pane from offset (0: the oldest), else the newest; {text, total_lines, next_offset}."""
        return fit_page(await self._screen.get_scrollback(pane_id or "", offset, limit), max_tokens)

    @tool(output="as_is")
    async def get_raw_text(
        self,
        pane_id: PaneId | None = None,
        scrollback: Annotated[bool, Meta(description="true: with everything that scrolled away")] = False,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> PlainText:
        """Return a pane's screen as plain text, with scrollback=true everything that is kept: {text}."""
        return PlainText(
            limit_output((await self._screen.get_raw_text(pane_id or "", scrollback)).text, max_tokens).text
        )

    @tool(output="as_is")
    async def get_formatted_output(
        self,
        pane_id: PaneId | None = None,
        lines: Annotated[int, Meta(description="how many of the last lines, 1 to 20000")] = 50,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> PlainText:
        """Return the last rows of a pane with their colours as ANSI sequences: {text}."""
        found = await self._screen.get_formatted_output(pane_id or "", lines)
        return PlainText(limit_formatted(found.text, max_tokens).text)

    @tool(output="as_is")
    async def screenshot_pane(
        self,
        pane_id: PaneId | None = None,
        history_rows: Annotated[int, Meta(description="rows of history above the screen, 0 to 1000")] = 0,
        structured: Annotated[
            bool, Meta(description="false: leave the copy of the picture out of the structured result")
        ] = True,
    ) -> ToolResult:
        """Return a pane as a PNG image; structured=false leaves the copy in structuredContent out: {image}."""
        picture = await self._screen.screenshot(pane_id or "", history_rows)
        note = TextContent(text=f"{picture.width}×{picture.height} pixels")
        image = ImageContent(data=picture.image, mime_type=picture.mime_type)
        return ToolResult([image, note], asdict(picture) if structured else {"mime_type": picture.mime_type})
