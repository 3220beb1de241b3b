"""The reference pages say what the code does."""

from __future__ import annotations

from functools import cache

import pytest

from tools.reference import FOLDER
from tools.reference import pages as make_pages

pytestmark = pytest.mark.xdist_group("reference")
pages = cache(make_pages)


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_a_reference_page_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text() == pages().get(name), "run: .venv/bin/python -m tools.reference"


def test_no_reference_page_is_missing_or_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(pages())
