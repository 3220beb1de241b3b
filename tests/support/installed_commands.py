"""A person at a desk: a home, a project, and the installed commands as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.command_result import CommandResult
from tests.support.peer_server import Peer

ROOT = Path(__file__).parents[2]
WORKSHOP = ROOT / "tests/support/workshop.py"
KEY = "k3y-of-the-team-0123456789"


class Desk:
    """A person with a home and a project, and the commands as processes."""

    def __init__(self, root: Path, dari_home: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        self.user_file = self.home / ".config/crewx/mcp.json"
        self.project_file = self.project / ".crewx/mcp.json"
        for folder in (self.user_file.parent, self.project_file.parent):
            folder.mkdir(parents=True)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "DARI_HOME": str(dari_home),
            "PYTHONPATH": str(ROOT),
            "CREWX_MCP_KEY": KEY,
        }
        self.log = root / "shop.log"

    def write(self, *servers: dict[str, Any], file: Path | None = None, **top: Any) -> None:
        path = file or self.user_file
        path.write_text(json.dumps({"version": "1", "servers": servers, **top}))
        path.chmod(0o600)

    def shop(self, id: str = "shop", **fields: Any) -> dict[str, Any]:
        """A local server with a tool for everything."""
        env = {"WORKSHOP_LOG": str(self.log), **fields.pop("env", {})}
        return {"id": id, "kind": "stdio", "command": sys.executable, "args": [str(WORKSHOP)], "env": env, **fields}

    def noted(self, start: str) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(start)]

    def remote(self, *words: str, **environ: str) -> CommandResult:
        """`crewx mcp remote …`"""
        return self.crewx("mcp", "remote", *words, **environ)

    def crewx(self, *words: str, **environ: str) -> CommandResult:
        done = subprocess.run(
            [sys.executable, "-m", "dari.cli.crewx", *words],
            cwd=self.project,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=40,
        )
        return CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())


def entry(one: Peer, id: str = "prod-backend", **fields: Any) -> dict[str, Any]:
    return {"id": id, "baseUrl": one.url, "apiKey": "${CREWX_MCP_KEY}", **fields}
