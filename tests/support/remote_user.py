"""A person at a terminal with a home, a project and a real Bridge, all below one temporary folder."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.service import Bridge
from dari.cli.remote.main import run
from dari.core.scopes import ALL_SCOPES
from dari.daemon.caller_scopes import serve_own_process
from dari.errors import InvalidInput

LAB = Path(__file__).with_name("lab.py")


class Screen:
    """A terminal that keeps what is printed and answers from a list; a tty when it has answers."""

    columns = 100

    def __init__(self, answers: tuple[str, ...] = (), stdin: bytes = b"", is_screen: bool = False) -> None:
        self.stdin_is_tty = bool(answers)
        self.stdout_is_tty = self.stderr_is_tty = self.colour = is_screen
        self.printed, self.told = "", ""
        self.asked: list[str] = []
        self._answers = list(answers)
        self._stdin = stdin

    def out(self, text: str) -> None:
        self.printed += text

    def err(self, text: str) -> None:
        self.told += text

    async def read_stdin(self) -> bytes:
        return self._stdin

    async def ask(self, prompt: str, *, secret: bool = False) -> str:
        if not self.stdin_is_tty:
            raise InvalidInput("no terminal", "")
        self.asked.append(prompt)
        return self._answers.pop(0)

    async def drain(self) -> None: ...


class Watcher(Screen):
    """One that can be waited for."""

    def __init__(self, answers: tuple[str, ...] = ()) -> None:
        super().__init__(answers)
        self.news = asyncio.Event()

    def out(self, text: str) -> None:
        super().out(text)
        self.news.set()

    async def sees(self, text: str) -> None:
        while text not in self.printed:
            self.news.clear()
            await self.news.wait()


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str
    asked: tuple[str, ...]

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Person:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.cwd, self.state = root / "home", root / "project", root / "dari/bridge"
        self.home.mkdir()
        self.cwd.mkdir()
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(self.home)}

    @property
    def user_file(self) -> Path:
        return self.home / ".config/crewx/mcp.json"

    @property
    def project_file(self) -> Path:
        return self.cwd / ".crewx/mcp.json"

    def around(self) -> ClientEnvironment:
        return ClientEnvironment(self.home, self.cwd, self.environ)

    def servers(self, path: Path | None = None) -> dict[str, Any]:
        listed = json.loads((path or self.user_file).read_text())["servers"]
        return {one.pop("id"): one for one in listed}

    def write(self, *servers: dict[str, Any], path: Path | None = None, mode: int = 0o600, **more: Any) -> Path:
        return put(path or self.user_file, {"version": "1", "servers": list(servers), **more}, mode)

    def lab(self, id: str = "lab", **fields: Any) -> dict[str, Any]:
        """The entry of a server whose list of tools is the file `tools.json`."""
        env = {"LAB_LOG": str(self.root / "lab.log"), "LAB_TOOLS": str(self.root / "tools.json")}
        env |= fields.pop("env", {})
        return {"id": id, "command": sys.executable, "args": [str(LAB)], "env": env, **fields}

    def shows(self, *tools: dict[str, Any]) -> None:
        """What the lab lists from now on."""
        listed = [{"inputSchema": {"type": "object"}, **tool} for tool in tools]
        (self.root / "tools.json").write_text(json.dumps(listed))

    @asynccontextmanager
    async def bridge(self, **options: Any) -> AsyncIterator[Bridge]:
        async with Bridge(self.state, **options) as bridge:
            yield bridge

    async def run(
        self,
        *words: str,
        bridge: Bridge | None = None,
        answers: tuple[str, ...] = (),
        stdin: bytes = b"",
        is_screen: bool = False,
        program: str = "dari remote",
    ) -> Answer:
        screen = Screen(answers, stdin, is_screen)
        if bridge is not None:
            with serve_own_process(ALL_SCOPES):
                code = await run(program, list(words), screen, bridge, self.around())
        else:
            async with self.bridge() as one:
                with serve_own_process(ALL_SCOPES):
                    code = await run(program, list(words), screen, one, self.around())
        return Answer(code, screen.printed, screen.told, tuple(screen.asked))

    def decisions(self) -> list[dict[str, Any]]:
        """What people decided, as the audit log has it."""
        from dari.core.audit.query import query

        found = query(self.state / "audit", kind="decision")
        return [{"server": one.server, "tool": one.tool, "who": one.who, **one.detail} for one in reversed(found)]


def put(path: Path, content: Any, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
    path.chmod(mode)
    return path
