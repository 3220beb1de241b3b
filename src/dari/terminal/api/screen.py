"""What panes show: output, scrollback, state, selection, directory, process, picture."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import InvalidInput
from dari.terminal.engine.engine import Engine
from dari.terminal.multiplexer import Change, Multiplexer, PaneGone
from dari.terminal.panes.pane import Pane
from dari.terminal.panes.shell_integration import kind_of

if TYPE_CHECKING:
    from dari.terminal.screenshot.painter import Painter


class PaneOutput(Struct, frozen=True):
    text: str
    line_count: int
    mark: int = 0
    """The place in the output now, for `since` of crux_wait_for_output."""


class WorkingDirectory(Struct, frozen=True):
    cwd: str


class RunningProcess(Struct, frozen=True):
    name: str
    pid: int
    command_line: str = ""
    is_shell: bool = False


class CursorState(Struct, frozen=True):
    col: int
    row: int
    shape: str = "block"
    is_visible: bool = True


class PaneState(Struct, frozen=True, kw_only=True):
    cols: int
    rows: int
    cursor: CursorState
    scroll_pos: int
    """Rows that the view is scrolled back."""
    id: str
    name: str = ""
    title: str = ""
    cwd: str = ""
    pid: int = 0
    tty: str = ""
    is_alive: bool = True
    exit_code: int | None = None
    is_at_prompt: bool = False
    is_asking_secret: bool = False
    is_full_screen: bool = False
    """A program draws on the alternate screen: an editor, a pager."""
    is_focused: bool = False
    is_zoomed: bool = False
    total_rows: int = 0
    mark: int = 0
    """The place in the output now, for `since` of crux_wait_for_output."""
    running_command: str = ""
    running_command_id: str = ""
    """For crux_wait_command and crux_interrupt_command."""
    last_exit_code: int | None = None
    taken_over_by: str = ""
    """The person who types in it; what agents send is refused until it is handed back."""


class PlainText(Struct, frozen=True):
    text: str


class Scrollback(Struct, frozen=True):
    text: str
    total_lines: int
    offset: int = 0
    line_count: int = 0
    next_offset: int | None = None


class Screenshot(Struct, frozen=True):
    """`image` is a PNG in base64."""

    image: str
    width: int
    height: int
    mime_type: str = "image/png"


def last_lines(engine: Engine, count: int) -> str:
    """The last lines with text, at most `count`; empty rows below the last one are left out."""
    wanted = max(count, 1) + engine.rows
    while True:
        text = engine.text(-min(engine.history, wanted), engine.rows, unwrap=True).rstrip("\n ")
        lines = text.split("\n")
        if len(lines) > count or wanted >= engine.history:
            return "\n".join(lines[-count:]) if count else ""
        wanted *= 4


def all_lines(engine: Engine) -> list[str]:
    """Everything that is kept, oldest first."""
    text = engine.text(-engine.history, engine.rows, unwrap=True).rstrip("\n ")
    return text.split("\n") if text else []


def last_formatted(engine: Engine, count: int) -> str:
    """The last rows with their colours as SGR sequences."""
    used = _used_rows(engine)
    start = max(-engine.history, used - count)
    return engine.text(start, used, form="vt")


def _used_rows(engine: Engine) -> int:
    rows = engine.text(0, engine.rows).split("\n")
    used = len(rows)
    while used and not rows[used - 1].strip():
        used -= 1
    return used


DEFAULT_LINES = 50
MAX_LINES = 20_000
MAX_HISTORY_ROWS = 1000


class ScreenApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer
        self._selections: dict[str, str] = {}
        self._scrolled: dict[str, int] = {}
        self._painter: Painter | None = None
        multiplexer.changes.subscribe(self._forget, PaneGone)

    @expose("crux:pane/get-output", "read")
    async def get_output(self, pane_id: str = "", lines: int = DEFAULT_LINES) -> PaneOutput:
        """The last lines that the pane shows or has shown."""
        pane = self._all.find(pane_id)
        text = last_lines(pane.engine, _count(lines))
        return PaneOutput(text, len(text.split("\n")) if text else 0, pane.mark())

    @expose("crux:pane/get-text", "read")
    async def get_raw_text(self, pane_id: str = "", scrollback: bool = False) -> PlainText:
        """The screen as text, or the screen with all that scrolled off it."""
        engine = self._all.find(pane_id).engine
        start = -engine.history if scrollback else 0
        return PlainText(engine.text(start, engine.rows, unwrap=True).rstrip("\n "))

    @expose("crux:pane/get-formatted", "read")
    async def get_formatted_output(self, pane_id: str = "", lines: int = DEFAULT_LINES) -> PlainText:
        """The last rows with colours as SGR sequences, and no other escape sequence."""
        return PlainText(last_formatted(self._all.find(pane_id).engine, _count(lines)))

    @expose("crux:pane/get-scrollback", "read")
    async def get_scrollback(self, pane_id: str = "", offset: int | None = None, limit: int = 1000) -> Scrollback:
        """`limit` lines from `offset`, counted from the oldest line that is kept; without it the newest ones."""
        if offset is not None and offset < 0:
            raise InvalidInput(f"offset must be 0 or more, got {offset}", "0 is the oldest line")
        lines = all_lines(self._all.find(pane_id).engine)
        start = max(0, len(lines) - _count(limit)) if offset is None else offset
        shown = lines[start : start + _count(limit)]
        end = start + len(shown)
        return Scrollback("\n".join(shown), len(lines), start, len(shown), end if end < len(lines) else None)

    @expose("crux:pane/get-cwd", "read")
    async def get_cwd(self, pane_id: str = "") -> WorkingDirectory:
        return WorkingDirectory(self._all.find(pane_id).cwd())

    @expose("crux:pane/get-process", "read")
    async def get_process(self, pane_id: str = "") -> RunningProcess:
        """The program that has the terminal: the shell itself at its prompt."""
        pane = self._all.find(pane_id)
        process = pane.foreground()
        if process is None:
            return RunningProcess("", 0)
        return RunningProcess(process.name, process.pid, process.command_line, kind_of(process.name) is not None)

    @expose("crux:pane/get-state", "read")
    async def get_pane_state(self, pane_id: str = "") -> PaneState:
        pane = self._all.find(pane_id)
        engine, windows = pane.engine, self._all.windows
        cursor, current = engine.cursor, pane.commands.current
        ended = [record for record in pane.commands.records if record.ended is not None]
        return PaneState(
            cols=engine.cols,
            rows=engine.rows,
            cursor=CursorState(cursor.col, cursor.row, cursor.shape, cursor.is_visible),
            scroll_pos=min(self._scrolled.get(pane.id, 0), engine.history),
            id=pane.id,
            name=pane.name,
            title=engine.title,
            cwd=pane.cwd(),
            pid=pane.pid,
            tty=pane.tty,
            is_alive=pane.is_alive,
            exit_code=pane.exit_code,
            is_at_prompt=pane.is_at_prompt,
            is_asking_secret=pane.is_asking_secret,
            is_full_screen=engine.modes.alternate,
            is_focused=windows.focused == pane.id,
            is_zoomed=windows.is_zoomed(pane.id),
            total_rows=engine.history + engine.rows,
            mark=pane.mark(),
            running_command="" if current is None else current.command,
            running_command_id="" if current is None else f"{pane.id}:{current.id}",
            last_exit_code=ended[-1].exit_code if ended else None,
            taken_over_by="" if (holder := self._all.typing(pane).holder) is None else holder.name,
        )

    @expose("crux:pane/scroll", "control")
    async def scroll(self, rows_back: int, pane_id: str = "") -> PaneState:
        """Where the view of the pane begins: rows above the bottom, as far as there is history."""
        pane = self._all.find(pane_id)
        self._scrolled[pane.id] = max(0, min(rows_back, pane.engine.history))
        return await self.get_pane_state(pane.id)

    @expose("crux:pane/get-selection", "read")
    async def get_selection(self, pane_id: str = "") -> PlainText:
        """The text that was selected in the pane; empty when none is."""
        return PlainText(self._selections.get(self._all.find(pane_id).id, ""))

    @expose("crux:pane/select", "control")
    async def select(
        self, pane_id: str = "", start_row: int = 0, start_col: int = 0, end_row: int = -1, end_col: int = 0
    ) -> PlainText:
        """Select from a cell to a cell, the last one not included; rows as in the screen, negative in the history.

        An end before the start selects nothing.
        """
        pane = self._all.find(pane_id)
        text = _between(pane, (start_row, start_col), (end_row, end_col))
        self._selections[pane.id] = text
        return PlainText(text)

    @expose("crux:pane/screenshot", "read", is_slow=True)
    async def screenshot(self, pane_id: str = "", history_rows: int = 0) -> Screenshot:
        """The pane as a picture, with so many rows above the screen."""
        check_history(history_rows)
        pane = self._all.find(pane_id)
        if self._painter is None:
            from dari.terminal.screenshot.painter import Painter

            self._painter = await asyncio.to_thread(Painter)
        start = -min(history_rows, pane.engine.history)
        picture = await asyncio.to_thread(self._painter.paint, pane.engine.grid(start), pane.engine.cursor)
        return Screenshot(b64encode(picture.png).decode(), picture.width, picture.height)

    def _forget(self, change: Change) -> None:
        self._selections.pop(change.pane_id, None)
        self._scrolled.pop(change.pane_id, None)


def _between(pane: Pane, start: tuple[int, int], end: tuple[int, int]) -> str:
    if end <= start:
        return ""
    grid = pane.engine.grid(start[0], end[0] + 1)
    lines = []
    for number, row in enumerate(grid.rows, grid.start):
        first = start[1] if number == start[0] else 0
        last = end[1] if number == end[0] else len(row)
        cells = row.cells[first:last]
        lines.append("".join([cell.text or (" " if cell.width else "") for cell in cells]).rstrip(" "))
    return "\n".join(lines)


def check_history(rows: int) -> None:
    """A picture of ten thousand rows is 180 MB that nobody can look at."""
    if not 0 <= rows <= MAX_HISTORY_ROWS:
        raise InvalidInput(f"history rows must be between 0 and {MAX_HISTORY_ROWS}, got {rows}", "ask for fewer rows")


def _count(lines: int) -> int:
    if not 0 < lines <= MAX_LINES:
        raise InvalidInput(f"lines must be between 1 and {MAX_LINES}, got {lines}", "ask for fewer lines")
    return lines
