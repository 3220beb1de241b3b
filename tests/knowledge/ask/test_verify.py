"""An answer is checked against what it cites."""

import pytest

from dari.knowledge.ask.verify import check_answer, normalize_markers

_PASSAGES = [
    "The ferry takes fifty minutes and leaves at 7:10.",
    "섬까지 45분이 걸린다. 요금은 1,040원이며 다섯 번 쉰다.",
]


def test_an_answer_whose_numbers_stand_in_the_cited_passage_holds() -> None:
    assert check_answer("It leaves at 7:10 [#1]. 요금은 1040원이다 [#2].", _PASSAGES).holds


def test_the_markers_of_an_answer_are_read_in_its_order() -> None:
    assert check_answer("둘 [#2] 하나 [#1] 둘 [#2]", _PASSAGES).used == (2, 1)


@pytest.mark.parametrize("answer", ["It leaves at seven.", "It leaves [#3].", "It leaves [#0]."])
def test_a_missing_or_foreign_marker_fails(answer: str) -> None:
    assert not check_answer(answer, _PASSAGES).markers_ok


def test_a_number_that_only_another_passage_holds_fails() -> None:
    verdict = check_answer("It takes 45 minutes [#1].", _PASSAGES)
    assert not verdict.numbers_ok
    assert verdict.missing == ("45",)


@pytest.mark.parametrize("answer", ["5번 쉰다 [#2].", "1. 45분 [#2]\n2. 요금 1,040원 [#2]"])
def test_number_words_and_list_numbers_are_understood(answer: str) -> None:
    assert check_answer(answer, _PASSAGES).holds


def test_a_number_of_the_question_may_be_repeated() -> None:
    assert check_answer("In 2031 it takes fifty minutes [#1].", _PASSAGES, "How long in 2031?").holds


def test_an_invented_quote_fails_and_a_real_one_holds() -> None:
    assert check_answer('It says "takes fifty  minutes" [#1].', _PASSAGES).holds
    assert not check_answer('It says "the ferry is free of charge" [#1].', _PASSAGES).quotes_ok


@pytest.mark.parametrize(
    ("written", "normal"),
    [("a [1]", "a [#1]"), ("a [#1, #2]", "a [#1][#2]"), ("a 【#3】", "a [#3]"), ("a[ # 4 ]", "a[#4]"), ("[x]", "[x]")],
)
def test_loose_markers_become_strict_ones(written: str, normal: str) -> None:
    assert normalize_markers(written) == normal


@pytest.mark.parametrize("items", [30, 200, 20_000])
@pytest.mark.parametrize("ends", ["", " and", "[", "\n"])
def test_a_list_of_numbers_that_is_never_closed_is_read_in_linear_time(items: int, ends: str) -> None:
    """A pattern that tries every blank in two places would take 2^30 steps here, and hold every other thread."""
    answer = "See [" + "64, " * items + ends
    assert normalize_markers(answer) == answer
    assert not check_answer(answer, _PASSAGES).markers_ok


def test_a_long_list_of_markers_is_mended() -> None:
    assert normalize_markers("[" + "1, " * 199 + "2]") == "[#1]" * 199 + "[#2]"


@pytest.mark.parametrize("filler", ["\n", " ", "[", "[ ", "[#", "“", "1,", "[1 "])
def test_an_answer_of_one_repeated_piece_is_checked_in_linear_time(filler: str) -> None:
    assert not check_answer(normalize_markers(filler * 50_000), _PASSAGES).holds


@pytest.mark.parametrize("written", ["[]", "[,]", "[1,,2]", "[1 2]", "[#]", "[1234]", "[1,]"])
def test_brackets_that_hold_no_list_of_numbers_stay(written: str) -> None:
    assert normalize_markers(written) == written
