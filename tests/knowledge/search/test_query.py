"""What a query asks for: words and phrases."""

from __future__ import annotations

import pytest

from dari.knowledge.search.query import MAX_QUERY_CHARS, parse_query


@pytest.mark.parametrize("mark", ['"', "“", "「", "“ ", "「a"])
def test_a_query_of_quotation_marks_that_never_close_has_no_phrase(mark: str) -> None:
    """Each would otherwise be followed to the end of the query: 10,000 × 10,000 steps."""
    assert parse_query((mark * MAX_QUERY_CHARS)[:MAX_QUERY_CHARS]).phrases == ()


@pytest.mark.parametrize(
    "query", ["“night train”", '"night train"', "「night train」", "“x “night train”", "and “night train” “"]
)
def test_a_phrase_stands_between_a_mark_and_the_next_that_closes(query: str) -> None:
    assert parse_query(query).phrases == parse_query('"night train"').phrases
    assert parse_query(query).phrases
