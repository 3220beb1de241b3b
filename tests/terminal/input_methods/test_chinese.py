from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.errors import Unavailable
from dari.terminal.input_methods import chinese
from dari.terminal.input_methods.chinese import PINYIN_SYLLABLES, PinyinComposer, hanzi_candidates, split_syllables


@pytest.mark.parametrize(
    ("letters", "syllables", "rest"),
    [
        ("nihao", ("ni", "hao"), ""),
        ("zhongduanmoniqi", ("zhong", "duan", "mo", "ni", "qi"), ""),
        ("xian", ("xian",), ""),
        ("xi'an", ("xi", "an"), ""),
        ("fangan", ("fang", "an"), ""),
        ("woshixueshengb", ("wo", "shi", "xue", "sheng"), "b"),
        ("lvxing", ("lv", "xing"), ""),
        ("zh", (), "zh"),
        ("", (), ""),
    ],
)
def test_letters_fall_into_syllables(letters: str, syllables: tuple[str, ...], rest: str) -> None:
    assert split_syllables(letters) == (syllables, rest)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(sorted(PINYIN_SYLLABLES)), min_size=1, max_size=12))
def test_syllables_with_marks_between_come_back(syllables: list[str]) -> None:
    assert split_syllables("'".join(syllables)) == (tuple(syllables), "")
    found, rest = split_syllables("".join(syllables))
    assert "".join(found) == "".join(syllables) and rest == ""


def _fixed(syllables: tuple[str, ...]) -> list[str]:
    return ["一" * len(syllables), "二" * len(syllables)]


def test_space_takes_the_first_and_a_digit_another() -> None:
    composer = PinyinComposer(_fixed)
    for key in "nihao":
        step = composer.feed(key)
    assert step.preedit == "ni'hao" and composer.candidates == ("一一", "二二")
    assert composer.feed("3").preedit == "ni'hao"
    assert composer.feed("2").commit == "二二" and composer.preedit == ""
    composer.feed("a")
    assert composer.feed("space").commit == "一"
    assert not composer.feed("space").is_used and not composer.feed("2").is_used


def test_enter_commits_the_letters_and_escape_drops_them() -> None:
    composer = PinyinComposer(_fixed)
    for key in "git":
        composer.feed(key)
    assert composer.feed("enter").commit == "git"
    composer.feed("x")
    assert composer.feed("escape").commit == "" and composer.preedit == ""
    assert composer.feed(",").commit == "，"


def test_the_dictionary_writes_words() -> None:
    pytest.importorskip("Pinyin2Hanzi")
    assert hanzi_candidates(("zhong", "duan", "mo", "ni", "qi"))[0] == "终端模拟器"
    assert "我是学生" in hanzi_candidates(("wo", "shi", "xue", "sheng"))
    for syllable in PINYIN_SYLLABLES:
        hanzi_candidates((syllable,))


def test_without_the_dictionary_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Pinyin2Hanzi", None)
    monkeypatch.setattr(chinese, "_dictionary", chinese._dictionary.__wrapped__)
    with pytest.raises(Unavailable) as caught:
        hanzi_candidates(("ni",))
    assert "[chinese]" in caught.value.hint


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(st.sampled_from([*"nihaozhg'123,.", "space", "enter", "escape", "back"]), st.characters()),
        max_size=40,
    )
)
def test_no_keys_break_the_composer(keys: list[str]) -> None:
    composer = PinyinComposer(_fixed)
    for key in keys:
        step = composer.backspace() if key == "back" else composer.feed(key)
        assert step.preedit == composer.preedit
    composer.finish()
    assert composer.preedit == ""


def test_a_long_text_without_a_choice_is_chosen_syllable_by_syllable() -> None:
    """Each key divides all open letters again: a page of them would take hours."""
    composer = PinyinComposer(lambda syllables: ["".join(f"[{each}]" for each in syllables)])
    committed, longest = "", 0
    for letter in "nihaoma" * 2000:
        committed += composer.feed(letter).commit
        longest = max(longest, len(composer.preedit))
    committed += composer.finish().commit
    assert committed == "[ni][hao][ma]" * 2000
    assert longest < 200


def test_letters_that_are_no_syllables_are_typed_as_they_are() -> None:
    composer = PinyinComposer(lambda syllables: ["".join(syllables)])
    committed = "".join(composer.feed("v").commit for _ in range(500)) + composer.finish().commit
    assert committed == "v" * 500
