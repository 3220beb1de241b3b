"""Real programs as clients: each test runs on uvloop, as the daemon does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proxy.clients import loops, programs
from tests.support.proxy_site import pattern


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return loops.run(pyfuncitem)


@pytest.fixture
def program() -> Callable[[str], str]:
    """`program("curl")` is its path, or the end of the test."""
    return programs.require


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    """A file of 3 MiB."""
    file = tmp_path / "upload.bin"
    file.write_bytes(b"".join(map(pattern, range(3))))
    return file
