"""The `tmux` that `crux tmux --install` writes: started with `python -IS`, asks the daemon, and imports little else."""

from __future__ import annotations

import os
import sys

from dari.cli.crux.client import CruxClient
from dari.cli.crux.tmux.main import run_in_daemon
from dari.terminal.paths import CruxPaths


def main() -> int:
    words = sys.argv[1:]
    client = CruxClient(CruxPaths.of_environment(), starts=False)
    code = run_in_daemon(client, words)
    if code is not None:
        return code
    client.close()
    os.execv(sys.executable, [sys.executable, "-m", "dari.cli.crux.main", "tmux", *words])
