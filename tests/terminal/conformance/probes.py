"""Questions to a terminal that have one right answer, beyond those of tests/terminal/engine; asked of both engines.

`CATALOGUE` is the one list of everything that is probed, by subject, wherever the test stands. `SHORTFALLS` are the
probes that an engine does not pass; the list may only shrink.
"""

from __future__ import annotations

from dataclasses import dataclass

COLS, ROWS = 20, 6


@dataclass(frozen=True, slots=True)
class Picture:
    """Bytes, the rows they show on 20×6, and the cursor's column and row."""

    name: str
    data: str | bytes
    rows: list[str]
    cursor: tuple[int, int]

    @property
    def raw(self) -> bytes:
        return self.data if isinstance(self.data, bytes) else self.data.encode()


@dataclass(frozen=True, slots=True)
class Question:
    """What a program asks after `before`, and a pattern that the whole answer matches."""

    name: str
    before: str
    asked: str
    answer: str


FIVE = "1\r\n2\r\n3\r\n4\r\n5"

PICTURES = (
    # Tabs, charsets, saved cursors
    Picture("G1 is chosen by SO and left by SI", "\x1b)0\x0elqk\x0fx", ["┌─┐x"], (4, 0)),
    Picture("DECSC keeps the character set", "\x1b(0\x1b7\x1b(Bq\x1b8q", ["─"], (1, 0)),
    Picture("DECSC keeps origin mode", "\x1b[3;4r\x1b[?6h\x1b7\x1b[?6l\x1b8\x1b[1;1Hx", ["", "", "x"], (1, 2)),
    Picture("mode 1048 saves the cursor", "ab\x1b[?1048h\x1b[5;5H\x1b[?1048lx", ["abx"], (3, 0)),
    Picture("HTS sets a tab stop", "\x1b[3g\x1b[5G\x1bH\r\tx", ["    x"], (5, 0)),
    Picture("TBC 0 clears the one at the cursor", "\x1b[9G\x1b[0g\r\tx", [" " * 16 + "x"], (17, 0)),
    Picture("TBC without a number does the same", "\x1b[9G\x1b[g\r\tx", [" " * 16 + "x"], (17, 0)),
    Picture("CBT goes back by tab stops", "\x1b[18G\x1b[2Zx", ["        x"], (9, 0)),
    Picture("CHT goes on by tab stops", "\x1b[2Ix", [" " * 16 + "x"], (17, 0)),
    Picture("tabs end in the last column", "\x1b[19G\t\tx", [" " * 19 + "x"], (19, 0)),
    # Regions and margins
    Picture("SU scrolls the region alone", FIVE + "\x1b[2;4r\x1b[S", ["1", "3", "4", "", "5"], (0, 0)),
    Picture("SD scrolls the region alone", FIVE + "\x1b[2;4r\x1b[T", ["1", "", "2", "3", "5"], (0, 0)),
    Picture("IL stays in the region", FIVE + "\x1b[2;4r\x1b[3;1H\x1b[L", ["1", "2", "", "3", "5"], (0, 2)),
    Picture("DL stays in the region", FIVE + "\x1b[2;4r\x1b[2;1H\x1b[M", ["1", "3", "4", "", "5"], (0, 1)),
    Picture("RI at the top of a region", "1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[2;1H\x1bM", ["1", "", "2", "4"], (0, 1)),
    Picture("IND below a region does not scroll", "\x1b[1;2r\x1b[6;1Ha\x1bDb", ["", "", "", "", "", "ab"], (2, 5)),
    Picture("left and right margins wrap", "\x1b[?69h\x1b[3;6s\x1b[1;3Habcdefg", ["  abcd", "  efg"], (5, 1)),
    Picture("IL stays between margins", "ab\r\ncdefgh\x1b[?69h\x1b[3;5s\x1b[2;3H\x1b[L",
            ["ab", "cd   h", "  efg"], (2, 1)),
    # Both screens
    Picture("mode 47 comes back to the main screen", "main\x1b[?47halt\x1b[?47l", ["main"], (7, 0)),
    Picture("mode 1047 leaves nothing behind", "main\x1b[?1047halt\x1b[?1047l\x1b[?47h", [""], (7, 0)),
    # Wrapping
    Picture("a return ends the wait to wrap", "x" * 20 + "\ry", ["y" + "x" * 19], (1, 0)),
    Picture("a backspace ends the wait to wrap", "x" * 20 + "\by", ["x" * 18 + "yx"], (19, 0)),
    Picture("LNM adds the return", "\x1b[20hab\ncd", ["ab", "cd"], (2, 1)),
    Picture("VT and FF are line feeds", "a\x0bb\x0cc", ["a", " b", "  c"], (3, 2)),
    Picture("an accent joins the last column", "a" * 20 + "\u0301b", ["a" * 20 + "\u0301", "b"], (1, 1)),
    # Moves and edits
    Picture("HVP", "\x1b[2;3fx", ["", "  x"], (3, 1)),
    Picture("HPA, HPR and VPR", "\x1b[5`x\x1b[2ay\x1b[ez", ["    x  y", " " * 8 + "z"], (9, 1)),
    Picture("CUP with an empty row", "\x1b[;5Hx", ["    x"], (5, 0)),
    Picture("surplus numbers are left out", "\x1b[3;9Cx", ["   x"], (4, 0)),
    Picture("DECALN fills the screen", "\x1b[3;3H\x1b#8", ["E" * 20] * 6, (0, 0)),
    Picture("ED 3 leaves the screen", "\r\n".join("12345678") + "\x1b[3J", list("345678"), (1, 5)),
    Picture("DECSCA keeps what DECSEL would erase", '\x1b[1"qA\x1b[0"qB\x1b[?2K', ["A"], (2, 0)),
    Picture("DECSTR ends margins and modes, not the place", "\x1b[3;4r\x1b[4h\x1b[?6hxy\x1b[!p\rz\r\n\n\nw",
            ["", "", "zy", "", "", "w"], (1, 5)),
    Picture("REP repeats a wide character", "한\x1b[2b", ["한한한"], (6, 0)),
    # Wide and joined characters
    Picture("ICH before a wide character", "한글\x1b[1;3H\x1b[@", ["한 글"], (2, 0)),
    Picture("DCH in the middle of one", "한글x\x1b[1;2H\x1b[P", [" 글x"], (1, 0)),
    Picture("ECH in the middle of one", "한글x\x1b[1;2H\x1b[X", ["  글x"], (1, 0)),
    Picture("EL in the middle of one", "한글\x1b[1;2H\x1b[K", [""], (1, 0)),
    Picture("its first half overwritten", "한\rx", ["x"], (1, 0)),
    Picture("IRM moves by two", "ab\r\x1b[4h한", ["한ab"], (2, 0)),
    Picture("jamo are one syllable", "\u1112\u1161\u11abx", ["\u1112\u1161\u11abx"], (3, 0)),
    Picture("a keycap is wide", "1\ufe0f\u20e3x", ["1\ufe0f\u20e3x"], (3, 0)),
    Picture("text style narrows", "☀\ufe0ex", ["☀\ufe0ex"], (2, 0)),
    Picture("a skin tone inside a ZWJ sequence", "👩🏽\u200d🚀x", ["👩🏽\u200d🚀x"], (3, 0)),
    Picture("an odd regional indicator", "🇰🇷🇯x", ["🇰🇷🇯x"], (5, 0)),
    Picture("a conjunct is one cluster", "क्षx", ["क्षx"], (3, 0)),
    Picture("halfwidth and fullwidth forms", "ｱﾞＡx", ["ｱﾞＡx"], (5, 0)),
    Picture("without mode 2027 the family falls apart", "\x1b[?2027l👨\u200d👩\u200d👧x",
            ["👨\u200d👩\u200d👧x"], (7, 0)),
    # What must leave no trace
    Picture("NUL and DEL are fillers", "a\x00b\x7fc", ["abc"], (3, 0)),
    Picture("a doubled ESC", "a\x1b\x1b[31mb", ["ab"], (2, 0)),
    Picture("a sequence inside an OSC ends it", "a\x1b]2;x\x1b[31mb", ["ab"], (2, 0)),
    Picture("a long DCS", "a\x1bP" + "z" * 500 + "\x1b\\b", ["ab"], (2, 0)),
    Picture("colours with colons", "\x1b[38:2::1:2:3mx\x1b[4:3;58:5:1my", ["xy"], (2, 0)),
    Picture("zero-width space and BOM take no column", "a\u200bb\ufeffc", ["abc"], (3, 0)),
    # Bytes that are no UTF-8
    Picture("a stray byte", b"a\xffb\xc3(c", ["a\ufffdb\ufffd(c"], (6, 0)),
    Picture("an overlong NUL", b"a\xc0\x80b", ["a\ufffd\ufffdb"], (4, 0)),
    Picture("a surrogate", b"a\xed\xa0\x80b", ["a\ufffd\ufffd\ufffdb"], (5, 0)),
    Picture("a character cut off by a sequence", b"a\xe4\xbd\x1b[31mb", ["a\ufffdb"], (3, 0)),
    Picture("C1 is not taken from UTF-8 bytes", b"a\x9b31mb", ["a\ufffd31mb"], (6, 0)),
)  # fmt: skip

_MODES = (1, 5, 6, 7, 25, 45, 69, 1000, 1002, 1003, 1004, 1006, 1016, 1047, 1049, 2004, 2026, 2048)

QUESTIONS = (
    Question("DA1 says VT220 and more", "", "\x1b[c", r"\x1b\[\?6[2-5](;\d+)*c"),
    Question("DA2 has three numbers", "", "\x1b[>c", r"\x1b\[>\d+;\d+;\d+c"),
    Question("DA3 is a unit id", "", "\x1b[=c", r"\x1bP!\|[0-9A-F]{8}\x1b\\"),
    Question("DSR 5", "", "\x1b[5n", r"\x1b\[0n"),
    Question("CPR", "ab\r\nabc", "\x1b[6n", r"\x1b\[2;4R"),
    Question("CPR while the cursor waits to wrap", "x" * 20, "\x1b[6n", r"\x1b\[1;20R"),
    Question("CPR in origin mode", "\x1b[2;4r\x1b[?6h\x1b[2;3H", "\x1b[6n", r"\x1b\[2;3R"),
    Question("DECXCPR", "\x1b[2;3H", "\x1b[?6n", r"\x1b\[\?2;3(;1)?R"),
    Question("XTVERSION", "", "\x1b[>q", r"\x1bP>\|[\x20-\x7e]+\x1b\\"),
    Question("DECRQSS of SGR", "\x1b[1;31m", "\x1bP$qm\x1b\\", r"\x1bP1\$r0;1;31m\x1b\\"),
    Question("DECRQSS of the region", "\x1b[2;4r", "\x1bP$qr\x1b\\", r"\x1bP1\$r2;4r\x1b\\"),
    Question("DECRQSS of the margins", "\x1b[?69h\x1b[3;8s", "\x1bP$qs\x1b\\", r"\x1bP1\$r3;8s\x1b\\"),
    Question("DECRQSS of the cursor's shape", "\x1b[5 q", "\x1bP$q q\x1b\\", r"\x1bP1\$r5 q\x1b\\"),
    Question("DECRQSS of nothing known", "", "\x1bP$qz\x1b\\", r"\x1bP0\$rz?\x1b\\"),
    Question("DECRQM of insert mode", "\x1b[4h", "\x1b[4$p", r"\x1b\[4;1\$y"),
    Question("DECRQM of a mode nobody has", "", "\x1b[?9999$p", r"\x1b\[\?9999;0\$y"),
    Question("DECRQM of grapheme clusters", "", "\x1b[?2027$p", r"\x1b\[\?2027;[13]\$y"),
    *(Question(f"DECRQM of {n} set", f"\x1b[?{n}h", f"\x1b[?{n}$p", rf"\x1b\[\?{n};1\$y") for n in _MODES),
    *(Question(f"DECRQM of {n} reset", f"\x1b[?{n}l", f"\x1b[?{n}$p", rf"\x1b\[\?{n};2\$y") for n in _MODES),
    Question("OSC 4", "", "\x1b]4;1;?\x07", r"\x1b\]4;1;rgb:cdcd/0000/0000\x07"),
    Question("OSC 10", "", "\x1b]10;?\x07", r"\x1b\]10;rgb:(e5e5/?){3}\x07"),
    Question("OSC 11", "", "\x1b]11;?\x07", r"\x1b\]11;rgb:(0000/?){3}\x07"),
    Question("the size in characters", "", "\x1b[18t", r"\x1b\[8;6;20t"),
    Question("the size in pixels", "", "\x1b[14t", r"\x1b\[4;96;160t"),
    Question("the size of a cell", "", "\x1b[16t", r"\x1b\[6;16;8t"),
    Question("kitty keyboard, off", "", "\x1b[?u", r"\x1b\[\?0u"),
    Question("kitty keyboard, pushed", "\x1b[>5u", "\x1b[?u", r"\x1b\[\?5u"),
    Question("kitty keyboard, set", "\x1b[=3;1u", "\x1b[?u", r"\x1b\[\?3u"),
    Question("kitty keyboard, popped", "\x1b[>5u\x1b[<u", "\x1b[?u", r"\x1b\[\?0u"),
    # What is never told: it would be typed at the prompt, or let one program read what another left.
    Question("no title", "\x1b]0;rm -rf x\r\x07", "\x1b[20t\x1b[21t", ""),
    Question("no clipboard", "", "\x1b]52;c;?\x07", ""),
    Question("no checksum of the screen", "secret", "\x1b[1;1;1;1;1;6*y", ""),
    Question("no answerback", "", "\x05", ""),
)  # fmt: skip

SHORTFALLS: dict[str, dict[str, str]] = {
    "ghostty": {
        "TBC without a number does the same": "libghostty-vt leaves `CSI g` out; finding it costs more than it is used",
        "surplus numbers are left out": "libghostty-vt leaves CUF, CUB, CUU, CUD, HPR and VPR with two numbers out",
        "DECXCPR": "libghostty-vt has no answer to `CSI ? 6 n`; programs ask `CSI 6 n`",
    },
    "bittty": {
        "mode 1047 leaves nothing behind": "bittty clears the alternate screen on entering, not on leaving",
        "DECALN fills the screen": "bittty leaves the cursor where it was",
        "DECSTR ends margins and modes, not the place": "bittty moves the cursor to the first row",
        "without mode 2027 the family falls apart": "clusters are always on in the fallback",
        "CPR in origin mode": "bittty tells the row of the screen, not that of the region",
    },
}

CATALOGUE: dict[str, tuple[str, ...]] = {
    "text, moves, erase, insert, delete, regions, screens, widths (55 pictures)": (
        "engine/test_probes.py::test_a_sequence_does_what_terminals_do",
        "engine/test_probes.py::test_it_does_the_same_when_it_comes_byte_by_byte",
    ),
    "tabs, charsets, DECSC/DECRC, margins, DECSTR, clusters, bad UTF-8 (PICTURES)": (
        "conformance/test_probes.py::test_a_sequence_does_what_terminals_do",
    ),
    "DA, DSR, CPR, DECRQM, DECRQSS, XTVERSION, colours, sizes, kitty keyboard (QUESTIONS)": (
        "conformance/test_probes.py::test_a_program_is_answered",
        "engine/test_screens.py::test_programs_are_answered",
    ),
    "OSC 0, 2 and 7": ("engine/test_screens.py::test_titles_and_places_are_kept",),
    "OSC 8": (
        "engine/test_screens.py::test_cells_carry_all_that_a_picture_needs",
        "conformance/test_probes.py::test_a_link_ends_where_it_is_ended",
    ),
    "OSC 52": ("engine/test_screens.py::test_the_clipboard_can_be_written_and_never_read",),
    "OSC 133 and 7701": (
        "engine/test_screens.py::test_our_sequences_are_told_at_their_place",
        "engine/test_screens.py::test_a_prompt_begins_on_a_line_of_its_own",
        "engine/test_screens.py::test_a_sequence_that_is_cancelled_or_too_long_is_not_told",
    ),
    "bracketed paste (2004)": ("engine/test_keys.py::test_a_paste_cannot_press_keys",),
    "mouse (9, 1000, 1002, 1003, 1006, 1016)": (
        "engine/test_keys.py::test_the_mouse_is_reported_as_it_was_asked_for",
        "conformance/test_probes.py::test_each_kind_of_mouse_report_has_its_mode",
    ),
    "keys, application modes, kitty keyboard": (
        "engine/test_keys.py::test_keys_are_sent_as_terminals_send_them",
        "engine/test_keys.py::test_modes_change_what_keys_send",
        "engine/test_keys.py::test_programs_that_ask_for_kittys_protocol_get_it",
    ),
    "reflow": (
        "engine/test_screens.py::test_a_narrower_screen_wraps_anew_and_a_wider_one_joins_again",
        "conformance/test_probes.py::test_wide_characters_and_the_cursor_survive_reflow",
        "engine/test_screens.py::test_no_size_breaks_it",
    ),
    "scrollback in bytes": ("engine/test_ghostty.py::test_ten_thousand_rows_are_kept_in_less_than_twelve_megabytes",),
    "no history behind the alternate screen": (
        "engine/test_screens.py::test_there_is_no_history_behind_the_alternate_screen",
    ),
    "ED 3": ("conformance/test_probes.py::test_history_can_be_erased",),
    "synchronized output (2026)": ("conformance/test_probes.py::test_synchronized_output_is_told_and_ends",),
    "the size is its owner's": ("conformance/test_probes.py::test_a_program_cannot_change_the_size_of_its_screen",),
    "reset": ("conformance/test_probes.py::test_a_reset_ends_every_mode",),
    "snapshots": (
        "engine/test_screens.py::test_a_snapshot_brings_everything_back",
        "engine/test_screens.py::test_a_snapshot_keeps_both_screens",
        "conformance/test_probes.py::test_a_snapshot_in_the_middle_of_a_sequence_loses_nothing",
    ),
}
