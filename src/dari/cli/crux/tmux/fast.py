"""The `tmux` that `crux tmux --install` writes: started with `python -IS`, asks the daemon, and imports little else."""

from __future__ import annotations

import os
import sys

from dari.cli.crux.line import Line
from dari.cli.crux.tmux.main import run_in_daemon
from dari.terminal.paths import CruxPaths


def main() -> int:
    words = sys.argv[1:]
    line = Line(CruxPaths.of_environment(), starts=False)
    code = run_in_daemon(line, words)
    if code is not None:
        return code
    line.close()
    os.execv(sys.executable, [sys.executable, "-m", "dari.cli.crux.main", "tmux", *words])
