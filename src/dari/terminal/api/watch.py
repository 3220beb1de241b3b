"""Panes as a page shows them: a screen followed by changed rows, its history, and a person's hands on the keyboard."""

from __future__ import annotations

import asyncio
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from dari.daemon.stub import expose
from dari.errors import Conflict, InvalidInput, NotFound
from dari.terminal.api.attach import MAX_WAITING_BYTES, Modifiers
from dari.terminal.api.commands import Success
from dari.terminal.engine.engine import MouseAction, MouseButton
from dari.terminal.engine.keys import Key, parse_key
from dari.terminal.limits import MAX_POLL_S, check_wait
from dari.terminal.multiplexer import Change, Multiplexer, kind_of_change
from dari.terminal.panes import events
from dari.terminal.panes.pane import Pane
from dari.terminal.take_over import Typist
from dari.terminal.viewers.pane_screen import CommandBlock, PaneScreen, ScreenFrame, encode_row, to_block
from dari.text.regex import GuardedRegex
from dari.text.sanitize import escape_hidden

GONE_S = 10.0
MAX_FOLLOWED = 64
MAX_ROWS = 2000
MAX_HITS = 500
MAX_PIECES = 1000
MAX_TYPED_CHARS = 1 << 20
ROSTER_GATHER_S = 0.25
WHEEL_ROWS = 3
SEARCH_S = 0.5
_UNLISTED = (events.OutputShown, events.Bell)
"""Events that change nothing in the list of panes; the prompt and the title have events of their own."""


class StyledRows(Struct, frozen=True, kw_only=True):
    """Rows `start` … of a pane as in `ScreenFrame`; 0 is the top of the screen, negative ones scrolled off it."""

    start: int
    rows: list[str]
    history: int
    screen_rows: int


class SearchHit(Struct, frozen=True):
    row: int
    text: str


class SearchHits(Struct, frozen=True, kw_only=True):
    """Newest first; `is_cut` when there were more."""

    hits: list[SearchHit]
    history: int
    is_cut: bool = False


class BlockOutput(Struct, frozen=True, kw_only=True):
    """`row` is where the command stands now, None when that row is gone."""

    block: CommandBlock
    output: str
    row: int | None = None
    history: int = 0
    is_truncated: bool = False


class TypedPiece(Struct, frozen=True, kw_only=True):
    """One of them: characters, a key by name (`Enter`, `C-c`, `S-Tab`), or text that is pasted."""

    text: str = ""
    key: str = ""
    paste: str = ""


class HeldPane(Struct, frozen=True, kw_only=True):
    pane_id: str
    holder: Typist | None = None
    ends_in_s: float = 0.0
    times_taken: int = 0
    """So far; a frame with a smaller number is older than this."""


class PaneEntry(Struct, frozen=True, kw_only=True):
    """A pane in the list of all."""

    id: str
    name: str
    title: str = ""
    cwd: str = ""
    process: str = ""
    window_id: str = ""
    window: str = ""
    tab_id: str = ""
    tab: str = ""
    cols: int = 0
    rows: int = 0
    is_focused: bool = False
    is_at_prompt: bool = False
    exit_code: int | None = None
    running: CommandBlock | None = None
    last: CommandBlock | None = None
    holder: Typist | None = None
    last_typist: Typist | None = None


class Roster(Struct, frozen=True, kw_only=True):
    """Every pane, in the order of windows and tabs."""

    version: int
    panes: list[PaneEntry]
    focused: str = ""


class WatchApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer
        self._screens: dict[str, PaneScreen] = {}
        self._ends: dict[str, asyncio.TimerHandle] = {}
        self._last_version = 0
        self._version = 1
        self._news = asyncio.Event()
        multiplexer.changes.subscribe(self._hear)

    @expose("crux:pane/watch", "read", ends_with_caller=True)
    async def watch(self, pane_id: str, known: int = 0, timeout_s: float = 20.0) -> ScreenFrame:
        """The rows that changed after the version `known`, once some have; everything for 0. At most 30 a second."""
        check_wait(timeout_s, MAX_POLL_S)
        own_id = pane_id.removeprefix("%")
        if own_id not in self._screens:  # else it may be gone, which its followers still have to hear
            own_id = self._all.find(pane_id).id
        screen = self._screens.get(own_id) or self._follow(own_id)
        if (timer := self._ends.pop(own_id, None)) is not None:
            timer.cancel()
        try:
            return await screen.next_frame(known, timeout_s)
        finally:
            if not screen.followers and self._screens.get(own_id) is screen:
                self._ends[own_id] = asyncio.get_running_loop().call_later(GONE_S, self._unfollow, own_id)

    @expose("crux:pane/roster", "read", ends_with_caller=True)
    async def roster(self, known: int = 0, timeout_s: float = 20.0) -> Roster:
        """Every pane with what runs in it and who types, once something of that may have changed; at once for 0."""
        check_wait(timeout_s, MAX_POLL_S)
        try:
            async with asyncio.timeout(timeout_s):
                if known == self._version:
                    self._news.clear()
                    await self._news.wait()
                if known:  # also who is behind: they are as soon as they ask again
                    await asyncio.sleep(ROSTER_GATHER_S)
        except TimeoutError:
            pass
        return Roster(version=self._version, panes=self._entries(), focused=self._all.windows.focused)

    @expose("crux:pane/styled-rows", "read")
    async def styled_rows(
        self, pane_id: str, start: int, count: int = 200, seen_history: int | None = None
    ) -> StyledRows:
        """`count` rows from `start`. `seen_history` is the history that `start` was counted with: rows that have
        scrolled off since are taken into account."""
        if not 0 < count <= MAX_ROWS:
            raise InvalidInput(f"count must be between 1 and {MAX_ROWS}, got {count}", "ask for fewer rows")
        engine = self._all.find(pane_id).engine
        history = engine.history
        first = start - (0 if seen_history is None else max(0, history - seen_history))
        last = min(first + count, engine.rows)
        first = max(first, -history)
        rows = engine.grid(first, last).rows if first < last else ()
        return StyledRows(
            start=first, rows=[encode_row(row.cells) for row in rows], history=history, screen_rows=engine.rows
        )

    @expose("crux:pane/search-rows", "read")
    async def search_rows(self, pane_id: str, text: str, is_regex: bool = False) -> SearchHits:
        """Rows of the screen and its history that hold the text; small letters find capital ones, too."""
        if not text:
            raise InvalidInput("text must not be empty", "give a part of a line")
        engine = self._all.find(pane_id).engine
        is_loose = text == text.lower()
        matcher = GuardedRegex(text, ignore_case=is_loose, total_s=SEARCH_S) if is_regex else None
        needle = text.lower() if is_loose else text
        lines = engine.text(-engine.history, engine.rows).split("\n")
        hits: list[SearchHit] = []
        for number in range(len(lines) - 1, -1, -1):
            line = lines[number]
            if matcher.search(line) if matcher is not None else needle in (line.lower() if is_loose else line):
                if len(hits) == MAX_HITS:
                    return SearchHits(hits=hits, history=engine.history, is_cut=True)
                hits.append(SearchHit(number - engine.history, escape_hidden(line[:400])))
        return SearchHits(hits=hits, history=engine.history)

    @expose("crux:pane/command-block", "read")
    async def command_block(self, command_id: str) -> BlockOutput:
        """A command of a pane with its output, and the row where it stands now."""
        pane_id, colon, own_id = command_id.partition(":")
        if not colon or pane_id not in self._all.panes:
            raise NotFound(f"no command has the id {command_id!r}", "its pane is gone; look at the others")
        pane = self._all.panes[pane_id]
        record = pane.commands.find(own_id)
        place = pane.engine.place(record.place) if record.place is not None else None
        return BlockOutput(
            block=to_block(pane, record),
            output=escape_hidden(record.output),
            row=place[1] if place is not None else None,
            history=pane.engine.history,
            is_truncated=record.is_truncated,
        )

    # A person's hands

    @expose("crux:pane/take-over", "admin")
    async def take_over(self, pane_id: str) -> HeldPane:
        """The person who calls types from now on; what agents send is refused until the pane is handed back."""
        pane = self._all.find(pane_id)
        typing = self._all.typing(pane)
        typing.take()
        return HeldPane(
            pane_id=pane.id, holder=typing.holder, ends_in_s=typing.ends_in_s, times_taken=typing.times_taken
        )

    @expose("crux:pane/hand-back", "admin")
    async def hand_back(self, pane_id: str) -> HeldPane:
        """Agents may type again."""
        pane = self._all.find(pane_id)
        self._all.typing(pane).hand_back()
        return HeldPane(pane_id=pane.id)

    @expose("crux:pane/type", "admin")
    async def type_pieces(self, pane_id: str, pieces: list[TypedPiece]) -> Success:
        """What a person typed, in order; keys are encoded as the program wants them. Nothing is judged."""
        pane = self._held(pane_id)
        if len(pieces) > MAX_PIECES or sum(len(each.text) + len(each.paste) for each in pieces) > MAX_TYPED_CHARS:
            raise InvalidInput(
                f"at most {MAX_PIECES} pieces and {MAX_TYPED_CHARS} characters may be typed at once",
                "send them one after the other",
            )
        engine = pane.engine
        data = b"".join(
            engine.encode_paste(each.paste)
            if each.paste
            else engine.encode_key(parse_key(each.key))
            if each.key
            else each.text.replace("\r\n", "\r").replace("\n", "\r").encode(errors="replace")
            for each in pieces
        )
        if data:
            guard = self._all.input_guard(pane)
            note = partial(guard.note, data.decode(errors="replace"))
            await pane.write(data, note, max_waiting_bytes=MAX_WAITING_BYTES)
        return Success()

    @expose("crux:pane/mouse", "admin")
    async def use_mouse(
        self,
        pane_id: str,
        action: MouseAction,
        button: MouseButton,
        col: int,
        row: int,
        modifiers: list[Modifiers] | None = None,
    ) -> Success:
        """A person's mouse at a cell. A wheel moves a full-screen program without a mouse by arrow keys."""
        pane = self._held(pane_id)
        engine = pane.engine
        report = engine.encode_mouse(action, button, col, row, frozenset(map(str, modifiers or ())))
        if not report and button in ("wheel_up", "wheel_down") and action == "press" and engine.is_alternate:
            report = engine.encode_key(Key("up" if button == "wheel_up" else "down")) * WHEEL_ROWS
        if report and pane.is_alive:
            await pane.write(report, max_waiting_bytes=MAX_WAITING_BYTES)
        return Success()

    def _held(self, pane_id: str) -> Pane:
        pane = self._all.find(pane_id)
        if self._all.typing(pane).holder is None:
            raise Conflict(f"pane {pane.id} is not taken over", "take it over first, then type")
        return pane

    def _follow(self, pane_id: str) -> PaneScreen:
        if len(self._screens) >= MAX_FOLLOWED:
            raise Conflict(f"at most {MAX_FOLLOWED} panes may be followed at once", "close some of the pages")
        screen = self._screens[pane_id] = PaneScreen(self._all, pane_id, self._last_version)
        return screen

    def _unfollow(self, pane_id: str) -> None:
        self._ends.pop(pane_id, None)
        screen = self._screens.get(pane_id)
        if screen is not None and not screen.followers:
            del self._screens[pane_id]
            self._last_version = max(self._last_version, screen.version)
            screen.close()

    def _entries(self) -> list[PaneEntry]:
        found: list[PaneEntry] = []
        for window in self._all.windows.all:
            for tab in window.tabs:
                for pane_id in tab.panes:
                    pane = self._all.panes.get(pane_id)
                    if pane is not None:
                        entry = self._entry(pane)
                        names = {"window_id": window.id, "window": window.name, "tab_id": tab.id, "tab": tab.name}
                        found.append(replace(entry, **names))
        return found

    def _entry(self, pane: Pane) -> PaneEntry:
        process, typing, current = pane.foreground(), self._all.typing(pane), pane.commands.current
        ended = next((each for each in reversed(pane.commands.records) if each.ended is not None), None)
        return PaneEntry(
            id=pane.id,
            name=pane.name,
            title=escape_hidden(pane.engine.title, one_line=True),
            cwd=pane.cwd(),
            process=process.name if process is not None else "",
            cols=pane.engine.cols,
            rows=pane.engine.rows,
            is_focused=self._all.windows.focused == pane.id,
            is_at_prompt=pane.is_at_prompt,
            exit_code=pane.exit_code,
            running=None if current is None else to_block(pane, current),
            last=None if ended is None else to_block(pane, ended),
            holder=typing.holder,
            last_typist=typing.last,
        )

    def _hear(self, change: Change) -> None:
        if kind_of_change(change) in _UNLISTED:
            return
        self._version += 1
        self._news.set()
