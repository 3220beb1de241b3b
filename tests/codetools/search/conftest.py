"""One loop for the searches of a test module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.code_searches import search_runner


@pytest.fixture(scope="module", autouse=True)
def searches() -> Iterator[None]:
    with search_runner():
        yield
