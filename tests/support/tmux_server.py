"""A real tmux of one test."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class Tmux:
    """A private server: own socket, no configuration; `kill` ends it with everything in it."""

    def __init__(self, folder: Path) -> None:
        self._call = ["tmux", "-S", str(folder / "t.sock"), "-f", "/dev/null"]
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "SHELL": "/bin/bash",  # the user's own may be sh, which stays there before a command
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, *arguments: str, check: bool = True) -> str:
        done = self.call(*arguments)
        if check and done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout.rstrip("\n")

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._call, *arguments], env=self._environment, capture_output=True, text=True, timeout=20, check=False
        )

    def call_from(self, pane: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same as if it were typed in that pane, which is then what a target is seen from."""
        socket = self._call[2]
        environment = {**self._environment, "TMUX": f"{socket},1,0", "TMUX_PANE": pane}
        return subprocess.run(
            [*self._call, *arguments], env=environment, capture_output=True, text=True, timeout=20, check=False
        )

    def kill(self) -> None:
        self.run("kill-server", check=False)
