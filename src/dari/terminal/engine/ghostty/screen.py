"""The engine on libghostty-vt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import msgspec

from dari.errors import Failed, InvalidInput
from dari.struct_types import ready
from dari.terminal.engine import input_encoding
from dari.terminal.engine.engine import (
    DEFAULT_HISTORY_ROWS,
    MAX_CLIPBOARD_BYTES,
    MAX_TITLE_CHARS,
    Cursor,
    Form,
    Mark,
    Modes,
    MouseAction,
    MouseButton,
    Shape,
    check_size,
)
from dari.terminal.engine.ghostty.cells import RenderState, read_history
from dari.terminal.engine.ghostty.encoding import encoders
from dari.terminal.engine.ghostty.terminal import (
    CELL_PIXELS,
    GhosttyMark,
    NativeTerminal,
    check,
    decode_snapshot,
    draw_snapshot,
    encode_snapshot,
)
from dari.terminal.engine.ghostty.values import Values, is_set, read_modes
from dari.terminal.engine.ghostty.workarounds import CrashGuard, SequenceRewriter
from dari.terminal.engine.grid import Grid, Row
from dari.terminal.engine.keys import Key
from dari.terminal.engine.osc import OscWatch, parse_osc7_path
from dari.terminal.engine.render import to_html, to_vt

_MAGIC = b"dari-ghostty-1\n"
_SHAPES: tuple[Shape, ...] = ("bar", "block", "underline", "block")
_ESC, _BRACKET = 0x1B, 0x5D
_PROBE = Key("a", ctrl=True)


class _About(msgspec.Struct):
    """What a snapshot carries besides the library's own."""

    history_rows: int
    held: bytes
    cut: bytes = b""


class GhosttyEngine:
    """See `Engine`."""

    name = "ghostty"

    def __init__(self, cols: int, rows: int, history_rows: int = DEFAULT_HISTORY_ROWS) -> None:
        check_size(cols, rows)
        self._adopt(NativeTerminal.blank(cols, rows, history_rows), history_rows)

    def _adopt(self, native: NativeTerminal, history_rows: int) -> None:
        binding = native.binding
        self._native = native
        self._ffi, self._lib = binding.ffi, binding.lib
        self._binding = binding
        self._values = Values(binding, "terminal")
        self._mender = SequenceRewriter(native, self._values, CrashGuard(native, self._values))
        self._watch = OscWatch()
        self._history_rows = history_rows
        self._consumed = 0
        self._render: RenderState | None = None
        self._point = self._ffi.new("DariPoint *")
        self._tracked = self._ffi.new("GhosttyTrackedGridRef *")
        self._coordinate = self._ffi.new("GhosttyPointCoordinate *")
        self._selection = binding.sized("GhosttySelection")
        self._format = binding.sized("GhosttyTerminalSelectionFormatOptions")
        self._format.selection = self._selection
        self._format.trim = True
        self._out = self._ffi.new("uint8_t **")
        self._size = self._ffi.new("size_t *")
        self.on_reply: Callable[[bytes], None] = _ignore
        self.on_osc: Callable[[int, bytes], None] = _ignore
        self.on_bell: Callable[[], None] = _ignore
        self.on_clipboard: Callable[[bytes], None] = _ignore

    # What it shows

    @property
    def cols(self) -> int:
        return int(self._values.read(self._native.pointer, "COLS"))

    @property
    def rows(self) -> int:
        return int(self._values.read(self._native.pointer, "ROWS"))

    @property
    def history(self) -> int:
        return int(self._values.read(self._native.pointer, "SCROLLBACK_ROWS"))

    @property
    def history_rows(self) -> int:
        return self._history_rows

    @property
    def title(self) -> str:
        return self._string("TITLE")[:MAX_TITLE_CHARS]

    @property
    def cwd(self) -> str:
        return parse_osc7_path(self._string("PWD"))

    @property
    def consumed(self) -> int:
        return self._consumed

    @property
    def cursor(self) -> Cursor:
        render = self._refreshed()
        pointer = self._native.pointer
        return Cursor(
            col=self.cursor_column,
            row=int(self._values.read(pointer, "CURSOR_Y")),
            shape=_SHAPES[int(render.read("CURSOR_VISUAL_STYLE"))],
            is_visible=bool(self._values.read(pointer, "CURSOR_VISIBLE")),
            is_blinking=bool(render.read("CURSOR_BLINKING")),
        )

    @property
    def cursor_column(self) -> int:
        return int(self._values.read(self._native.pointer, "CURSOR_X"))

    @property
    def is_alternate(self) -> bool:
        return bool(self._values.read(self._native.pointer, "ACTIVE_SCREEN"))

    @property
    def modes(self) -> Modes:
        return read_modes(self._values, self._native.pointer)

    def _mode(self, number: int) -> bool:
        return is_set(self._values, self._native.pointer, number)

    def _string(self, name: str) -> str:
        found = self._values.read(self._native.pointer, name)
        if found is None or not found.len:
            return ""
        return bytes(self._ffi.buffer(found.ptr, found.len)).decode(errors="replace")

    @property
    def hears_prompts(self) -> bool:
        return self._watch.hears_prompts

    @hears_prompts.setter
    def hears_prompts(self, value: bool) -> None:
        self._watch.hears_prompts = value

    # What goes in

    def feed(self, data: bytes) -> None:
        heard = self._native.heard
        # One byte is looked for many times faster than two.
        if self._watch.is_quiet and (
            _ESC not in data or ((_BRACKET not in data or b"\x1b]" not in data) and data[-1] != _ESC)
        ):
            self._write(data)
            self._consumed += len(data)
        else:
            before = 0
            for end, number, payload in self._watch.cut(data):
                self._write(data[before:end])
                self._consumed += end - before
                before = end
                if heard.replies:  # asked before this event
                    self._tell()
                self.on_osc(number, payload)
            self._write(data[before:])
            self._consumed += len(data) - before
        if heard.replies or heard.bells or heard.clips:
            self._tell()
        if self._values.read(self._native.pointer, "COLS") != heard.size[0]:
            self.resize(*heard.size)  # DECCOLM: how large a screen is, is for its owner to say

    def _write(self, data: bytes) -> None:
        self._mender.write(data)

    def _tell(self) -> None:
        heard = self._native.heard
        replies, heard.replies = heard.replies, []
        clips, heard.clips = heard.clips, []
        bells, heard.bells = heard.bells, 0
        if replies:
            self.on_reply(b"".join(replies))
        for clip in clips:
            if len(clip) <= MAX_CLIPBOARD_BYTES:  # the library's own limit is not applied to OSC 52
                self.on_clipboard(clip)
        if bells:
            self.on_bell()

    def resize(self, cols: int, rows: int) -> None:
        check_size(cols, rows)
        before = self.cols
        self._native.limit_history(self._history_rows, max(cols, before))
        resize = self._lib.ghostty_terminal_resize
        check(resize(self._native.pointer, cols, rows, *CELL_PIXELS), f"resize to {cols}×{rows}")
        self._native.limit_history(self._history_rows, cols)
        self._native.heard.size = (cols, rows)
        self._mender.forget()
        if cols < before:
            self._mend_edge()
        self._tell()

    def _mend_edge(self) -> None:
        """Blank the wide characters that a narrower screen without reflow cut in half.

        The library leaves their first half in the last column, and then takes no snapshots.
        """
        grid = self.grid()
        cut = [number for number, row in enumerate(grid) if row[-1].width == 2]
        if not cut:
            return
        cursor, has_origin = self.cursor, self._mode(6)
        erase = b"".join(b"\x1b[%d;%dH\x1b[X" % (number + 1, grid.cols) for number in cut)
        back = b"\x1b[%d;%dH" % (cursor.row + 1, cursor.col + 1)
        self._write(b"\x1b[?6l" + erase + (b"\x1b[?6h" if has_origin else back))

    # Text

    def text(self, start: int, end: int, *, form: Form = "plain", unwrap: bool = False) -> str:
        history, rows = self.history, self.rows
        start, end = max(start, -history), min(end, rows)
        if start >= end:
            return ""
        if form != "plain":
            grid = self.grid(start, end)
            return to_vt(grid, unwrap=unwrap) if form == "vt" else to_html(grid, unwrap=unwrap)
        text = self._formatted((0, start + history), (self.cols - 1, end - 1 + history), unwrap)
        if unwrap:
            return text
        missing = end - start - 1 - text.count("\n")
        return text + "\n" * missing

    def _formatted(self, start: tuple[int, int], end: tuple[int, int], unwrap: bool) -> str:
        """Text between two places in the screen's own numbering, which counts from the oldest row."""
        selection = self._selection
        for corner, (col, row) in ((selection.start, start), (selection.end, end)):
            self._at(col, row)
            reference = self._ffi.addressof(corner)
            check(self._binding.grid_ref(self._native.pointer, self._point[0], reference), f"find {col},{row}")
        self._format.unwrap = unwrap
        make = self._lib.ghostty_terminal_selection_format_alloc
        null = self._ffi.NULL
        check(make(self._native.pointer, null, self._format[0], self._out, self._size), "format text")
        found = self._out[0]
        try:
            return bytes(self._ffi.buffer(found, self._size[0])).decode(errors="replace")
        finally:
            self._lib.ghostty_free(null, found, self._size[0])

    def _at(self, col: int, row: int) -> Any:
        point = self._point
        point.tag = self._lib.GHOSTTY_POINT_TAG_SCREEN
        point.value.x, point.value.y = col, row
        return point[0]

    # Places

    def mark(self) -> GhosttyMark:
        pointer, read, found = self._native.pointer, self._values.read, self._tracked
        place = self._at(read(pointer, "CURSOR_X"), read(pointer, "CURSOR_Y") + read(pointer, "SCROLLBACK_ROWS"))
        check(self._binding.grid_ref_track(pointer, place, found), "mark the place of the cursor")
        return GhosttyMark(self._native, found[0], self.is_alternate)

    def place(self, mark: Mark) -> tuple[int, int] | None:
        if not isinstance(mark, GhosttyMark) or mark.is_lost or mark.is_alternate != self.is_alternate:
            return None
        tag = self._lib.GHOSTTY_POINT_TAG_SCREEN
        if self._lib.ghostty_tracked_grid_ref_point(mark.ref, tag, self._coordinate):
            return None
        return self._coordinate.x, self._coordinate.y - self.history

    # Cells

    def grid(self, start: int = 0, end: int | None = None) -> Grid:
        rows, history = self.rows, self.history
        end = rows if end is None else min(end, rows)
        start = max(start, -history)
        found: list[Row] = []
        render = self._refreshed()
        if start < 0:
            found += read_history(self._native, rows, start + history, min(end, 0) + history)
        if end > 0:
            found += render.rows(max(start, 0), end)
        return Grid(self.cols, start, tuple(found), *render.own_colors(self._mode(5)))

    def _refreshed(self) -> RenderState:
        if self._render is None:
            self._render = RenderState(self._native)
        self._render.update()
        return self._render

    # Snapshots

    def snapshot(self) -> bytes:
        about = msgspec.json.encode(_About(self._history_rows, self._watch.held, self._mender.held))
        try:
            return _MAGIC + about + b"\n" + encode_snapshot(self._native)
        except Failed:
            # Some grids that odd output leaves behind are refused by the library: the same rows, drawn anew, are not.
            clean = self._drawn_anew()
            try:
                return _MAGIC + about + b"\n" + encode_snapshot(clean._native)
            finally:
                clean.close()

    def _drawn_anew(self) -> GhosttyEngine:
        clean = GhosttyEngine(self.cols, self.rows, self._history_rows)
        told = (self.title, self._string("PWD"))
        clean._write(draw_snapshot(list(self.grid(-self.history)), self.cursor, self.modes, told))
        return clean

    @classmethod
    def restored(cls, data: bytes) -> Self:
        magic, _, rest = data.partition(b"\n")
        head, _, body = rest.partition(b"\n")
        try:
            if magic + b"\n" != _MAGIC:
                raise ValueError(f"it begins with {magic[:20]!r}")
            about = msgspec.json.decode(head, type=ready(_About))
        except (ValueError, msgspec.MsgspecError) as error:
            raise InvalidInput(
                f"the bytes must be a snapshot of a terminal: {error}", "take one with `snapshot`"
            ) from error
        engine = cls.__new__(cls)
        engine._adopt(decode_snapshot(body, about.history_rows), about.history_rows)
        engine._watch.held = about.held
        engine._mender.held = about.cut
        return engine

    # What goes out

    def encode_key(self, key: Key) -> bytes:
        native = self._native
        if self._values.read(native.pointer, "KITTY_KEYBOARD_FLAGS"):
            return encoders().key(native, key)
        if key.is_character and not (key.ctrl or key.alt or key.super or key.shift):
            return key.name.encode(errors="replace")
        # xterm's modifyOtherKeys cannot be read, but it shows in how this key is sent.
        if encoders().key(native, _PROBE) != b"\x01":
            return encoders().key(native, key)
        return input_encoding.encode_key(key, application_cursor=self._mode(1), application_keypad=self._mode(66))

    def encode_paste(self, text: str) -> bytes:
        return input_encoding.encode_paste(text, self._mode(2004))

    def encode_mouse(
        self, action: MouseAction, button: MouseButton, col: int, row: int, modifiers: frozenset[str] = frozenset()
    ) -> bytes:
        if self.modes.mouse == "off":
            return b""
        return encoders().mouse(self._native, action, button, (col, row), (self.cols, self.rows), modifiers)

    def compress(self) -> None:
        result = self._ffi.new("GhosttyTerminalCompressionResult *")
        full = self._lib.GHOSTTY_TERMINAL_COMPRESSION_MODE_FULL
        check(self._lib.ghostty_terminal_compress(self._native.pointer, full, result), "compress the history")

    def close(self) -> None:
        self._render = None
        self._native.close()


def _ignore(*_: object) -> None:
    """Ignore the event."""
