from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon_homes import remove_home
from tests.support.installed_commands import KEY, ROOT, Desk
from tests.support.peer_server import Peer, peer


@pytest.fixture(scope="module")
def dari_home() -> Iterator[Path]:
    """One daemon for all tests of this file, ended with them. Sockets want short paths."""
    folder = Path(tempfile.mkdtemp(prefix="d001-"))
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "DARI_HOME": str(folder), "PYTHONPATH": str(ROOT)}
    yield folder
    stop = [sys.executable, "-m", "dari.cli.crewx", "mcp", "remote", "daemon", "stop"]
    subprocess.run(stop, env=environ, capture_output=True, timeout=40)
    remove_home(folder)


@pytest.fixture
def desk(tmp_path: Path, dari_home: Path) -> Desk:
    return Desk(tmp_path, dari_home)


@pytest.fixture
def team() -> Iterator[Peer]:
    with peer(token=KEY) as one:
        yield one
