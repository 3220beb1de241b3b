"""One pane's screen for pages: rows as styled text, each with a version, so that all followers get what changed.

A row is text with SGR sequences and three marks of our own, because a page cannot know how wide we draw a character:

    \\x01字\\x03   takes two columns          \\x02é\\x03   several characters that take one column

Nothing else below U+0020 is in it. Trailing blanks without a style are left out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from dari.terminal.engine.grid import Cell, Row
from dari.terminal.multiplexer import Change, Multiplexer, PaneChanged, PaneGone, PaneOpened
from dari.terminal.panes import events
from dari.terminal.panes.commands import CommandRecord
from dari.terminal.panes.pane import Pane
from dari.terminal.take_over import Typist
from dari.terminal.viewers.frames import style_of
from dari.terminal.viewers.viewer import HELD_S
from dari.text.invisible import find_hidden
from dari.text.sanitize import escape_hidden

FRAME_S = 1 / 30
COST_RATIO = 4
"""A screen that takes long to draw (large, all of it new) is drawn less often: a quarter of a processor at most."""
MAX_BLOCKS = 100
MAX_COMMAND_CHARS = 2000
WIDE, CLUSTER, CELL_END = "\x01", "\x02", "\x03"


def encode_row(cells: Sequence[Cell]) -> str:
    """The row as a page reads it."""
    end = len(cells)
    while end and _is_blank(cells[end - 1]):
        end -= 1
    parts: list[str] = []
    style = ""
    for col, cell in enumerate(cells[:end]):
        if not cell.width:
            if not col or cells[col - 1].width != 2:  # the other half is gone
                parts.append(" ")
            continue
        wanted = style_of(cell, "true", cell.fg_index, cell.bg_index)
        if wanted != style:
            parts.append(f"\x1b[0{wanted}m")
            style = wanted
        text = cell.text
        if cell.width == 2:
            parts.append(f"{WIDE}{_shown(text)}{CELL_END}")
        elif len(text) <= 1:
            parts.append(" " if not text or (not text.isascii() and _is_hidden(text)) else text)
        else:
            parts.append(f"{CLUSTER}{_shown(text)}{CELL_END}")
    return "".join(parts)


def _is_blank(cell: Cell) -> bool:
    plain = cell.bg is None and not (cell.inverse or cell.underline or cell.strike or cell.overline)
    return plain and cell.width == 1 and cell.text in ("", " ")


@lru_cache(2048)
def _shown(text: str) -> str:
    """Without what reorders or hides text: a cell is one character for the eye."""
    for hidden in reversed(find_hidden(text)):
        text = text[: hidden.start] + text[hidden.start + hidden.count :]
    return text or " "


@lru_cache(2048)
def _is_hidden(char: str) -> bool:
    return bool(find_hidden(char))


class CommandBlock(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command of a pane: who typed it, where, and how it ended. `exit_code` is absent while it runs."""

    id: str
    command: str
    cwd: str = ""
    started: float = 0.0
    duration_ms: float = 0.0
    is_running: bool = False
    exit_code: int | None = None
    typists: tuple[Typist, ...] = ()
    is_exact: bool = False
    """`command` is what was run, with nothing left out and nothing shown in another form: it may be run again."""


class PaneFacts(Struct, frozen=True, kw_only=True):
    """What a page shows around the screen."""

    cols: int
    rows: int
    name: str
    title: str = ""
    cwd: str = ""
    is_alternate: bool = False
    mouse: str = "off"
    knows_paste: bool = False
    """The program takes pasted text as such; in others a line end in it is Enter."""
    is_at_prompt: bool = False
    is_asking_secret: bool = False
    holder: Typist | None = None
    times_taken: int = 0
    last_typist: Typist | None = None
    exit_code: int | None = None


class ScreenFrame(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What changed after a version; with `is_whole`, everything. `cursor` is column, row and shape, or absent."""

    version: int
    is_whole: bool = False
    is_over: bool = False
    rows: list[tuple[int, str]] = []
    cursor: tuple[int, int, Literal["block", "bar", "underline"]] | None = None
    history: int = 0
    facts: PaneFacts | None = None
    blocks: list[CommandBlock] = []
    bells: int = 0
    """Counted since the pane is followed."""


class PaneScreen:
    """What followers of one pane share. `version` counts up from the first one given."""

    def __init__(self, multiplexer: Multiplexer, pane_id: str, version: int) -> None:
        self._all = multiplexer
        self._pane_id = pane_id
        self._pane: Pane | None = None
        self._start = self.version = version
        self._rows: list[Row] = []
        self._texts: list[str] = []
        self._row_versions: list[int] = []
        self._facts: PaneFacts | None = None
        self._facts_version = version
        self._cursor: tuple[int, int, Literal["block", "bar", "underline"]] | None = None
        self._blocks: dict[str, tuple[int, CommandBlock]] = {}
        self._bells = 0
        self._is_stale = True
        self._drawn_at = self._cost_s = 0.0
        self._changed = asyncio.Event()
        self._stop = multiplexer.changes.subscribe(self._hear)
        self.followers = 0

    def close(self) -> None:
        self._stop()

    async def next_frame(self, known: int, timeout_s: float) -> ScreenFrame:
        """What came after the version `known`; the same version when nothing did within the time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        self.followers += 1
        try:
            while True:
                due = self._refresh(loop.time()) if self._is_stale else 0.0
                if self._pane_id not in self._all.panes or self.version != known or loop.time() >= deadline:
                    return self._frame(known)
                if self._is_stale:  # a program that prints without end changes it a thousand times until then
                    await asyncio.sleep(max(0.0, due - loop.time()))
                else:
                    self._changed.clear()
                    await self._wait(deadline)
        finally:
            self.followers -= 1

    async def _wait(self, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._changed.wait()
        except TimeoutError:
            self._is_stale = True  # some facts change without an event: a hold that ends by itself

    def _frame(self, known: int) -> ScreenFrame:
        if self._pane_id not in self._all.panes:
            return ScreenFrame(version=self.version, is_over=True)
        is_whole = not self._start < known <= self.version
        since = self._start if is_whole else known
        return ScreenFrame(
            version=self.version,
            is_whole=is_whole,
            rows=[
                (number, text)
                for number, (text, version) in enumerate(zip(self._texts, self._row_versions, strict=True))
                if version > since
            ],
            cursor=self._cursor,
            history=self._pane.engine.history if self._pane is not None else 0,
            facts=self._facts if is_whole or self._facts_version > since else None,
            blocks=[block for version, block in self._blocks.values() if version > since],
            bells=self._bells,
        )

    def _refresh(self, now: float) -> float:
        """Look at the pane, unless that was done a moment ago: then the time when to look again."""
        pane = self._all.panes.get(self._pane_id)
        if pane is None:
            self._is_stale = False
            return now
        engine = pane.engine
        pause = HELD_S if self._pane is pane and engine.modes.synchronized else FRAME_S
        due = self._drawn_at + max(pause, self._cost_s * COST_RATIO)
        if now < due:
            return due
        began = time.thread_time()
        self._draw(pane)
        self._cost_s = time.thread_time() - began
        self._drawn_at = now
        return now

    def _draw(self, pane: Pane) -> None:
        engine = pane.engine
        self._is_stale = False
        version = self.version + 1
        is_changed = self._take_rows(pane, version)
        cursor = engine.cursor
        place = (cursor.col, cursor.row, cursor.shape) if cursor.is_visible and pane.is_alive else None
        is_changed = self._take_blocks(pane, version) or place != self._cursor or is_changed
        self._cursor = place
        facts = self._facts_of(pane)
        if facts != self._facts:
            self._facts, self._facts_version, is_changed = facts, version, True
        if is_changed or self._pane is not pane:
            self.version = version
        self._pane = pane

    def _take_rows(self, pane: Pane, version: int) -> bool:
        rows = list(pane.engine.grid().rows)
        before = self._rows if self._pane is pane else []
        self._rows = rows
        if len(rows) != len(self._texts):
            self._texts, self._row_versions, before = [""] * len(rows), [version] * len(rows), []
        is_changed = not before
        for number, row in enumerate(rows):
            if number < len(before) and row.cells == before[number].cells:
                continue
            text = encode_row(row.cells)
            if not before or text != self._texts[number]:
                self._texts[number], self._row_versions[number], is_changed = text, version, True
        return is_changed

    def _take_blocks(self, pane: Pane, version: int) -> bool:
        records = list(pane.commands.records)[-MAX_BLOCKS:]
        known, self._blocks = self._blocks if self._pane is pane else {}, {}
        is_changed = False
        for record in records:
            if not record.has_begun and record.ended is None:
                continue
            before = known.get(record.id)
            if before is not None and before[1].is_running == (record.ended is None):
                self._blocks[record.id] = before
            else:
                self._blocks[record.id] = (version, to_block(pane, record))
                is_changed = True
        return is_changed

    def _facts_of(self, pane: Pane) -> PaneFacts:
        engine, typing = pane.engine, self._all.typing(pane)
        modes = engine.modes
        return PaneFacts(
            cols=engine.cols,
            rows=engine.rows,
            name=pane.name,
            title=escape_hidden(engine.title, one_line=True),
            cwd=pane.commands.cwd or engine.cwd,
            is_alternate=modes.alternate,
            mouse=modes.mouse,
            knows_paste=modes.bracketed_paste,
            is_at_prompt=pane.is_at_prompt,
            is_asking_secret=pane.is_asking_secret,
            holder=typing.holder,
            times_taken=typing.times_taken,
            last_typist=typing.last,
            exit_code=pane.exit_code,
        )

    def _hear(self, change: Change) -> None:
        if isinstance(change, PaneChanged | PaneGone | PaneOpened) and change.pane_id != self._pane_id:
            return
        if isinstance(change, PaneChanged) and isinstance(change.event, events.Bell):
            self._bells += 1
        self._is_stale = True
        self._changed.set()


def to_block(pane: Pane, record: CommandRecord) -> CommandBlock:
    is_running = record.ended is None
    shown = escape_hidden(record.command[:MAX_COMMAND_CHARS])
    return CommandBlock(
        id=f"{pane.id}:{record.id}",
        command=shown,
        cwd=record.cwd,
        started=record.started,
        duration_ms=0.0 if is_running else round(record.duration_s * 1000, 3),
        is_running=is_running,
        exit_code=record.exit_code,
        typists=record.typists,
        is_exact=shown == record.command,
    )
