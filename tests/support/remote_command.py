"""Commands as a person types them, on a real Bridge with real servers; only the screen is in memory."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.service import Bridge
from dari.cli.remote.main import run
from dari.core.scopes import ALL_SCOPES
from dari.daemon.caller_scopes import serve_own_process
from dari.errors import InvalidInput
from tests.support.command_result import CommandResult

WORKSHOP = Path(__file__).with_name("workshop.py")
PROGRAM = "crewx mcp remote"


class Screen:
    """A terminal in memory. `answers` are what the person types, one a question; None is the end of input."""

    columns = 100
    colour = False

    def __init__(self, *, stdin: bytes = b"", answers: Sequence[str] = (), tty: bool = False) -> None:
        self.stdin_is_tty = self.stdout_is_tty = self.stderr_is_tty = tty
        self.asked: list[str] = []
        self.changed = asyncio.Event()
        self._stdin = stdin
        self._answers = list(answers)
        self._out: list[str] = []
        self._err: list[str] = []

    def out(self, text: str) -> None:
        self._out.append(text)
        self.changed.set()

    def err(self, text: str) -> None:
        self._err.append(text)
        self.changed.set()

    async def read_stdin(self) -> bytes:
        return self._stdin

    async def ask(self, prompt: str, *, secret: bool = False) -> str:
        if not self.stdin_is_tty:
            raise InvalidInput("stdin is not a terminal", "")
        self.asked.append(prompt)
        return self._answers.pop(0) if self._answers else ""

    async def drain(self) -> None:
        pass

    @property
    def told(self) -> str:
        return "".join(self._err)

    @property
    def shown(self) -> str:
        return "".join(self._out)

    async def wait_for(self, text: str) -> None:
        """Until stderr has it."""
        while text not in self.told:
            self.changed.clear()
            await self.changed.wait()


class Shop:
    """A home with an `mcp.json`, and a shell in a folder beside it."""

    def __init__(self, root: Path, bridge: Bridge) -> None:
        self.root = root
        self.bridge = bridge
        self.home = root / "home"
        self.cwd = root / "project"
        self.cwd.mkdir(exist_ok=True)
        self.file = self.home / ".config/crewx/mcp.json"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.environ: dict[str, str] = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        self.write(self.entry("shop", default=True))

    def write(self, *servers: dict[str, Any], **top: Any) -> None:
        self.file.write_text(json.dumps({"version": "1", "servers": servers, **top}))
        self.file.chmod(0o600)

    def entry(self, id: str, **fields: Any) -> dict[str, Any]:
        """A profile of the workshop server."""
        env = {"WORKSHOP_LOG": str(self.root / f"{id}.log"), **fields.pop("env", {})}
        return {"id": id, "kind": "stdio", "command": sys.executable, "args": [str(WORKSHOP)], "env": env, **fields}

    def http(self, id: str, port: int, token: str = "", **fields: Any) -> dict[str, Any]:
        key = {"apiKey": token} if token else {}
        return {"id": id, "baseUrl": f"http://127.0.0.1:{port}", **key, **fields}

    def noted(self, id: str = "shop") -> list[str]:
        path = self.root / f"{id}.log"
        return path.read_text().splitlines() if path.exists() else []

    async def __call__(self, *words: str, program: str = PROGRAM, **screen: Any) -> CommandResult:
        return await self.on(Screen(**screen), *words, program=program)

    async def on(self, screen: Screen, *words: str, program: str = PROGRAM) -> CommandResult:
        around = ClientEnvironment(self.home, self.cwd, dict(self.environ))
        with serve_own_process(ALL_SCOPES):
            code = await run(program, list(words), screen, self.bridge, around)
        return CommandResult(code, screen.shown, screen.told)


@asynccontextmanager
async def shop(root: Path, **options: Any) -> AsyncIterator[Shop]:
    async with Bridge(root / "state", **options) as bridge:
        yield Shop(root, bridge)


def profiles(listed: bytes | str) -> list[str]:
    """The servers of `servers --json` that stand in a file: those that are built in are always there."""
    return [one["id"] for one in json.loads(listed) if one["source"]["layer"] != "built-in"]
