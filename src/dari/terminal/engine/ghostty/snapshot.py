"""A native terminal as bytes and back, with everything in it: both screens, history, modes, a half-read sequence."""

from __future__ import annotations

from dari.errors import InvalidInput
from dari.terminal.engine.engine import Cursor, Modes
from dari.terminal.engine.fallback.replay import flow
from dari.terminal.engine.ghostty.binding import load
from dari.terminal.engine.ghostty.terminal import CONTINUATION_BYTES, NativeTerminal, check
from dari.terminal.engine.grid import Row


def encode(native: NativeTerminal) -> bytes:
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


def draw(rows: list[Row], cursor: Cursor, modes: Modes, told: tuple[str, str]) -> bytes:
    """The bytes that draw these rows again, with the cursor in its place and the modes of keys and pastes."""
    title, place = told
    switches = {1: modes.application_cursor, 1004: modes.focus, 2004: modes.bracketed_paste, 25: cursor.is_visible}
    parts = ["\x1b[?1049h\x1b[H" if modes.alternate else "", flow(rows)]
    parts += [f"\x1b[?{number}{'h' if is_on else 'l'}" for number, is_on in switches.items()]
    parts.append(f"\x1b]2;{title}\x07\x1b]7;{place}\x07\x1b[{cursor.row + 1};{cursor.col + 1}H")
    return "".join(parts).encode(errors="replace")


def decode(data: bytes, history_rows: int) -> NativeTerminal:
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
