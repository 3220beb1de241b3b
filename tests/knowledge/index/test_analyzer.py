"""The analyser: what becomes of words, identifiers, numbers, Hangul and other scripts."""

from __future__ import annotations

import unicodedata

import pytest

from dari.knowledge.index.analyzer import (
    MAX_TERM_CHARS,
    index_terms,
    is_plain,
    is_stop_word,
    letters_of,
    lower_letters,
    phrase_terms,
    terms_of_word,
    words_of,
)


def terms(text: str) -> list[str]:
    return index_terms(words_of(text)).split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Running TESTS quickly", "run test quick"),
        ("Alzheimer's don't", "alzheim don't"),
        ("getUserName", "getusername get user name"),
        ("HTTPServer mRNA DNA", "httpserver http server mrna rna dna"),
        ("max_tokens __init__", "max_tokens max token init"),
        ("os.path.join", "os.path.join os path join"),
        ("state-of-the-art", "state of the art"),
        ("IL-6 utf-8", "il-6 il 6 utf-8 utf 8"),
        ("v1.2.3 3.14 1,234 1,234.5", "v1.2.3 1.2.3 3.14 1234 1234.5"),
        ("C++ and C#", "c++ c and c# c"),
        ("café ＡＰＩ", "cafe api"),
        ("東京都", "東京 京都"),
        ("API를", "api =를"),
    ],
)
def test_words_of_latin_and_other_scripts_become_terms(text: str, expected: str) -> None:
    assert terms(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("학교에서", "=학교 학교"),
        ("데이터베이스를", "=데이터베이스 데이 이터 터베 베이 이스"),
        ("2024년에는", "2024 =년 년에 에는"),
        ("법은", "=법 법은"),
        ("설치하는", "=설치 설치"),
    ],
)
def test_an_eojeol_becomes_its_stem_and_bigrams(text: str, expected: str) -> None:
    assert terms(text) == expected.split()


@pytest.mark.parametrize("word", ["마을", "가을", "노을", "사과", "국가", "회의", "결과", "정도"])
def test_a_noun_that_ends_like_a_particle_keeps_its_end(word: str) -> None:
    assert terms(word)[0] == f"={word}"


@pytest.mark.parametrize(
    "form", ["서울이", "서울은", "서울을", "서울의", "서울에서", "서울로", "서울까지", "서울에서는"]
)
def test_every_form_of_a_noun_has_the_same_stem(form: str) -> None:
    assert terms(form)[0] == "=서울"


def test_decomposed_hangul_gives_the_terms_of_the_composed_one() -> None:
    assert terms(unicodedata.normalize("NFD", "한국어 검색")) == terms("한국어 검색")


def test_a_dotted_identifier_is_found_by_the_whole_and_by_each_part() -> None:
    assert {"searchrequest.max_tokens", "searchrequest", "max_tokens", "search", "token"} <= set(
        terms("SearchRequest.max_tokens")
    )


@pytest.mark.parametrize("text", ["", "   ", "?!…", "\"\" '' --- ***", "\x00\x01", "()[]{}<>~`@$%^&|\\/"])
def test_punctuation_alone_has_no_terms(text: str) -> None:
    assert terms(text) == []


def test_a_long_blob_becomes_one_short_term() -> None:
    [term] = terms("a" * 5000)
    assert len(term) == MAX_TERM_CHARS


def test_a_phrase_has_one_term_a_word_so_particles_do_not_part_it() -> None:
    assert phrase_terms(words_of("서울대학교에서 공부를")) == phrase_terms(words_of("서울대학교 공부"))
    assert phrase_terms(words_of("State-of-the-art models")) == phrase_terms(words_of("state of the art model"))


def test_question_words_are_stop_words_in_both_languages() -> None:
    assert all(map(is_stop_word, ["How", "the", "무엇인가요", "어떻게", "있나요"]))
    assert not any(map(is_stop_word, ["backup", "서울", "설정"]))


def test_korean_question_words_are_stop_words_in_any_form() -> None:
    asked = "며칠인가요 언제부터였습니까 몇시까지 얼마예요 무엇입니까 누구에게 어디서 몇명인가요 개인가요 번입니까 왜"
    assert [word for word in asked.split() if not is_stop_word(word)] == []
    named = "왜곡 개인 개인이 원인 도시 회원 주인 세일 년도 분기 일정 번호"
    assert [word for word in named.split() if is_stop_word(word)] == []
    assert not is_stop_word("왜" + "이나" * 1000 + "곡")  # at once, not in 2¹⁰⁰⁰ steps


_ROOTS = "d l t v sk cr hop rat happ poss relat stop conf fl ti lo be gener commun univers organ ug on sing ski ye"
_ENDS = """
s es ed ing ly y ies ied e er ation ational ization ize ative ator ance ancy ence ency able ably ability ible ibility
bly al ally ality alize ful fully ous ously ive iveness ivity ic ical icate icity ment ness less ion tional ogy ist eed
edly ingly ying 's ' li
"""


def test_every_word_has_the_letters_that_its_terms_are_looked_for_by() -> None:
    roots, ends = _ROOTS.split(), _ENDS.split()
    words = [root + one + other for root in roots for one in ["", *ends] for other in ["", *ends]]
    words += [
        "1,234",
        "12,345.5",
        "v1.2.3",
        "SearchRequest.max_tokens",
        "IL-6",
        "state-of-the-art",
        "C++",
        "F#",
        "don’t",
    ]
    words += [
        "학교에서",
        "서울로",
        "물을",
        "데이터베이스",
        "ㅋㅋ",
        "東京都",
        "のです",
        "A" * 100,
        "가나" * 60,
        "HTTPServer",
    ]
    for word in words:
        lowered = lower_letters(word)
        for term in terms_of_word(word):
            assert letters_of(term) in lowered, (word, term)


def test_the_letters_of_a_plain_text_stand_for_themselves() -> None:
    """é, Ａ, ①, ½ and ª are folded into others: a text that has one is not plain."""
    plain = [letter for letter in map(chr, range(0x80, 0xD800)) if is_plain(letter)]
    plain += [letter for letter in map(chr, range(0xE000, 0x10000)) if is_plain(letter)]
    words = [letter for letter in plain if words_of(letter)]
    assert len(words) > 11172
    assert all(letter in index_terms([letter]) for letter in words)
    assert all(len(letter.lower()) == 1 for letter in plain)


def test_hangul_han_marks_and_emoji_are_plain() -> None:
    assert is_plain("한글 ㅋㅋ 東京の “quotes” … – don’t ・ → ─ 😀 （1）")
