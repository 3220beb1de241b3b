from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.knowledge.parse import ParseFailed, parse_bytes
from dari.knowledge.parse.encoding import decode

KOREAN = "연차 휴가는 일 년에 15일이며, 사흘 전에 신청해야 한다.\n두 번째 줄이다.\n"
JAPANESE = "有給休暇は一年に十五日で、三日前までに申請してください。\n二行目はテストの文です。\n"
SIMPLIFIED = "年假每年十五天，需要在三天之前提出申请。\n第二行说明备份保留的时间。\n"
TRADITIONAL = "年假每年十五天，需要在三天之前提出申請。\n第二行說明備份保留的時間。\n"
RUSSIAN = "Отпуск составляет пятнадцать дней в году, заявление подаётся за три дня.\nВторая строка.\n"
GREEK = "Η άδεια είναι δεκαπέντε ημέρες τον χρόνο και ζητείται τρεις ημέρες πριν.\nΗ δεύτερη γραμμή.\n"
FRENCH = "Le café est près de la gare; où êtes-vous allé hier soir ?\nDéjà vu, à côté.\n"


@pytest.mark.parametrize(
    "name", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp949", "euc-kr"]
)
def test_korean_is_read_in_every_encoding_that_is_about(name: str) -> None:
    text, warnings = decode((KOREAN * 3).encode(name))
    assert text == KOREAN * 3
    assert bool(warnings) == (name in ("cp949", "euc-kr", "utf-16-le", "utf-16-be"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shift_jis", JAPANESE),
        ("cp932", JAPANESE.replace("三", "③")),
        ("euc_jp", JAPANESE),
        ("iso2022_jp", JAPANESE),
        ("gb2312", SIMPLIFIED),
        ("gbk", SIMPLIFIED),
        ("gb18030", SIMPLIFIED),
        ("big5", TRADITIONAL),
        ("cp949", KOREAN),
        ("iso2022_kr", KOREAN),
    ],
)
def test_east_asian_text_is_read_in_the_encodings_of_its_language(name: str, text: str) -> None:
    for one in (text * 5, "plain ASCII first\n" * 5000 + text, text[:12]):
        read, warnings = decode(one.encode(name))
        assert read == one
        assert "a guess" in warnings[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cp1251", RUSSIAN),
        ("koi8_r", RUSSIAN),
        ("cp866", RUSSIAN),
        ("iso8859_5", RUSSIAN),
        ("cp1253", GREEK),
        ("iso8859_7", GREEK),
    ],
)
def test_cyrillic_and_greek_are_read_in_the_encodings_of_their_languages(name: str, text: str) -> None:
    for one in (text, "plain ASCII first\n" * 5000 + text):
        read, warnings = decode(one.encode(name))
        assert read == one
        assert "a guess" in warnings[0]


@pytest.mark.parametrize(("name", "text"), [("shift_jis", JAPANESE), ("gbk", SIMPLIFIED), ("big5", TRADITIONAL)])
def test_a_cut_in_east_asian_text_costs_a_character(name: str, text: str) -> None:
    read, warnings = decode((text * 20).encode(name)[:-2])
    assert read.startswith(text * 19) and "1 bytes were replaced" in warnings[0]


def test_names_without_a_frequent_syllable_are_still_korean() -> None:
    names = "곽쾌눌 뵈봄쾀 쑥뒝흼 톰쉼펜\n" * 3
    assert decode(names.encode("cp949"))[0] == names


def test_a_terminal_log_is_not_taken_for_japanese_mail() -> None:
    log = "\x1b[1mready\x1b[0m \x1b$B 값\n" * 3
    assert decode(log.encode()) == (log, [])


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


@pytest.mark.parametrize("name", ["utf-8", "cp949"])
def test_slips_count_by_the_whole_text_wherever_it_leaves_ascii(name: str) -> None:
    korean = (KOREAN * 40).encode(name) + b"\xff\n"
    text, warnings = decode(b"plain ASCII first\n" * 20_000 + korean * 5)
    assert text.count("휴가") == 200 and text.count("\ufffd") == 5 and len(warnings) == 1


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
