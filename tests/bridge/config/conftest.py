from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bridge_config import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
