"""The reference pages say what the code does."""

from __future__ import annotations

import pytest

from tools.reference import FOLDER, pages


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_reference_page_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text() == pages()[name], "run: .venv/bin/python -m tools.reference"


def test_no_reference_page_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(pages())
