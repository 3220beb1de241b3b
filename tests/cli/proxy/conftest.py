"""A home with a short path for every test, and a check that nothing goes on running."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon_homes import remove_home
from tests.support.daemons import wait_until_unlocked
from tests.support.origins.origin import Origin, answering
from tests.support.proxy_command import JSON, Shell, serving


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="dari-"))
    monkeypatch.setenv("DARI_HOME", str(path))
    yield path
    remove_home(path)  # a crab-mcp may still be on its way out


@pytest.fixture
def shell(home: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    made = Shell(home, capfd)
    yield made
    if (pid := made.daemon_pid) is not None:
        os.kill(pid, signal.SIGTERM)
        wait_until_unlocked(made.place.lock)
        wait_until_unlocked(made.place.state_dir / "lock")


@pytest.fixture
def site() -> Iterator[Origin]:
    with serving(answering(JSON)) as made:
        yield made
