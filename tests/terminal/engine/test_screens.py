"""What both engines promise besides showing text."""

from __future__ import annotations

import base64

import msgspec
import pytest

from dari.errors import InvalidInput
from dari.terminal.engine.engine import MAX_CLIPBOARD_BYTES, Cursor, make_engine, restore_engine
from dari.terminal.engine.grid import BLANK
from dari.terminal.engine.keys import parse_key
from tests.support.screens import both_engines, everything, screen, shown

MODES = "\x1b[?1h\x1b=\x1b[?2004h\x1b[?1002h\x1b[?1006h\x1b[?1004h\x1b[3 q"


@both_engines
def test_rows_that_scrolled_off_have_negative_numbers(engine_name: str) -> None:
    engine = screen(engine_name, "\r\n".join(f"line {n}" for n in range(20)))
    assert engine.history == 14
    assert engine.text(-1, 1) == "line 13\nline 14"
    assert engine.text(-99, -12) == "line 0\nline 1"
    assert [row.text for row in engine.grid(-2, 2)] == ["line 12", "line 13", "line 14", "line 15"]
    assert engine.text(3, 3) == ""


@both_engines
def test_one_line_of_text_for_each_row_and_none_lost(engine_name: str) -> None:
    engine = screen(engine_name, "\r\n\r\na\r\n\r\n")
    assert engine.text(0, 6) == "\n\na\n\n\n"
    assert engine.text(2, 4) == "a\n"


@both_engines
def test_wrapped_lines_come_whole_when_asked(engine_name: str) -> None:
    engine = screen(engine_name, "a" * 45 + "\r\nb")
    assert engine.text(0, 6, unwrap=True).rstrip("\n") == "a" * 45 + "\nb"
    assert [row.wraps for row in engine.grid()] == [True, True, False, False, False, False]


@both_engines
def test_a_narrower_screen_wraps_anew_and_a_wider_one_joins_again(engine_name: str) -> None:
    engine = screen(engine_name, "abcdefghij" * 4 + "\r\nend", rows=10)
    engine.resize(10, 10)
    assert everything(engine) == ["abcdefghij"] * 4 + ["end"]
    engine.resize(40, 10)
    assert everything(engine) == ["abcdefghij" * 4, "end"]
    assert (engine.cols, engine.rows, engine.cursor.col, engine.cursor.row) == (40, 10, 3, 1)


@both_engines
@pytest.mark.parametrize("alternate", ["", "\x1b[?1049h"])
def test_no_size_breaks_it(engine_name: str, alternate: str) -> None:
    engine = screen(engine_name, "한글 wide text " * 40 + alternate)
    for cols, rows in [(1, 1), (500, 200), (2, 1), (1, 200), (500, 1), (3, 3), (80, 24), (1, 1), (20, 6)]:
        engine.resize(cols, rows)
        engine.feed("漢字 e\u0301 👨‍👩‍👧 text\r\n\x1b[5;5Hx\x1b[2;1000r\x1b[K".encode())
        assert (engine.cols, engine.rows) == (cols, rows)
        assert engine.text(0, rows).count("\n") == rows - 1
        assert len(engine.grid()) == rows
        assert 0 <= engine.cursor.col == engine.cursor_column < cols
        assert 0 <= engine.cursor.row < rows


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (-1, 5), (5001, 5), (5, 5001)])
def test_an_impossible_size_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput):
        make_engine(*size)
    with pytest.raises(InvalidInput):
        screen("ghostty").resize(*size)


@both_engines
def test_a_mark_moves_with_the_text(engine_name: str) -> None:
    engine = screen(engine_name, "before ")
    mark = engine.mark()
    assert engine.place(mark) == (7, 0)
    engine.feed(b"after\r\n" + b"".join(b"line %d\r\n" % n for n in range(20)))
    assert engine.place(mark) == (7, -engine.history)
    assert not mark.is_lost


@both_engines
def test_a_mark_says_when_its_text_is_gone(engine_name: str) -> None:
    engine = screen(engine_name, "first\r\n", history_rows=50)
    mark = engine.mark()
    engine.feed(b"".join(b"line %d\r\n" % n for n in range(20_000)))
    assert mark.is_lost
    assert engine.place(mark) is None


@both_engines
def test_there_is_no_history_behind_the_alternate_screen(engine_name: str) -> None:
    engine = screen(engine_name, "\r\n".join(map(str, range(20))))
    before = engine.history
    engine.feed(b"\x1b[?1049h\x1b[H" + b"\r\n" * 30)
    assert engine.modes.alternate
    assert engine.history == 0
    engine.feed(b"\x1b[?1049l")
    assert not engine.modes.alternate
    assert engine.history == before


@both_engines
def test_programs_are_answered(engine_name: str) -> None:
    engine = screen(engine_name)
    said: list[bytes] = []
    engine.on_reply = said.append
    for question, answer in [
        (b"\x1b[c", b"\x1b[?62;"),
        (b"\x1b[6n", b"\x1b[1;1R"),
        (b"\x1b[5n", b"\x1b[0n"),
        (b"\x1b]11;?\x07", b"\x1b]11;rgb:0000/0000/0000\x07"),
        (b"\x1b[18t", b"\x1b[8;6;20t"),
        (b"\x1b[14t", b"\x1b[4;96;160t"),
        (b"\x1b[?2004$p", b"\x1b[?2004;2$y"),
        (b"\x1b[?2027$p", b"\x1b[?2027;"),
        (b"\x1bP$qm\x1b\\", b"\x1bP1$r0m\x1b\\"),
    ]:
        said.clear()
        engine.feed(question)
        assert b"".join(said).startswith(answer), question


@both_engines
def test_titles_and_places_are_kept(engine_name: str) -> None:
    engine = screen(engine_name)
    assert (engine.title, engine.cwd) == ("", "")
    engine.feed("\x1b]0;first\x07\x1b]2;제목\x1b\\\x1b]7;file://localhost/tmp/a%20b\x07".encode())
    assert (engine.title, engine.cwd) == ("제목", "/tmp/a b")
    engine.feed(b"\x1b]7;file://another.machine.example/etc\x07")
    assert engine.cwd == ""
    engine.feed(b"\x1b]0;" + b"x" * 5000 + b"\x07")
    assert len(engine.title) <= 2048


@both_engines
def test_the_clipboard_can_be_written_and_never_read(engine_name: str) -> None:
    engine = screen(engine_name)
    clips: list[bytes] = []
    said: list[bytes] = []
    engine.on_clipboard, engine.on_reply = clips.append, said.append
    engine.feed(b"\x1b]52;c;" + base64.b64encode("한글".encode()) + b"\x07\x1b]52;c;?\x07")
    engine.feed(b"\x1b]52;c;" + base64.b64encode(b"x" * (MAX_CLIPBOARD_BYTES + 10)) + b"\x07")
    assert clips == ["한글".encode()]
    assert said == []


@both_engines
def test_the_bell_rings(engine_name: str) -> None:
    engine = screen(engine_name)
    rung: list[bool] = []
    engine.on_bell = lambda: rung.append(True)
    engine.feed(b"a\x07b")
    assert rung == [True]


@both_engines
def test_our_sequences_are_told_at_their_place(engine_name: str) -> None:
    engine = screen(engine_name)
    heard: list[tuple[int, bytes, int, str]] = []
    engine.on_osc = lambda number, payload: heard.append((number, payload, engine.consumed, engine.text(0, 1)))
    data = b"ab\x1b]133;B\x07cd\x1b]7701;x;y\x1b\\ef\x1b]8;;http://x\x07"
    engine.feed(data)
    assert heard == [(133, b"B", 10, "ab"), (7701, b"x;y", 24, "abcd")]
    whole = heard.copy()
    for cut in range(1, len(data)):
        heard.clear()
        other = screen(engine_name)
        other.on_osc = lambda number, payload, other=other: heard.append(  # type: ignore[misc]
            (number, payload, other.consumed, other.text(0, 1))
        )
        other.feed(data[:cut])
        other.feed(data[cut:])
        assert heard == whole


@both_engines
def test_a_prompt_begins_on_a_line_of_its_own(engine_name: str) -> None:
    assert shown(screen(engine_name, "no line end\x1b]133;A\x07$ ")) == ["no line end", "$"]
    assert shown(screen(engine_name, "line\r\n\x1b]133;A\x07$ ")) == ["line", "$"]


@both_engines
def test_a_sequence_that_is_cancelled_or_too_long_is_not_told(engine_name: str) -> None:
    engine = screen(engine_name)
    heard: list[bytes] = []
    engine.on_osc = lambda number, payload: heard.append(payload)
    engine.feed(b"\x1b]7701;cancelled\x18")
    engine.feed(b"\x1b]7701;left\x1b[31m")
    for _ in range(30):
        engine.feed(b"\x1b]7701;" + b"x" * 10_000 if _ == 0 else b"y" * 10_000)
    engine.feed(b"\x07\x1b]7701;right\x07")
    assert heard == [b"right"]


@both_engines
def test_cells_carry_all_that_a_picture_needs(engine_name: str) -> None:
    data = "\x1b[1;3;4;9;31;44mA\x1b[0;2;7;38;2;1;2;3;48;5;196mB\x1b[0m한\x1b]8;;http://x\x07L\x1b]8;;\x07\x1b[4:3;58;2;9;8;7mU"
    row = screen(engine_name, data).grid()[0]
    first, second, wide, tail, link, curly = row.cells[:6]
    assert (first.bold, first.italic, first.underline, first.strike) == (True, True, "single", True)
    assert (first.fg, first.bg) == ((205, 0, 0), (0, 0, 238))
    assert (second.dim, second.inverse, second.fg, second.bg) == (True, True, (1, 2, 3), (255, 0, 0))
    assert (wide.text, wide.width, tail.text, tail.width) == ("한", 2, "", 0)
    assert (link.text, link.link) == ("L", "http://x")
    assert (curly.underline, curly.underline_color) == ("curly", (9, 8, 7))
    assert row[6] == BLANK


@both_engines
def test_cells_can_be_written_as_json_with_wide_characters(engine_name: str) -> None:
    row = screen(engine_name, "a한👍").grid().rows[0]
    assert [type(cell.text) for cell in row] == [str] * len(row)
    assert msgspec.json.decode(msgspec.json.encode(row))["cells"][1]["text"] == "한"


@both_engines
def test_a_terminal_whose_own_colours_a_program_set_says_so(engine_name: str) -> None:
    made = screen(engine_name, "text")
    assert (made.grid().foreground, made.grid().background) == (None, None)
    made.feed(b"\x1b]10;#102030\x07\x1b]11;rgb:ff/f0/e0\x1b\\")
    assert (made.grid().foreground, made.grid().background) == ((16, 32, 48), (255, 240, 224))
    made.feed(b"\x1b[?5h")
    assert (made.grid().foreground, made.grid().background) == ((16, 32, 48), (255, 240, 224))
    made.feed(b"\x1b]110\x07\x1b]111\x07")
    assert (made.grid().foreground, made.grid().background) == (None, None)


@both_engines
def test_erasing_paints_with_the_background(engine_name: str) -> None:
    row = screen(engine_name, "\x1b[45mx\x1b[K").grid()[0]
    assert {cell.bg for cell in row} == {(205, 0, 205)}


@both_engines
def test_html_is_escaped_and_coloured(engine_name: str) -> None:
    html = screen(engine_name, "<b>&\x1b[31mred\x1b[0m").text(0, 1, form="html")
    assert html == '<pre>&lt;b&gt;&amp;<span style="color:#cd0000">red</span></pre>'


@both_engines
def test_the_cursor_tells_its_shape(engine_name: str) -> None:
    engine = screen(engine_name, "ab\x1b[6 q\x1b[?25l")
    assert engine.cursor == Cursor(col=2, row=0, shape="bar", is_visible=False, is_blinking=False)


@both_engines
def test_a_snapshot_brings_everything_back(engine_name: str) -> None:
    text = "".join(f"\x1b[3{n % 8}mline {n} 한글\x1b[0m {'wrapped ' * 4}\r\n" for n in range(100))
    engine = screen(engine_name, text + "\x1b]2;title\x07\x1b]7;file:///tmp\x07" + MODES + "prompt $ ")
    again = restore_engine(engine.snapshot())
    assert again.name == engine.name
    assert everything(again) == everything(engine)
    assert again.grid(-again.history).rows == engine.grid(-engine.history).rows
    assert (again.title, again.cwd, again.cursor, again.modes) == ("title", "/tmp", engine.cursor, engine.modes)
    for one in (engine, again):
        one.feed(b"x\r\nmore")
        one.resize(30, 8)
    assert everything(again) == everything(engine)
    assert again.encode_key(parse_key("Up")) == b"\x1bOA"


@both_engines
def test_a_snapshot_keeps_both_screens(engine_name: str) -> None:
    engine = screen(engine_name, "main text\x1b[?1049h\x1b[Hother text")
    again = restore_engine(engine.snapshot())
    assert shown(again) == ["other text"]
    again.feed(b"\x1b[?1049l")
    assert shown(again) == ["main text"]


@both_engines
def test_a_snapshot_in_the_middle_of_our_sequence_loses_nothing(engine_name: str) -> None:
    engine = screen(engine_name, "\x1b]7701;he")
    again = restore_engine(restore_engine(engine.snapshot()).snapshot())
    heard: list[bytes] = []
    again.on_osc = lambda number, payload: heard.append(payload)
    again.feed(b"llo\x07x")
    assert heard == [b"hello"]


@pytest.mark.parametrize(
    ("engine_name", "before"),
    [("ghostty", "\x1b[?1049h\x1b[H"), ("bittty", "\x1b[?1049h\x1b[H"), ("ghostty", "\x1b[?7l")],
)
def test_a_screen_that_cut_wide_characters_in_half_can_be_kept(engine_name: str, before: str) -> None:
    engine = screen(engine_name, before + "가나다라마\r\nabc")
    engine.resize(5, 6)
    assert shown(engine) == ["가나", "abc"]
    assert (engine.cursor.col, engine.cursor.row) == (3, 1)
    assert shown(restore_engine(engine.snapshot())) == ["가나", "abc"]


def test_a_screen_that_the_library_refuses_to_keep_is_drawn_anew() -> None:
    engine = screen("ghostty", cols=80, rows=24)
    engine.feed(b"\x1b[?1049h\x1b[?69h\x1b[8s" + "w  字 👧 e\u0301 字👧字".encode() * 6)
    for cols in range(79, 3, -1):
        engine.resize(cols, 24)
        assert shown(restore_engine(engine.snapshot())) == shown(engine)


def test_a_sequence_too_long_to_be_kept_does_not_stop_a_snapshot() -> None:
    engine = screen("ghostty", b"text\x1b]2;" + b"x" * 3_000_000)
    assert shown(restore_engine(engine.snapshot())) == ["text"]


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", b"dari-ghostty-1\n", b'dari-ghostty-1\n{"history_rows":1,"held":""}\nxxxx']
)
def test_what_is_no_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        restore_engine(data)
