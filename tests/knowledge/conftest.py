from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import knowledge_corpus, knowledge_folder


@pytest.fixture(params=["folder", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))])
def either_store(request: pytest.FixtureRequest) -> Iterator[str]:
    """The test runs twice: over the data folder, and over PostgreSQL."""
    if request.param == "postgres":
        knowledge_folder.SERVER[:] = [request.getfixturevalue("postgres_url")]
    yield request.param
    knowledge_folder.SERVER.clear()
    knowledge_corpus.close_served()
