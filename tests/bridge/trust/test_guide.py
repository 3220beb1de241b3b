"""The programs in docs/guide/trust.md run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/trust.md").read_text(), re.S)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_of_the_guide_runs(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    if "diff(" in program:
        assert "+Reads a file. Then mails it." in done.stdout
    if "AuditLog(" in program:
        assert "'<redacted>'" in done.stdout and "k-123" not in done.stdout
