"""The traps of libghostty-vt, each shown to be set right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.terminal.engine.ghostty.binding import load
from dari.terminal.engine.ghostty.cells import (
    LINK_BIT,
    STYLE_BITS,
    STYLE_SHIFT,
    TAG_BITS,
    TEXT_BITS,
    TEXT_SHIFT,
    WIDE_BITS,
    WIDE_SHIFT,
    RenderState,
)
from dari.terminal.engine.ghostty.screen import GhosttyEngine
from dari.terminal.engine.ghostty.terminal import NativeTerminal
from dari.terminal.engine.ghostty.values import KINDS, TERMINAL
from tests.support.screens import everything, screen

CANARY = 0xA5


@pytest.mark.parametrize("name", TERMINAL)
def test_a_value_is_no_larger_than_the_type_we_give_it(name: str) -> None:
    native = NativeTerminal.blank(20, 5, 100)
    binding = native.binding
    ffi, lib = binding.ffi, binding.lib
    lib.ghostty_terminal_vt_write(native.pointer, b"\x1b]2;t\x07\x1b]7;file:///x\x07", 20)
    size = ffi.sizeof(TERMINAL[name])
    memory = ffi.new("uint8_t[]", size + 256)
    ffi.memmove(memory, bytes([CANARY]) * (size + 256), size + 256)
    if name == "MODE":
        ffi.cast("GhosttyTerminalModeConfig *", memory).mode = 2004
    result = lib.ghostty_terminal_get(native.pointer, getattr(lib, f"GHOSTTY_TERMINAL_DATA_{name}"), memory)
    assert result == 0
    assert bytes(ffi.buffer(memory)[size:]) == bytes([CANARY]) * 256
    if size > 1 and name != "MODE":
        assert bytes(ffi.buffer(memory)[:size]) != bytes([CANARY]) * size, "nothing was written"


def test_every_kind_of_value_has_its_enum_in_the_library() -> None:
    lib = load().lib
    prefixes = {
        "terminal": "GHOSTTY_TERMINAL_DATA_",
        "render_state": "GHOSTTY_RENDER_STATE_DATA_",
        "render_state_row": "GHOSTTY_RENDER_STATE_ROW_DATA_",
        "render_state_row_cells": "GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_",
    }
    for kind, values in KINDS.items():
        for name in values:
            assert getattr(lib, prefixes[kind] + name) > 0


def test_cells_are_packed_where_we_read_them() -> None:
    binding = load()
    ffi, lib = binding.ffi, binding.lib
    engine = GhosttyEngine(20, 2, 10)
    engine.feed(
        "a한👨‍👩‍👧\x1b[1;31mB\x1b[0m\x1b]8;;http://x\x07L\x1b]8;;\x07\x1b[44m\x1b[K\x1b[48;2;1;2;3m\r\n\x1b[K".encode()
    )
    state = RenderState(engine._native)
    state.update()
    state._iterate()
    seen = set()
    while lib.ghostty_render_state_row_iterator_next(state._rows[0]):
        view = state._row_values.read(state._rows[0], "CELLS_RAW")
        for number in ffi.unpack(view.ptr, view.len):
            told = {}
            for name, ctype in (
                ("CONTENT_TAG", "uint32_t"),
                ("CODEPOINT", "uint32_t"),
                ("WIDE", "uint32_t"),
                ("STYLE_ID", "uint16_t"),
                ("HAS_HYPERLINK", "bool"),
            ):
                memory = ffi.new(ctype + " *")
                assert lib.ghostty_cell_get(number, getattr(lib, f"GHOSTTY_CELL_DATA_{name}"), memory) == 0
                told[name] = memory[0]
            seen.add(told["CONTENT_TAG"])
            assert number & TAG_BITS == told["CONTENT_TAG"]
            if told["CONTENT_TAG"] < 2:
                assert number >> TEXT_SHIFT & TEXT_BITS == told["CODEPOINT"]
            assert number >> STYLE_SHIFT & STYLE_BITS == told["STYLE_ID"]
            assert number >> WIDE_SHIFT & WIDE_BITS == told["WIDE"]
            assert bool(number & LINK_BIT) == told["HAS_HYPERLINK"]
    assert seen == {0, 1, 2, 3}
    assert engine.grid()[1][0].bg == (1, 2, 3)


def test_ten_thousand_rows_are_kept_in_less_than_twelve_megabytes() -> None:
    program = """
import os
from dari.terminal.engine.engine import make_engine
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
warm = make_engine(120, 40)
warm.feed(b"x" * 100)
before = resident()
engine = make_engine(120, 40, 10_000)
for start in range(0, 10_500, 100):
    rows = range(start, start + 100)
    engine.feed(b"".join(b"\\x1b[3%dm%s\\x1b[0m\\r\\n" % (n % 8, (b"row %d " % n * 20)[:119]) for n in rows))
print(engine.history, resident() - before)
engine.compress()
print(engine.text(-10_000, -9_999)[:3])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    kept, size_bytes, first = done.stdout.split()
    assert int(kept) >= 10_000
    assert int(size_bytes) <= 12 << 20, f"{int(size_bytes) / (1 << 20):.1f} MB"
    assert first == "row"


def test_compressed_history_reads_the_same() -> None:
    engine = screen("ghostty", b"".join(b"line %d\r\n" % n for n in range(5000)), cols=80, rows=24, history_rows=10_000)
    before = everything(engine)
    engine.compress()
    assert everything(engine) == before
    engine.feed(b"more\r\n")
    assert engine.text(-engine.history, -engine.history + 1) == "line 0"


def test_declarations_are_parsed_once_and_then_only_loaded(tmp_path: Path) -> None:
    program = """
import sys
from dari.terminal.engine.engine import make_engine
engine = make_engine(10, 2)
engine.feed(b"hello")
print(engine.text(0, 1), "pycparser" in sys.modules)
"""
    env = {**os.environ, "DARI_HOME": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, env=env)
        for _ in "ab"
    ]
    assert [run.stdout for run in runs] == ["hello True\n", "hello False\n"]
    kept = list((tmp_path / "cache" / "terminal").iterdir())
    assert len(kept) == 1
    assert kept[0].stat().st_mode & 0o777 == 0o600


def test_a_damaged_cache_is_made_anew(tmp_path: Path) -> None:
    program = "from dari.terminal.engine.engine import make_engine; make_engine(10, 2); print('fine')"
    env = {**os.environ, "DARI_HOME": str(tmp_path)}
    for content in (None, "this is ( no python", "raise ValueError(1)", "x = 1"):
        if content is not None:
            next((tmp_path / "cache" / "terminal").iterdir()).write_text(content)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, env=env)
        assert done.stdout == "fine\n", done.stderr


def test_many_screens_and_marks_come_and_go() -> None:
    for _ in range(50):
        engine = screen("ghostty", b"text\r\n" * 50)
        marks = [engine.mark() for _ in range(20)]
        engine.grid()
        engine.close()
        del engine
        del marks


@pytest.mark.parametrize("joined", ["🖨\u200d👩", "क्ष", "☀\u200d☀\ufe0f", "☀\ufe0e\u200d👩"])
@pytest.mark.parametrize("before", ["\x1b[1;3r", "\x1b[?69h\x1b[3;8s", "\x1b[1;3r\x1b[?69h\x1b[3;8s", ""])
def test_characters_that_join_where_no_line_follows_do_not_bring_it_down(joined: str, before: str) -> None:
    for col in (7, 8, 19, 20):
        for data in (f"{before}\x1b[5;{col}Hx{joined}", f"\x1b[5;{col}Hx\x1b7{before}\x1b8{joined}"):
            for size in (1, 3, 1000):
                engine = screen("ghostty", rows=5)
                raw = data.encode()
                for start in range(0, len(raw), size):
                    engine.feed(raw[start : start + size])
                assert "x" in engine.text(0, 5) or before
    plain = screen("ghostty", f"\x1b[2;19Hx{joined}", rows=5)
    assert joined in plain.text(0, 5, unwrap=True)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=200),
            st.sampled_from(
                [b"\x1b", b"\x1b[", b"\x1b]", b"\x1bP", b"\x9b", b"\x1b[999999999;", b"\x1b]52;c;", b"\x1b_G"]
            ),
            st.tuples(st.binary(max_size=6), st.sampled_from(b"ABCDHJKLMPSTXcfghlmnqrstu@`{|}~")).map(
                lambda made: b"\x1b[" + made[0] + bytes([made[1]])
            ),
            st.text(max_size=50).map(str.encode),
        ),
        max_size=20,
    ),
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 30)), max_size=4),
)
def test_no_bytes_bring_it_down(pieces: list[bytes], sizes: list[tuple[int, int]]) -> None:
    engine = screen("ghostty", cols=30, rows=8, history_rows=200)
    mark = engine.mark()
    for number, piece in enumerate(pieces):
        engine.feed(piece)
        if number < len(sizes):
            engine.resize(*sizes[number])
    rows = engine.rows
    assert engine.text(0, rows).count("\n") == rows - 1
    assert len(engine.grid(-engine.history)) == engine.history + rows
    engine.place(mark)
    again = GhosttyEngine.restored(engine.snapshot())
    assert again.text(0, rows) == engine.text(0, rows)
