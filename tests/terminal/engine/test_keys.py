"""Key names, and the bytes they become in each mode."""

from __future__ import annotations

import pytest

from dari.errors import InvalidInput
from dari.terminal.engine.keys import NAMES, Key, parse_key, parse_keys
from tests.support.screens import both_engines, screen

C_C = Key("c", ctrl=True)


@pytest.mark.parametrize(
    "word", ["C-c", "c-c", "Ctrl-C", "ctrl+c", "CTRL-c", "<C-c>", "<Ctrl-C>", "^C", "^c", "control-c", "\x03"]
)
def test_a_chord_has_many_spellings(word: str) -> None:
    assert parse_keys(word) == [C_C]


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["Enter"], ["enter"]),
        (["Return"], ["enter"]),
        (["Up Up Enter"], ["up", "up", "enter"]),
        (["C-x C-s"], ["ctrl-x", "ctrl-s"]),
        (["y Enter"], ["y", "enter"]),
        (["a b"], ["a", "space", "b"]),
        (["hello"], ["h", "e", "l", "l", "o"]),
        (["ls -l", "Enter"], ["l", "s", "space", "-", "l", "enter"]),
        ([":wq<Enter>"], [":", "w", "q", "enter"]),
        (["<b>x"], ["<", "b", ">", "x"]),
        (["a\nb\t"], ["a", "enter", "b", "tab"]),
        (["M-x"], ["alt-x"]),
        (["Alt+Shift+Left"], ["alt-shift-left"]),
        (["S-Tab"], ["shift-tab"]),
        (["BTab"], ["shift-tab"]),
        (["C-M-Delete"], ["ctrl-alt-delete"]),
        (["F12", "f1"], ["f12", "f1"]),
        (["page-up", "PgDn", "PageDown", "PPage"], ["page_up", "page_down", "page_down", "page_up"]),
        (["C--", "C-+", "C-Space"], ["ctrl--", "ctrl-+", "ctrl-space"]),
        (["BSpace", "DC", "IC", "Esc"], ["backspace", "delete", "insert", "escape"]),
        (["cmd-k"], ["super-k"]),
        (["kp5", "KP_Enter"], ["kp_5", "kp_enter"]),
        (["한"], ["한"]),
        (["<lt>"], ["<"]),
    ],
)
def test_words_become_keys(words: list[str], keys: list[str]) -> None:
    assert [str(key) for key in parse_keys(*words)] == keys


def test_a_word_that_names_no_key_is_refused_where_one_key_is_wanted() -> None:
    with pytest.raises(InvalidInput, match="Entr"):
        parse_key("Entr")


NORMAL = {
    "a": b"a", "A": b"A", "é": "é".encode(), "Enter": b"\r", "Tab": b"\t", "S-Tab": b"\x1b[Z", "Escape": b"\x1b",
    "Space": b" ", "Backspace": b"\x7f", "C-Backspace": b"\b", "Delete": b"\x1b[3~", "Insert": b"\x1b[2~",
    "Home": b"\x1b[H", "End": b"\x1b[F", "PageUp": b"\x1b[5~", "PageDown": b"\x1b[6~",
    "Up": b"\x1b[A", "Down": b"\x1b[B", "Right": b"\x1b[C", "Left": b"\x1b[D", "S-Up": b"\x1b[1;2A",
    "C-Left": b"\x1b[1;5D", "M-Right": b"\x1b[1;3C", "C-S-End": b"\x1b[1;6F", "F1": b"\x1bOP", "F4": b"\x1bOS",
    "F5": b"\x1b[15~", "F10": b"\x1b[21~", "F12": b"\x1b[24~", "S-F5": b"\x1b[15;2~", "C-F1": b"\x1b[1;5P",
    "C-a": b"\x01", "C-c": b"\x03", "C-d": b"\x04", "C-z": b"\x1a", "C-i": b"\t", "C-m": b"\r", "C-[": b"\x1b",
    "C-\\": b"\x1c", "C-]": b"\x1d", "C-^": b"\x1e", "C-_": b"\x1f", "C-Space": b"\0", "C-@": b"\0", "C-?": b"\x7f",
    "M-x": b"\x1bx", "M-X": b"\x1bX", "C-M-a": b"\x1b\x01", "M-Enter": b"\x1b\r", "M-Backspace": b"\x1b\x7f",
    "S-a": b"A", "kp5": b"5", "KPEnter": b"\r", "M-한": b"\x1b" + "한".encode(), "S-Enter": b"\r",
}  # fmt: skip


@both_engines
@pytest.mark.parametrize("word", NORMAL)
def test_keys_are_sent_as_terminals_send_them(engine_name: str, word: str) -> None:
    assert screen(engine_name).encode_key(parse_key(word)) == NORMAL[word]


@both_engines
def test_every_named_key_can_be_sent(engine_name: str) -> None:
    mute = {"pause", "print_screen", "scroll_lock", "caps_lock", "num_lock", "f21", "f22", "f23", "f24", "f25"}
    engine = screen(engine_name)
    assert {name for name in NAMES if not engine.encode_key(Key(name))} == mute


@both_engines
def test_modes_change_what_keys_send(engine_name: str) -> None:
    engine = screen(engine_name, "\x1b[?1h\x1b=")
    assert engine.encode_key(parse_key("Up")) == b"\x1bOA"
    assert engine.encode_key(parse_key("Home")) == b"\x1bOH"
    assert engine.encode_key(parse_key("C-Up")) == b"\x1b[1;5A"
    assert engine.encode_key(parse_key("kp5")) == b"\x1bOu"
    engine.feed(b"\x1b[?1l\x1b>")
    assert engine.encode_key(parse_key("Up")) == b"\x1b[A"
    assert engine.encode_key(parse_key("kp5")) == b"5"


@both_engines
def test_programs_that_ask_for_kittys_protocol_get_it(engine_name: str) -> None:
    engine = screen(engine_name, "\x1b[>1u")
    assert engine.modes.kitty_keyboard == 1
    assert engine.encode_key(parse_key("C-c")) == b"\x1b[99;5u"
    assert engine.encode_key(parse_key("Escape")) == b"\x1b[27u"
    assert engine.encode_key(parse_key("a")) == b"a"
    engine.feed(b"\x1b[<u")
    assert engine.encode_key(parse_key("C-c")) == b"\x03"


@both_engines
def test_a_paste_cannot_press_keys(engine_name: str) -> None:
    engine = screen(engine_name)
    text = "a\nb\r\nc\td\x03\x04\x1b[201~e\x7f\x9b"
    assert engine.encode_paste(text) == b"a\rb\rc\td[201~e"
    engine.feed(b"\x1b[?2004h")
    assert engine.encode_paste(text) == b"\x1b[200~a\rb\rc\td[201~e\x1b[201~"


@both_engines
def test_the_mouse_is_reported_as_it_was_asked_for(engine_name: str) -> None:
    engine = screen(engine_name)
    assert engine.encode_mouse("press", "left", 3, 2) == b""
    engine.feed(b"\x1b[?1000h")
    assert engine.encode_mouse("press", "left", 3, 2) == b"\x1b[M $#"
    assert engine.encode_mouse("release", "left", 3, 2) == b"\x1b[M#$#"
    engine.feed(b"\x1b[?1006h")
    assert engine.encode_mouse("press", "right", 3, 2) == b"\x1b[<2;4;3M"
    assert engine.encode_mouse("release", "right", 3, 2) == b"\x1b[<2;4;3m"
    assert engine.encode_mouse("press", "wheel_up", 0, 0, frozenset({"ctrl"})) == b"\x1b[<80;1;1M"
    assert engine.encode_mouse("press", "wheel_down", 0, 0) == b"\x1b[<65;1;1M"
    assert engine.encode_mouse("move", "none", 5, 5) == b""
    engine.feed(b"\x1b[?1003h")
    assert engine.encode_mouse("move", "none", 5, 5) == b"\x1b[<35;6;6M"


@pytest.mark.parametrize(
    ("word", "letter"), [("C-r", "r"), ("c-r", "r"), ("<C-r>", "r"), ("C-d", "d"), ("D-c", "c"), ("M-l", "l")]
)
def test_a_chord_of_two_letters_is_no_name_of_a_key(word: str, letter: str) -> None:
    (key,) = parse_keys(word)
    assert key.name == letter and (key.ctrl or key.alt or key.super)
