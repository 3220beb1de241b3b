"""Every test has a home of its own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def home(own_home: None) -> None:
    pass
