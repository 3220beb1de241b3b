"""The engine on bittty: pure Python, for machines that libghostty-vt has no wheel for.

Where it differs: it is about a hundred times slower; history costs several times the memory and `compress` does
nothing; marks are lost when the width changes; snapshots leave out what `replay` names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import msgspec

from dari.errors import InvalidInput
from dari.struct_types import ready
from dari.terminal.engine import input_encoding
from dari.terminal.engine.bittty import replay
from dari.terminal.engine.bittty.cells import Cable, CellReader, Display
from dari.terminal.engine.engine import (
    DEFAULT_HISTORY_ROWS,
    MAX_TITLE_CHARS,
    Cursor,
    Form,
    Mark,
    Modes,
    MouseAction,
    MouseButton,
    MouseFormat,
    MouseTracking,
    Shape,
    check_size,
)
from dari.terminal.engine.grid import BACKGROUND, FOREGROUND, PALETTE, Grid, Row, joined_cells
from dari.terminal.engine.keys import Key
from dari.terminal.engine.osc import OscWatch, parse_osc7_path
from dari.terminal.engine.render import to_html, to_vt

_MAGIC = b"dari-bittty-1\n"
_BUTTONS = {"left": 0, "middle": 1, "right": 2, "wheel_up": 64, "wheel_down": 65, "none": 3}
_MICE: dict[str, MouseTracking] = {"X10": "x10", "NORMAL": "normal", "BUTTON": "button", "ANY": "any"}
_FORMATS: dict[str, MouseFormat] = {"UTF8": "utf8", "SGR": "sgr", "URXVT": "urxvt", "SGR_PIXELS": "sgr_pixels"}
_SHAPES: dict[str, Shape] = {"bar": "bar", "underline": "underline"}
_FEED_BYTES = 1 << 16
_WINDOW_OPS = (14, 16, 18, 22, 23)


@dataclass(slots=True, weakref_slot=True)
class BitttyMark:
    """A row counted from the first one that ever scrolled off."""

    screen: BitttyEngine
    col: int
    row: int
    width: int
    is_alternate: bool

    @property
    def is_lost(self) -> bool:
        return self.screen.has_lost(self)


class _Saved(msgspec.Struct):
    cols: int
    rows: int
    history_rows: int
    title: str
    told_cwd: str
    drawn: bytes
    held: bytes


class BitttyEngine:
    """See `Engine`."""

    name = "bittty"

    def __init__(self, cols: int, rows: int, history_rows: int = DEFAULT_HISTORY_ROWS) -> None:
        from bittty import BITTTY, Board
        from bittty.caps import TerminalCaps

        check_size(cols, rows)
        colors = replace(BITTTY.palette, base16=PALETTE[:16], foreground=FOREGROUND, background=BACKGROUND)
        model = replace(BITTTY, palette=colors)
        self._board: Any = Board(width=cols, height=rows, model=model)
        self._cable = Cable()
        self._display = Display(cols, history_rows)
        self._board.host.attach(self._cable)
        self._board.attach_display(self._display)
        self._board.set_caps(
            TerminalCaps(cell_px=(8, 16), window_px=(8 * cols, 16 * rows), grapheme_mode="permanently-set")
        )
        self._size = (cols, rows)
        registry = self._board.registry
        registry["OSC_CLIPBOARD"] = self._display.take_clip
        registry["DECRQCRA"] = _ignore  # a program could read what others left on the screen
        self._window_op = registry["XTWINOPS"]
        registry["XTWINOPS"] = self._take_window_op
        self._history_rows = history_rows
        self._watch = OscWatch()
        self.hears_prompts = True
        self._consumed = 0
        self.on_reply: Callable[[bytes], None] = _ignore
        self.on_osc: Callable[[int, bytes], None] = _ignore
        self.on_bell: Callable[[], None] = _ignore
        self.on_clipboard: Callable[[bytes], None] = _ignore

    # What it shows

    @property
    def cols(self) -> int:
        return int(self._board.width)

    @property
    def rows(self) -> int:
        return int(self._board.height)

    @property
    def history(self) -> int:
        return 0 if self.is_alternate else len(self._display.store.width(self.cols))

    @property
    def history_rows(self) -> int:
        return self._history_rows

    @property
    def title(self) -> str:
        return self._display.title[:MAX_TITLE_CHARS]

    @property
    def cwd(self) -> str:
        return parse_osc7_path(self._display.told_cwd)

    @property
    def consumed(self) -> int:
        return self._consumed

    @property
    def is_alternate(self) -> bool:
        return bool(self._board.blitter.in_alt_screen)

    @property
    def cursor(self) -> Cursor:
        board = self._board
        return Cursor(
            col=self.cursor_column,
            row=board.cursor.y,
            shape=_SHAPES.get(board.cursor.shape, "block"),
            is_visible=bool(board.modes.cursor_visible),
            is_blinking=bool(board.modes.cursor_blinking),
        )

    @property
    def cursor_column(self) -> int:
        return min(int(self._board.cursor.x), self.cols - 1)

    @property
    def modes(self) -> Modes:
        modes, mouse = self._board.modes, self._board.mouse
        return Modes(
            alternate=self.is_alternate,
            application_cursor=bool(modes.cursor_application_mode),
            application_keypad=not modes.numeric_keypad,
            bracketed_paste=bool(modes.bracketed_paste),
            mouse=_MICE.get(mouse.protocol.name, "off"),
            mouse_format=_FORMATS.get(mouse.encoding.name, "x10"),
            focus=bool(modes.focus_reporting),
            insert=bool(modes.insert_mode),
            origin=bool(modes.origin_mode),
            wrap=bool(modes.auto_wrap),
            reverse_video=bool(modes.reverse_screen),
            synchronized=bool(modes.synchronized_output),
            kitty_keyboard=int(self._board.keyboard.kitty_flags),
        )

    # What goes in

    def feed(self, data: bytes) -> None:
        before = 0
        for end, number, payload in self._watch.cut(data):
            self._write(data[before:end])
            self._consumed += end - before
            before = end
            if number == 133 and payload[:1] == b"A" and self._board.cursor.x:
                self._write(b"\r\n")  # a prompt begins on a line of its own
            if number != 133 or self.hears_prompts:
                self._tell()  # asked before this event
                self.on_osc(number, payload)
        self._write(data[before:])
        self._consumed += len(data) - before
        self._tell()
        if (self.cols, self.rows) != self._size:
            self.resize(*self._size)  # DECCOLM, DECSCPP: how large a screen is, is for its owner to say

    def _take_window_op(self, operation: Any) -> None:
        """Report sizes, never titles: a title, which any program may set, would be typed at the prompt."""
        if operation.args[0] and operation.args[0][0] in _WINDOW_OPS:
            self._window_op(operation)

    def _write(self, data: bytes) -> None:
        for start in range(0, len(data), _FEED_BYTES):
            self._board.feed_host_data(data[start : start + _FEED_BYTES])

    def _tell(self) -> None:
        display = self._display
        replies = self._cable.taken()
        clips, display.clips = display.clips, []
        bells, display.bells = display.bells, 0
        if replies:
            self.on_reply(replies)
        for clip in clips:
            self.on_clipboard(clip)
        if bells:
            self.on_bell()

    def resize(self, cols: int, rows: int) -> None:
        check_size(cols, rows)
        self._size = (cols, rows)
        self._display.limit(max(cols, self.cols), self._history_rows)
        self._board.resize_from_frontend(cols, rows)
        self._display.limit(cols, self._history_rows)
        self._tell()

    # Text and cells

    def text(self, start: int, end: int, *, form: Form = "plain", unwrap: bool = False) -> str:
        grid = self.grid(start, end)
        if form == "vt":
            return to_vt(grid, unwrap=unwrap)
        if form == "html":
            return to_html(grid, unwrap=unwrap)
        if not unwrap:
            return grid.text
        return _joined(grid.rows)

    def grid(self, start: int = 0, end: int | None = None) -> Grid:
        history = self.history
        end = self.rows if end is None else min(end, self.rows)
        start = max(start, -history)
        found: list[Row] = []
        if start < 0:
            found += self._history_grid(start + history, min(end, 0) + history)
        found += self._page_grid(self._board.blitter.main_page, max(start, 0), end)
        colors = self._board.palette
        own = (colors.foreground, FOREGROUND), (colors.background, BACKGROUND)
        fg, bg = (tuple(now) if tuple(now) != usual else None for now, usual in own)
        return Grid(self.cols, start, tuple(found), fg, bg)

    def _history_grid(self, first: int, end: int) -> list[Row]:
        view = self._display.store.width(self.cols)
        found = []
        reader = CellReader(self._board.palette.colors)
        for row in range(first, end):
            line, _ = view.line_at(row)
            wraps = row + 1 < len(view) and view.line_at(row + 1)[0] == line
            if row + 1 == len(view) and self._display.store._open:
                wraps = True  # its end is still on the screen
            found.append(reader.row(view[row], wraps))
        return found

    def _page_grid(self, page: Any, first: int, end: int) -> list[Row]:
        reader = CellReader(self._board.palette.colors)
        return [reader.row(page.grid[y], page.is_line_wrapped(y)) for y in range(first, end)]

    # Places

    def mark(self) -> BitttyMark:
        cursor = self._board.cursor
        return BitttyMark(self, cursor.x, self._display.scrolled + cursor.y, self.cols, self.is_alternate)

    def has_lost(self, mark: BitttyMark) -> bool:
        if mark.width != self.cols:
            return True
        if mark.is_alternate:
            return not self.is_alternate
        kept = len(self._display.store.width(self.cols))
        return mark.row < max(self._display.scrolled - kept, self._display.cleared)

    def place(self, mark: Mark) -> tuple[int, int] | None:
        if not isinstance(mark, BitttyMark) or mark.is_lost or mark.is_alternate != self.is_alternate:
            return None
        return mark.col, mark.row - self._display.scrolled

    # Snapshots

    def snapshot(self) -> bytes:
        blitter = self._board.blitter
        pages = [blitter.primary_page, blitter.main_page] if self.is_alternate else [blitter.main_page]
        screens = [self._page_grid(page, 0, page.height) for page in pages]
        history = self._history_grid(0, len(self._display.store.width(self.cols)))
        drawn = replay.draw(history, screens, self._board)
        display = self._display
        saved = _Saved(
            self.cols, self.rows, self._history_rows, display.title, display.told_cwd, drawn, self._watch.held
        )
        return _MAGIC + msgspec.json.encode(saved)

    @classmethod
    def restored(cls, data: bytes) -> Self:
        try:
            if not data.startswith(_MAGIC):
                raise ValueError(f"it begins with {data[:20]!r}")
            saved = msgspec.json.decode(data[len(_MAGIC) :], type=ready(_Saved))
        except (ValueError, msgspec.MsgspecError) as error:
            raise InvalidInput(
                f"the bytes must be a snapshot of a terminal: {error}", "take one with `snapshot`"
            ) from error
        engine = cls(saved.cols, saved.rows, saved.history_rows)
        engine._write(saved.drawn)
        engine._cable.taken()
        engine._display.title, engine._display.told_cwd = saved.title, saved.told_cwd
        engine._watch.held = saved.held
        return engine

    # What goes out

    def encode_key(self, key: Key) -> bytes:
        keyboard = self._board.keyboard
        if not keyboard.kitty_flags and keyboard.modify_other_keys < 2:
            modes = self.modes
            return input_encoding.encode_key(
                key, application_cursor=modes.application_cursor, application_keypad=modes.application_keypad
            )
        from bittty import KeyEvent, KeyModifiers

        flags = KeyModifiers.NONE
        for modifier in key.modifiers:
            flags |= KeyModifiers[modifier.upper()]
        text = key.name if key.is_character and not flags & ~KeyModifiers.SHIFT else None
        plain = key.name.lower() if key.is_character and len(key.name.lower()) == 1 else key.name
        if plain != key.name:
            flags |= KeyModifiers.SHIFT
        name = {"space": " ", "page_up": "pageup", "page_down": "pagedown"}.get(plain, plain)
        self._board.input_key_event(KeyEvent(name, flags, text=text))
        return self._cable.taken()

    def encode_paste(self, text: str) -> bytes:
        return input_encoding.encode_paste(text, bool(self._board.modes.bracketed_paste))

    def encode_mouse(
        self, action: MouseAction, button: MouseButton, col: int, row: int, modifiers: frozenset[str] = frozenset()
    ) -> bytes:
        if self.modes.mouse == "off":
            return b""
        words = {"alt": "meta"}
        held: set[str] = {words.get(word, word) for word in modifiers}
        kind: Literal["press", "release", "move"] = action
        self._board.input_mouse(col + 1, row + 1, _BUTTONS[button], kind, held)
        return self._cable.taken()

    def compress(self) -> None:
        pass

    def close(self) -> None:
        self._board.detach_display()
        self._display.store.clear()


def _joined(rows: Sequence[Row]) -> str:
    parts = []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        whole = "".join([cell.text or (" " if cell.width else "") for cell in joined_cells(row, after)])
        parts.append(whole if row.wraps else whole.rstrip(" ") + "\n")
    return "".join(parts).removesuffix("\n")


def _ignore(*_: object) -> None:
    """Ignore the event."""
