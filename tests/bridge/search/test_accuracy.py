"""The right tool among the first three, for questions that people ask in their own words."""

from __future__ import annotations

import pytest

from dari.bridge.search.index import ToolIndex
from tests.bridge.search.labelled import accuracies, built_index, questions, recorded

FLOORS = {("tuned", "en"): 0.95, ("tuned", "ko"): 0.95, ("held-out", "en"): 0.84, ("held-out", "ko"): 0.9}
"""Shares of questions with the right tool among three, a little below what `./dev bench find` prints."""


@pytest.fixture(scope="module")
def index() -> ToolIndex:
    return built_index()


@pytest.mark.parametrize(("part", "language"), FLOORS)
def test_the_right_tool_is_among_the_first_three(index: ToolIndex, part: str, language: str) -> None:
    found = accuracies(index)[part, language]
    assert found.among_three >= FLOORS[part, language] * found.asked, str(found)


def test_the_labelled_set_is_large_and_half_of_it_is_korean() -> None:
    languages = [one.language for one in questions()]
    assert languages.count("en") >= 150 and languages.count("ko") >= 150
    assert len({one.text for one in questions()}) == len(languages)
    held_out = sum(one.is_held_out for one in questions())
    assert 0.28 <= held_out / len(languages) <= 0.4
    assert len(recorded()) >= 21


def test_every_label_names_a_tool_that_is_there(index: ToolIndex) -> None:
    names = {tool["name"] for _, tools in recorded().values() for tool in tools}
    assert [one.text for one in questions() if not one.right <= names] == []
