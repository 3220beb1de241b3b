from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.terminal.input_methods.hangul import FIRST_SYLLABLE, SYLLABLES, HangulComposer, compose, decompose

KEYS = "qwertyuiopasdfghjklzxcvbnmQWERTYUIOPASDFGHJKLZXCVBNM"
_syllables = st.integers(0, SYLLABLES - 1).map(lambda index: chr(FIRST_SYLLABLE + index))


def test_all_11172_syllables_are_typed_by_their_keys() -> None:
    assert SYLLABLES == 11172
    for index in range(SYLLABLES):
        syllable = chr(FIRST_SYLLABLE + index)
        assert compose(decompose(syllable)) == syllable


@settings(max_examples=500, deadline=None)
@given(st.lists(_syllables, max_size=20).map("".join))
def test_any_run_of_syllables_comes_back_from_its_keys(text: str) -> None:
    assert compose(decompose(text)) == text
    assert compose(decompose(unicodedata.normalize("NFD", text))) == text


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("gksrmf", "한글"),
        ("dkssudgktpdy", "안녕하세요"),
        ("rkqt", "값"),
        ("rkqtdl", "값이"),
        ("rkqtk", "갑사"),
        ("ekfr", "닭"),
        ("ekfrdl", "닭이"),
        ("ekfrl", "달기"),
        ("Rhcl", "꼬치"),
        ("dkRk", "아까"),
        ("dkEk", "아따"),
        ("dPQ", "예ㅃ"),
        ("dhk", "와"),
        ("dml", "의"),
        ("qnpfr", "뷁"),
        ("rr", "ㄱㄱ"),
        ("kk", "ㅏㅏ"),
        ("hk", "ㅘ"),
        ("rkskek", "가나다"),
        ("ls 한", "ㅣㄴ 한"),
        ("GKS", "한"),
        ("1+1", "1+1"),
    ],
)
def test_keys_become_text_as_on_a_korean_keyboard(keys: str, text: str) -> None:
    assert compose(keys) == text


def test_the_preedit_grows_letter_by_letter_and_a_moved_consonant_commits() -> None:
    composer = HangulComposer()
    steps = [composer.feed(key) for key in "rkqtk"]
    assert [step.preedit for step in steps] == ["ㄱ", "가", "갑", "값", "사"]
    assert [step.commit for step in steps] == ["", "", "", "", "갑"]
    assert composer.finish().commit == "사" and composer.preedit == ""


def test_backspace_takes_one_letter_and_at_the_end_belongs_to_the_program() -> None:
    composer = HangulComposer()
    for key in "rhkqt":
        composer.feed(key)
    assert composer.preedit == "괎"
    assert [composer.backspace().preedit for _ in range(5)] == ["괍", "과", "고", "ㄱ", ""]
    assert not composer.backspace().is_used


@settings(max_examples=300, deadline=None)
@given(st.text(KEYS, min_size=1, max_size=6))
def test_backspace_undoes_the_last_key_of_an_open_syllable(keys: str) -> None:
    composer, shorter = HangulComposer(), HangulComposer()
    commits = [composer.feed(key).commit for key in keys]
    for key in keys[:-1]:
        shorter.feed(key)
    if any(commits):
        return
    assert composer.backspace().preedit == shorter.preedit


@settings(max_examples=500, deadline=None)
@given(st.lists(st.one_of(st.sampled_from([*KEYS, "space", "enter", "escape", "back"]), st.characters()), max_size=60))
def test_no_keys_lose_a_letter_or_break_it(keys: list[str]) -> None:
    composer = HangulComposer()
    for key in keys:
        before = composer.preedit
        step = composer.backspace() if key == "back" else composer.feed(key)
        assert step.preedit == composer.preedit and len(composer.preedit) <= 1
        assert unicodedata.is_normalized("NFC", step.commit + step.preedit)
        if not step.is_used and key != "back":
            assert step.commit == before and composer.preedit == ""
