"""Ctrl-C while a command still loads its modules ends it with its code for that, and without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PRESS = """
import sys
from {module} import main

class Pressed:
    def find_spec(self, name, path=None, target=None):
        sys.meta_path.remove(self)
        raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
sys.exit(main({words!r}))
"""
CASES = [
    ("dari.cli.main", ["doctor"], 130),
    ("dari.cli.main", ["tokens"], 130),
    ("dari.cli.main", ["proxy", "status"], 130),
    ("dari.cli.main", ["remote", "servers"], 4),
    ("dari.cli.main", ["up"], 0),
    ("dari.cli.crewx", ["mcp", "list_tools"], 4),
    ("dari.cli.crewx", ["tool", "search", "x"], 4),
    ("dari.cli.crewx_tools.main", ["search", "x"], 4),
    ("dari.cli.crewx_tools.main", ["serve"], 0),
    ("dari.cli.crab_mcp", [], 0),
    ("dari.cli.crabd", [], 0),
    ("dari.cli.crux.main", ["list"], 130),
    ("dari.cli.cruxd", [], 0),
    ("dari.cli.crux_mcp_bridge", [], 0),
    ("dari.cli.kebab.fast_client", ["search", "x"], 2),
    ("dari.cli.kebab.fast_client", ["ingest"], 2),
    ("dari.cli.kebabd", [], 0),
]


@pytest.mark.parametrize("module, words, code", CASES, ids=[" ".join((module, *words)) for module, words, _ in CASES])
def test_ctrl_c_during_the_start_is_no_traceback(module: str, words: list[str], code: int, tmp_path: Path) -> None:
    program = PRESS.format(module=module, words=words)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"HOME": str(tmp_path), "DARI_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
