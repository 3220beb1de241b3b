"""docs/guide/client.md: its examples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dari import errors
from dari.mcp.client import errors as client_errors

GUIDE = (Path(__file__).parents[3] / "docs/guide/client.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_example_runs(number: int, tmp_path: Path) -> None:
    # The example with events would wait for ever; as a module it only has to be read.
    script = tmp_path / "example.py"
    script.write_text(EXAMPLES[number])
    command = (
        [sys.executable, "-c", "import example"] if "__main__" in EXAMPLES[number] else [sys.executable, str(script)]
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    output = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, timeout=50)
    assert output.returncode == 0, output.stderr.decode()
    if number == 0:
        assert output.stdout.decode().endswith("{'pong': True}\n")


def test_every_error_in_the_table_exists() -> None:
    named = re.findall(r"^\| `(\w+)`(?:, `(\w+)`)? \|", GUIDE, re.MULTILINE)
    for name in {name for row in named for name in row if name}:
        assert issubclass(getattr(client_errors, name, None) or getattr(errors, name), errors.DariError)
