"""Snippets: the best sentence, its neighbourhood, the places of the matched words."""

from __future__ import annotations

import random
import unicodedata

import pytest

from dari.knowledge.index.analyzer import terms_of_word, words_of
from dari.knowledge.search.request import PassageSnippet
from dari.knowledge.search.snippets import Highlighter

ENGLISH = (
    "Intro words that say little. The harbour opens at six. Boats leave the harbour for the island every hour. "
    "Tickets are sold on board. Dogs ride free."
)


def snippet(text: str, weights: dict[str, float], chars: int = 220) -> PassageSnippet:
    highlighter = Highlighter(weights)
    return highlighter.snippet(highlighter.match(text), chars)


def marked(one: PassageSnippet) -> list[str]:
    return [one.text[first:last] for first, last in one.highlights]


def test_the_sentence_with_the_weightiest_terms_is_chosen_and_begins_the_snippet() -> None:
    one = snippet(ENGLISH, {"harbour": 1.0, "island": 2.0}, 80)
    assert one.sentence == "Boats leave the harbour for the island every hour."
    assert one.text.startswith("…Boats")
    assert (one.is_whole, len(one.text) <= 82) == (False, True)
    assert marked(one) == ["harbour", "island"]


def test_a_short_chunk_is_its_own_snippet() -> None:
    one = snippet(ENGLISH, {"dog": 1.0})
    assert (one.text, one.is_whole, marked(one)) == (ENGLISH, True, ["Dogs"])


def test_without_a_match_the_beginning_is_shown() -> None:
    assert snippet(ENGLISH, {"zeppelin": 1.0}, 40).text.startswith("Intro words")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_particle_is_not_marked_and_jamo_become_syllables(form: str) -> None:
    text = unicodedata.normalize(form, "여객선은 매일 운항합니다. 서울에서 부산까지 세 시간이 걸립니다.")  # type: ignore[arg-type]
    one = snippet(text, {"=서울": 2.0, "서울": 1.0, "=부산": 1.0})
    assert marked(one) == ["서울", "부산"]


def test_a_bigram_in_common_marks_a_compound_and_not_a_stranger() -> None:
    weights = {"=데이터베이스": 3.0, "데이": 1.0, "이터": 1.0, "터베": 1.0, "베이": 1.0, "이스": 1.0}
    assert marked(snippet("이스라엘의 빅데이터베이스관리", weights)) == ["데이터베이스"]


@pytest.mark.parametrize("chars", [20, 33, 60, 200])
@pytest.mark.parametrize(
    "text",
    [
        "가나다라마바사아자차카타파하" * 40 + "서울" + "가나다라마바사아자차카타파하" * 40,
        "👩‍👩‍👧‍👦" * 60 + " 서울 " + "é́̂" * 200,
        "word " * 200 + "서울에서 " + "word " * 200,
        "x" * 3000,
    ],
)
def test_a_text_without_sentences_is_cut_within_the_limit_and_no_character_is_torn(text: str, chars: int) -> None:
    one = snippet(text, {"=서울": 1.0, "서울": 1.0}, chars)
    assert 0 < len(one.text) <= chars + 2
    body = one.text.strip("…")
    assert not body or not unicodedata.combining(body[0])
    assert not body.startswith("\u200d") and not body.endswith("\u200d")
    for first, last in one.highlights:
        assert one.text[first:last] == "서울"


def test_the_match_of_a_long_sentence_is_inside_the_window() -> None:
    one = snippet("word " * 200 + "서울에서 만나 " + "word " * 200, {"=서울": 1.0, "서울": 1.0}, 60)
    assert marked(one) == ["서울"]


_PIECES = """
서울 데이터베이스 은 에서 API 를 東京都 の e-mail v1.2.3 1,234 3.14 C++ c# SearchRequest.max_tokens don’t don't
café naïve Ａｐｉ ① ½ state-of-the-art dying die skies sky happily happy possibility possible __init__ IL-6 ㅋㅋ
Ελλ привет İ ß 👩‍👧 ไทย A x1 2024. 3. 15. e.g. Mr. 다. 요? 's HELLO XMLHttpRequest
"""
PIECES = _PIECES.split()


@pytest.mark.parametrize("seed", range(8))
def test_the_words_found_by_their_letters_are_those_that_an_analysis_of_every_word_finds(seed: int) -> None:
    chosen = random.Random(seed)
    for _ in range(100):
        joints = chosen.choices([" ", " ", " ", "", "\n", "\t", ", ", ". ", "(", "/", "\u3000"], k=24)
        text = "".join(piece + joint for piece, joint in zip(chosen.choices(PIECES, k=24), joints, strict=True))
        terms = {term for word in words_of(" ".join(chosen.choices(PIECES, k=4))) for term in terms_of_word(word)}
        match = Highlighter(dict.fromkeys(terms, 1.0)).match(text)
        everywhere = {term for word in words_of(text) for term in terms_of_word(word)}
        assert set(match.terms) == terms & everywhere, text


def test_the_chosen_sentence_does_not_depend_on_the_order_of_a_set() -> None:
    """0.1 + 0.2 + 0.3 is 0.6 in one order and 0.6000000000000001 in the other: equal sentences, so the first."""
    one = snippet("Cold iron rusts. Rust colds iron. End.", {"cold": 0.3, "iron": 0.2, "rust": 0.1}, 20)
    assert one.sentence == "Cold iron rusts."
