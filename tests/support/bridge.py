"""A home with an `mcp.json` in it, and a Bridge that looks at it."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.service import Bridge
from dari.bridge.upstream.caller import Caller
from dari.bridge.upstream.upstream import Upstream

LAB = Path(__file__).with_name("lab.py")
ME = Caller("tester", session="s1")


def lab(root: Path, **fields: Any) -> dict[str, Any]:
    """The entry of a lab server; what it writes and reads lies below `root`."""
    env = {"LAB_LOG": str(root / "lab.log"), "LAB_TOOLS": str(root / "tools.json"), **fields.pop("env", {})}
    return {"id": "lab", "kind": "stdio", "command": sys.executable, "args": [str(LAB)], "env": env, **fields}


class Place:
    def __init__(self, root: Path, *servers: dict[str, Any], **top: Any) -> None:
        self.root = root
        self.home = root / "home"
        self.file = self.home / ".config/crewx/mcp.json"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.write(*(servers or (lab(root),)), **top)

    def write(self, *servers: dict[str, Any], **top: Any) -> None:
        self.file.write_text(json.dumps({"version": "1", "servers": servers, **top}))
        self.file.chmod(0o600)

    def around(self, **environ: str) -> ClientEnvironment:
        import os

        given = {"PATH": os.environ["PATH"], "HOME": str(self.home), **environ}
        return ClientEnvironment(self.home, self.root, given)

    def noted(self) -> list[str]:
        path = self.root / "lab.log"
        return path.read_text().splitlines() if path.exists() else []

    @asynccontextmanager
    async def bridge(self, **options: Any) -> AsyncIterator[Bridge]:
        async with Bridge(self.root / "state", **options) as bridge:
            yield bridge

    @asynccontextmanager
    async def upstream(self, id: str | None = "lab", **options: Any) -> AsyncIterator[Upstream]:
        async with self.bridge(**options) as bridge:
            yield bridge.view(self.around()).upstream(id)


def text_of(result: bytes) -> str:
    return str(json.loads(bytes(result))["content"][0]["text"])
