"""A native terminal with the settings that we want, freed with its last owner; and places in it."""

from __future__ import annotations

import weakref
from typing import Any

from dari.errors import Failed, InvalidInput
from dari.terminal.engine.bittty.replay import flow
from dari.terminal.engine.engine import MAX_CLIPBOARD_BYTES, Cursor, Modes
from dari.terminal.engine.ghostty.binding import Binding, load
from dari.terminal.engine.grid import BACKGROUND, FOREGROUND, PALETTE, Row

GRAPHEME_CLUSTERS = 2027
# A sequence that a snapshot cuts in two is kept in it up to this length.
CONTINUATION_BYTES = 1 << 20
# What a row costs: text of 120 columns needs 1,070 bytes a row, wide characters and emoji 1,210. Rows in which every
# word has another RGB colour need twice as much, so fewer of those are kept.
_ROW_BYTES = 170
_CELL_BYTES = 8.4
CELL_PIXELS = (8, 16)


class TerminalEvents:
    """What the parser had to say during a write; C calls only add to these lists."""

    __slots__ = ("replies", "clips", "bells", "size", "__weakref__")

    def __init__(self) -> None:
        self.size = (80, 24)
        self.replies: list[bytes] = []
        self.clips: list[bytes] = []
        self.bells = 0


class NativeTerminal:
    """Owns the C object. Marks hold on to it, so that it is never freed before them."""

    def __init__(self, binding: Binding, pointer: Any, history_rows: int, *, is_new: bool = True) -> None:
        self.binding = binding
        self.pointer = pointer
        self.heard = TerminalEvents()
        self._handle = binding.ffi.new_handle(self.heard)
        self._free = weakref.finalize(self, binding.lib.ghostty_terminal_free, pointer)
        self._free.atexit = False
        self._configure(is_new)
        self.heard.size = (self._read("COLS"), self._read("ROWS"))
        self.limit_history(history_rows, self.heard.size[0])

    @classmethod
    def blank(cls, cols: int, rows: int, history_rows: int) -> NativeTerminal:
        binding = load()
        made = binding.ffi.new("GhosttyTerminal *")
        check(binding.lib.ghostty_terminal_new(binding.ffi.NULL, made, cols, rows), "make a terminal")
        return cls(binding, made[0], history_rows)

    def _configure(self, is_new: bool) -> None:
        ffi, lib = self.binding.ffi, self.binding.lib
        self._set("USERDATA", self._handle)
        for option, callback in _callbacks(self.binding).items():
            self._set(option, callback)
        self._set("CLIPBOARD_WRITE_MAX_BYTES", ffi.new("size_t *", MAX_CLIPBOARD_BYTES))
        self._set("CONTINUATION_MAX_BYTES", ffi.new("size_t *", CONTINUATION_BYTES))
        # No pictures: programs could fill memory with them, and name files to be read as such.
        self._set("KITTY_IMAGE_STORAGE_LIMIT", ffi.new("uint64_t *", 0))
        if is_new:
            self._set_colors()
        mode = ffi.new("GhosttyTerminalModeConfig *")
        mode.mode, mode.value = GRAPHEME_CLUSTERS, True
        for option in ("MODE_DEFAULT", "MODE") if is_new else ("MODE_DEFAULT",):
            check(
                lib.ghostty_terminal_set(self.pointer, getattr(lib, f"GHOSTTY_TERMINAL_OPT_{option}"), mode),
                "set the width of grapheme clusters",
            )

    def _set_colors(self) -> None:
        """Programs ask for them (OSC 4, 10, 11) to tell a dark terminal from a light one."""
        ffi = self.binding.ffi
        self._set("COLOR_FOREGROUND", ffi.new("GhosttyColorRgb *", FOREGROUND))
        self._set("COLOR_BACKGROUND", ffi.new("GhosttyColorRgb *", BACKGROUND))
        self._set("COLOR_PALETTE", ffi.new("GhosttyColorRgb[256]", list(PALETTE)))

    def limit_history(self, rows: int, cols: int) -> None:
        """Bytes, not lines: a limit in lines costs four fifths of the speed, and the one in bytes defaults to 10 kB."""
        ffi = self.binding.ffi
        self._set("SCROLLBACK_MAX_LINES", ffi.NULL)
        self._set("SCROLLBACK_MAX_BYTES", ffi.new("size_t *", rows * int(cols * _CELL_BYTES + _ROW_BYTES)))

    def _read(self, name: str) -> int:
        lib = self.binding.lib
        value = self.binding.ffi.new("uint16_t *")
        check(lib.ghostty_terminal_get(self.pointer, getattr(lib, f"GHOSTTY_TERMINAL_DATA_{name}"), value), name)
        return int(value[0])

    def _set(self, option: str, value: Any) -> None:
        lib = self.binding.lib
        check(lib.ghostty_terminal_set(self.pointer, getattr(lib, f"GHOSTTY_TERMINAL_OPT_{option}"), value), option)

    def close(self) -> None:
        self._free()


class GhosttyMark:
    """A tracked place: libghostty-vt moves it with the text, and forgets it with the text."""

    __slots__ = ("_native", "ref", "is_alternate")

    def __init__(self, native: NativeTerminal, ref: Any, is_alternate: bool) -> None:
        self._native = native
        self.ref = ref
        self.is_alternate = is_alternate

    def __del__(self) -> None:
        if self._native._free.alive:
            self._native.binding.lib.ghostty_tracked_grid_ref_free(self.ref)

    @property
    def is_lost(self) -> bool:
        return not self._native.binding.lib.ghostty_tracked_grid_ref_has_value(self.ref)


def check(result: int, what: str) -> None:
    if result:
        raise Failed(f"libghostty-vt could not do this ({result}): {what}")


_made: dict[str, Any] = {}


def _callbacks(binding: Binding) -> dict[str, Any]:
    """One set for all terminals; the handle names the terminal."""
    if _made:
        return _made
    ffi, lib = binding.ffi, binding.lib

    def reply(_terminal: Any, heard: Any, data: Any, size: int) -> None:
        ffi.from_handle(heard).replies.append(ffi.buffer(data, size)[:])

    def bell(_terminal: Any, heard: Any) -> None:
        ffi.from_handle(heard).bells += 1

    def size(_terminal: Any, heard: Any, out: Any) -> bool:
        out.columns, out.rows = ffi.from_handle(heard).size
        out.cell_width, out.cell_height = CELL_PIXELS
        return True

    def clip(_terminal: Any, heard: Any, write: Any) -> None:
        for index in range(write.contents_len):
            data = write.contents[index].data
            ffi.from_handle(heard).clips.append(ffi.buffer(data.ptr, data.len)[:] if data.len else b"")
        if write.reply:
            answer = binding.sized("GhosttyClipboardWriteReply")
            answer.result = lib.GHOSTTY_CLIPBOARD_WRITE_RESULT_SUCCESS
            write.reply(write, answer)

    _made["WRITE_PTY"] = ffi.callback("GhosttyTerminalWritePtyFn", reply)
    _made["BELL"] = ffi.callback("GhosttyTerminalBellFn", bell)
    _made["SIZE"] = ffi.callback("GhosttyTerminalSizeFn", size)
    _made["CLIPBOARD_WRITE"] = ffi.callback("GhosttyTerminalClipboardWriteFn", clip)
    return _made


def encode_snapshot(native: NativeTerminal) -> bytes:
    ffi, lib = native.binding.ffi, native.binding.lib
    out, size = ffi.new("uint8_t **"), ffi.new("size_t *")
    if lib.ghostty_snapshot_encode_alloc(native.pointer, ffi.NULL, out, size):
        # In the middle of a sequence that is too long to be kept: it is cancelled, as CAN does.
        lib.ghostty_terminal_vt_write(native.pointer, b"\x18", 1)
        check(lib.ghostty_snapshot_encode_alloc(native.pointer, ffi.NULL, out, size), "take a snapshot")
    try:
        return bytes(ffi.buffer(out[0], size[0]))
    finally:
        lib.ghostty_free(ffi.NULL, out[0], size[0])


def draw_snapshot(rows: list[Row], cursor: Cursor, modes: Modes, title_and_directory: tuple[str, str]) -> bytes:
    """The bytes that draw these rows again, with the cursor in its place and the modes of keys and pastes."""
    title, place = title_and_directory
    switches = {1: modes.application_cursor, 1004: modes.focus, 2004: modes.bracketed_paste, 25: cursor.is_visible}
    parts = ["\x1b[?1049h\x1b[H" if modes.alternate else "", flow(rows)]
    parts += [f"\x1b[?{number}{'h' if is_on else 'l'}" for number, is_on in switches.items()]
    parts.append(f"\x1b]2;{title}\x07\x1b]7;{place}\x07\x1b[{cursor.row + 1};{cursor.col + 1}H")
    return "".join(parts).encode(errors="replace")


def decode_snapshot(data: bytes, history_rows: int) -> NativeTerminal:
    binding = load()
    ffi, lib = binding.ffi, binding.lib
    decoder, terminal = ffi.new("GhosttySnapshotDecoder *"), ffi.new("GhosttyTerminal *")
    memory = ffi.from_buffer("uint8_t[]", data)  # read while decoding, so it is held until then
    check(lib.ghostty_snapshot_decoder_new_buf(ffi.NULL, decoder, memory, len(data)), "read a snapshot")
    try:
        for option, value in (
            ("MAX_CONTINUATION_BYTES", ffi.new("size_t *", CONTINUATION_BYTES)),
            ("RETAIN_CONTINUATION", ffi.new("bool *", True)),
        ):
            key = getattr(lib, f"GHOSTTY_SNAPSHOT_DECODER_OPT_{option}")
            check(lib.ghostty_snapshot_decoder_set(decoder[0], key, value), option)
        if lib.ghostty_snapshot_decoder_decode(decoder[0], terminal):
            raise InvalidInput("this snapshot of a terminal is damaged", "take a new one")
    finally:
        lib.ghostty_snapshot_decoder_free(decoder[0])
        ffi.release(memory)
    return NativeTerminal(binding, terminal[0], history_rows, is_new=False)
