"""The `crux` command as a function, and a server of its own for each test file."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dari.cli.crux.main import main
from dari.cli.hub.daemon import take_over
from dari.cli.hub.paths import BridgePaths
from tests.support.command_result import CommandResult

OURS = ("CRUX_SOCKET", "CRUX_CONFIG", "CRUX_PANE", "TMUX_PANE", "TMUX", "XDG_CONFIG_HOME", "NO_COLOR")


class Crux:
    """Calls it in this process; the server is a real daemon."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *words: str, stdin: str = "") -> CommandResult:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", io.StringIO(stdin)):
            try:
                code = main(list(words))
            except SystemExit as ended:
                code = int(ended.code or 0)
        return CommandResult(code, out.getvalue(), err.getvalue())

    def ok(self, *words: str, stdin: str = "") -> str:
        said = self(*words, stdin=stdin)
        assert said.code == 0, said
        return said.out.rstrip("\n")

    def json(self, *words: str) -> Any:
        return json.loads(self.ok("--json", *words))


def set_home(home: Path) -> dict[str, str]:
    """An environment in which nothing of the user is seen."""
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    return {**kept, "HOME": str(home), "DARI_HOME": str(home / "dari"), "SHELL": "/bin/bash", "LC_ALL": "C.UTF-8"}


def end_hub() -> None:
    """End the hub that a daemon started for an approval, if one did."""
    if BridgePaths().socket.exists():
        asyncio.run(take_over(BridgePaths()))


@contextmanager
def crux_in(home: Path) -> Iterator[Crux]:
    """The command with a home of its own; a server that it started is ended with the block."""
    (home / ".bashrc").write_text("PS1='$ '\n")
    with patch.dict(os.environ, set_home(home), clear=True):
        crux = Crux(home)
        try:
            yield crux
        finally:
            crux("kill-server")
            end_hub()
