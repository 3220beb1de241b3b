"""The grid, read through libghostty-vt's render state: a whole screen of packed cells at once.

Asking for the style of each cell costs 300 ms a screen. A packed cell is a number; equal numbers in one row are
equal cells, so each is looked up once (style numbers are per memory page, hence per row here).
"""

from __future__ import annotations

import weakref
from typing import Any

from dari.terminal.engine.ghostty.terminal import NativeTerminal, check
from dari.terminal.engine.ghostty.values import Values
from dari.terminal.engine.grid import BACKGROUND, BLANK, FOREGROUND, PALETTE, TAIL, Cell, Rgb, Row, Underline

_MAX_CACHED_CELLS = 50_000
_UNDERLINES: tuple[Underline, ...] = ("", "single", "double", "curly", "dotted", "dashed")
# Where libghostty-vt packs what we read; `cell_layout` checks it against the library's own accessors.
TAG_BITS = 0b11
TEXT_SHIFT, TEXT_BITS = 2, 0x1FFFFF
STYLE_SHIFT, STYLE_BITS = 26, 0xFFFF
WIDE_SHIFT, WIDE_BITS = 42, 0b11
LINK_BIT = 1 << 45
_PLAIN = ~(TEXT_BITS << TEXT_SHIFT)  # a cell with none of these bits is one narrow character without a style

Attributes = tuple[bool, bool, Underline, bool, bool, bool, bool, bool, bool]
Indexes = tuple[int | None, int | None]
Style = tuple[Rgb | None, Rgb | None, Attributes, Rgb | None, Indexes]
_NO_STYLE: Style = (None, None, (False, False, "", False, False, False, False, False, False), None, (None, None))


class RenderState:
    """The visible part of a terminal as last updated, and the rows that changed since it was last asked."""

    def __init__(self, native: NativeTerminal) -> None:
        binding = native.binding
        ffi, lib = binding.ffi, binding.lib
        self._native = native
        self._ffi, self._lib = ffi, lib
        state = ffi.new("GhosttyRenderState *")
        rows = ffi.new("GhosttyRenderStateRowIterator *")
        cells = ffi.new("GhosttyRenderStateRowCells *")
        check(lib.ghostty_render_state_new(ffi.NULL, state), "make a render state")
        check(lib.ghostty_render_state_row_iterator_new(ffi.NULL, rows), "make a row iterator")
        check(lib.ghostty_render_state_row_cells_new(ffi.NULL, cells), "make a cell iterator")
        self.state = state[0]
        self._rows, self._cells = rows, cells
        weakref.finalize(self, _free, lib, state[0], rows[0], cells[0]).atexit = False
        self._values = Values(binding, "render_state")
        self._row_values = Values(binding, "render_state_row")
        self._cell_values = Values(binding, "render_state_row_cells")
        self._colors = binding.sized("GhosttyRenderStateColors")
        self._codepoints = ffi.new("uint32_t[]", 64)
        self._length = ffi.new("size_t *")
        self._y = ffi.new("uint16_t *")
        self._flag = ffi.new("bool *")
        self._link = ffi.new("uint8_t[]", 2048)
        self._ref = binding.sized("GhosttyGridRef")
        self._point = ffi.new("DariPoint *")
        self._kept: dict[tuple[str, int, Style], Cell] = {}
        self._plain: dict[int, Cell] = {0: BLANK, ord(" ") << TEXT_SHIFT: BLANK}
        self._styles: dict[int, Style] = {}  # of the row that is being read
        self._built: dict[int, Row] = {}  # rows that have not changed since they were read
        self._palette: tuple[Rgb, ...] = PALETTE
        self._palette_bytes = b""

    def update(self) -> None:
        """Take in the terminal's state."""
        lib = self._lib
        check(lib.ghostty_render_state_update(self.state, self._native.pointer), "update the render state")
        if self._values.read(self.state, "DIRTY") == lib.GHOSTTY_RENDER_STATE_DIRTY_FALSE:
            return
        self._iterate()
        while lib.ghostty_render_state_row_iterator_next_dirty(self._rows[0], self._y):
            self._built.pop(self._y[0], None)
        check(lib.ghostty_render_state_clean(self.state), "clean the render state")

    def read(self, name: str) -> Any:
        return self._values.read(self.state, name)

    def rows(self, first: int, end: int) -> list[Row]:
        """Visible rows first … end-1 as of the last update."""
        lib = self._lib
        self._read_palette()
        self._iterate()
        found: list[Row] = []
        for y in range(end):
            if not lib.ghostty_render_state_row_iterator_next(self._rows[0]):
                break
            if y >= first:
                row = self._built.get(y)
                if row is None:
                    row = self._built[y] = self._row(y)
                found.append(row)
        return found

    def own_colors(self, is_reverse: bool) -> tuple[Rgb | None, Rgb | None]:
        """The terminal's foreground and background where a program set them; in reverse video they come swapped."""
        self._read_palette()
        own = (self._colors.foreground, self._colors.background)
        pairs = zip(own[::-1] if is_reverse else own, (FOREGROUND, BACKGROUND), strict=True)
        fg, bg = ((now.r, now.g, now.b) if (now.r, now.g, now.b) != usual else None for now, usual in pairs)
        return fg, bg

    def _iterate(self) -> None:
        key = self._lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR
        check(self._lib.ghostty_render_state_get(self.state, key, self._rows), "iterate over rows")

    def _read_palette(self) -> None:
        key = self._lib.GHOSTTY_RENDER_STATE_DATA_COLORS
        check(self._lib.ghostty_render_state_get(self.state, key, self._colors), "read the colours")
        seen = self._ffi.buffer(self._colors.palette)[:]
        if seen != self._palette_bytes:
            self._palette_bytes = seen
            self._built.clear()
            self._palette = tuple((seen[at], seen[at + 1], seen[at + 2]) for at in range(0, 768, 3))

    def _row(self, y: int) -> Row:
        iterator = self._rows[0]
        view = self._row_values.read(iterator, "CELLS_RAW")
        size = len(bytes(self._ffi.buffer(view.ptr, view.len * 8)).rstrip(b"\0"))
        packed: list[int] = self._ffi.unpack(view.ptr, (size + 7) // 8)
        plain, here = self._plain, dict[int, Cell]()
        self._styles.clear()
        is_selected = False
        cells: list[Cell] = []
        for x, number in enumerate(packed):
            cell = plain.get(number) or here.get(number)
            if cell is None:
                if number & _PLAIN == 0:
                    cell = Cell(chr(number >> TEXT_SHIFT))
                    if len(plain) < _MAX_CACHED_CELLS:
                        plain[number] = cell
                else:
                    if not is_selected:
                        key = self._lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS
                        check(self._lib.ghostty_render_state_row_get(iterator, key, self._cells), "read cells")
                        is_selected = True
                    cell, is_shared = self._decode(number, x, y)
                    if is_shared:
                        here[number] = cell
            cells.append(cell)
        cells += [BLANK] * (view.len - len(cells))
        return Row(tuple(cells), self._wraps(self._row_values.read(iterator, "RAW")))

    def _wraps(self, raw: int) -> bool:
        check(self._lib.ghostty_row_get(raw, self._lib.GHOSTTY_ROW_DATA_WRAP, self._flag), "read a row")
        return bool(self._flag[0])

    def _decode(self, number: int, x: int, y: int) -> tuple[Cell, bool]:
        """The cell behind a packed number, and whether the same number means the same cell elsewhere in the row."""
        tag = number & TAG_BITS
        wide = number >> WIDE_SHIFT & WIDE_BITS
        style_id = number >> STYLE_SHIFT & STYLE_BITS
        style = _NO_STYLE
        if style_id:
            style = self._styles.get(style_id) or self._style(x)
            self._styles[style_id] = style
        text = ""
        is_shared = True
        if tag >= 2:  # erased with a background colour
            color = number >> TEXT_SHIFT
            background = (
                self._palette[color & 0xFF] if tag == 2 else (color & 0xFF, color >> 8 & 0xFF, color >> 16 & 0xFF)
            )
            index = self._index(color & 0xFF) if tag == 2 else None
            style = (style[0], background, style[2], style[3], (style[4][0], index))
        elif tag == 1:
            text = self._cluster(x)
            is_shared = False
        elif (codepoint := number >> TEXT_SHIFT & TEXT_BITS) not in (0, 32):
            text = chr(codepoint)
        width = (1, 2, 0, 1)[wide]
        if number & LINK_BIT:
            return _cell(text, width, style, self._uri(x, y)), False
        if width == 0 and style == _NO_STYLE:
            return TAIL, True
        if len(self._kept) > _MAX_CACHED_CELLS:
            self._kept.clear()
        key = (text, width, style)
        cell = self._kept.get(key)
        if cell is None:
            cell = self._kept[key] = _cell(text, width, style, "")
        return cell, is_shared

    def _style(self, x: int) -> Style:
        check(self._lib.ghostty_render_state_row_cells_select(self._cells[0], x), "select a cell")
        style = self._cell_values.read(self._cells[0], "STYLE")
        return (
            self._color(style.fg_color),
            self._color(style.bg_color),
            (
                bool(style.bold),
                bool(style.italic),
                _UNDERLINES[style.underline],
                bool(style.inverse),
                bool(style.strikethrough),
                bool(style.faint),
                bool(style.blink),
                bool(style.invisible),
                bool(style.overline),
            ),
            self._color(style.underline_color),
            (self._index_of(style.fg_color), self._index_of(style.bg_color)),
        )

    def _index_of(self, color: Any) -> int | None:
        return self._index(color.value.palette) if color.tag == 1 else None

    def _index(self, number: int) -> int | None:
        return number if self._palette[number] == PALETTE[number] else None

    def _color(self, color: Any) -> Rgb | None:
        if color.tag == 0:
            return None
        if color.tag == 1:
            return self._palette[color.value.palette]
        return color.value.rgb.r, color.value.rgb.g, color.value.rgb.b

    def _cluster(self, x: int) -> str:
        lib, cells = self._lib, self._cells[0]
        check(lib.ghostty_render_state_row_cells_select(cells, x), "select a cell")
        size = self._cell_values.read(cells, "GRAPHEMES_LEN") or 0
        if size > len(self._codepoints):
            self._codepoints = self._ffi.new("uint32_t[]", size)
        key = lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_GRAPHEMES_BUF
        check(lib.ghostty_render_state_row_cells_get(cells, key, self._codepoints), "read a cluster")
        return "".join(map(chr, self._ffi.unpack(self._codepoints, size)))

    def _uri(self, x: int, y: int) -> str:
        binding = self._native.binding
        self._point.tag = binding.lib.GHOSTTY_POINT_TAG_VIEWPORT
        self._point.value.x, self._point.value.y = x, y
        if binding.grid_ref(self._native.pointer, self._point[0], self._ref):
            return ""
        if self._lib.ghostty_grid_ref_hyperlink_uri(self._ref, self._link, len(self._link), self._length):
            return ""
        return bytes(self._ffi.buffer(self._link, self._length[0])).decode(errors="replace")


def read_history(native: NativeTerminal, height: int, first: int, end: int) -> list[Row]:
    """Rows counted from the oldest one, a screenful at a time through the viewport, which is put back afterwards."""
    lib = native.binding.lib
    found: list[Row] = []
    looking = RenderState(native)
    try:
        while first + len(found) < end:
            at = first + len(found)
            _scroll(native, lib.GHOSTTY_SCROLL_VIEWPORT_ROW, at)
            looking.update()
            taken = looking.rows(0, min(height, end - at))
            if not taken:
                break
            found += taken
    finally:
        _scroll(native, lib.GHOSTTY_SCROLL_VIEWPORT_BOTTOM, 0)
    return found


def _scroll(native: NativeTerminal, tag: int, row: int) -> None:
    where = native.binding.ffi.new("DariViewport *")
    where.tag, where.delta = tag, row
    native.binding.scroll_viewport(native.pointer, where[0])


def _cell(text: str, width: int, style: Style, link: str) -> Cell:
    fg, bg, attributes, underline_color, indexes = style
    return Cell(text, width, fg, bg, *attributes, underline_color, link, *indexes)


def _free(lib: Any, state: Any, rows: Any, cells: Any) -> None:
    lib.ghostty_render_state_row_cells_free(cells)
    lib.ghostty_render_state_row_iterator_free(rows)
    lib.ghostty_render_state_free(state)
