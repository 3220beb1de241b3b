from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.knowledge.parse import ParseFailed, parse_bytes
from dari.knowledge.parse.encoding import decode

KOREAN = "연차 휴가는 일 년에 15일이며, 사흘 전에 신청해야 한다.\n두 번째 줄이다.\n"
FRENCH = "Le café est près de la gare; où êtes-vous allé hier soir ?\nDéjà vu, à côté.\n"


@pytest.mark.parametrize(
    "name", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp949", "euc-kr"]
)
def test_korean_is_read_in_every_encoding_that_is_about(name: str) -> None:
    text, warnings = decode((KOREAN * 3).encode(name))
    assert text == KOREAN * 3
    assert bool(warnings) == (name in ("cp949", "euc-kr", "utf-16-le", "utf-16-be"))


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_known_by_its_ascii(name: str) -> None:
    text, warnings = decode("plain words, 그리고 한글\n".encode(name) * 5)
    assert text == "plain words, 그리고 한글\n" * 5 and warnings


@pytest.mark.parametrize("name", ["latin-1", "cp1252"])
def test_accents_of_latin_1_are_not_taken_for_korean(name: str) -> None:
    text, warnings = decode(FRENCH.encode(name))
    assert text == FRENCH and warnings


def test_a_slip_in_utf_8_costs_one_character() -> None:
    text, warnings = decode((KOREAN * 5).encode() + b"\xff" + KOREAN.encode())
    assert text == KOREAN * 5 + "\ufffd" + KOREAN and warnings


@pytest.mark.parametrize("place", [0, 40, 700])
def test_a_slip_in_cp949_costs_a_character_wherever_it_stands(place: int) -> None:
    korean = (KOREAN * 20).encode("cp949")
    text, warnings = decode(korean[:place] + b"\xff" + korean[place:])
    assert text.count("휴가") >= 19
    assert 1 <= text.count("\ufffd") <= 3  # a pair that it stands in is lost with it
    assert "cp949" in warnings[0]


def test_a_guess_names_the_encoding_that_was_taken() -> None:
    text, warnings = decode("the price is €15 — “fair”\n".encode("cp1252"))
    assert text == "the price is €15 — “fair”\n"
    assert warnings == ["decoded as cp1252: a guess"]


def test_line_ends_of_every_system_count_the_same() -> None:
    assert decode(b"a\r\nb\rc\nd")[0] == "a\nb\nc\nd"
    assert parse_bytes(b"a\r\n\r\nb\r\n", "a.txt").blocks[1].line_start == 3


@pytest.mark.parametrize("data", [b"\0" * 100, bytes(range(256)) * 10, b"\x7fELF\1\2\3" + b"\0\1" * 50])
def test_binary_data_is_refused(data: bytes) -> None:
    with pytest.raises(ParseFailed) as caught:
        decode(data)
    assert caught.value.reason == "binary" and caught.value.is_skip


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=200))
def test_utf_8_is_always_read_as_it_is(text: str) -> None:
    assert decode(text.encode()) == (text.removeprefix("\ufeff"), [])


@given(st.binary(max_size=300))
def test_any_bytes_are_text_or_refused(data: bytes) -> None:
    try:
        text, _ = decode(data)
    except ParseFailed as error:
        assert error.reason == "binary"
    else:
        assert "\r" not in text
