from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dari.knowledge.store.store import Store
from tests.support.knowledge_stores import STORES


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the store of this test; once more gives a second one on the same data."""
    with STORES[request.param](tmp_path, request) as opener:
        yield opener


@pytest.fixture
def store(reopen: Callable[[], Store]) -> Store:
    return reopen()
