"""A home for the whole run: engines keep what they parsed of their library there, and nobody's own home is touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def home_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DARI_HOME", str(tmp_path_factory.mktemp("dari")))
        yield
