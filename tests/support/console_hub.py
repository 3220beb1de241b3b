"""The hub as it is installed, with its console: `dari up` in a home of its own, and agents that call its tools.

async with console_hub(Path(folder)) as hub:
    hub.link                        the one-time login link that it printed
    hub.write_servers(lab=…)        `mcp.json` of the person; the hub reads it anew by itself
    async with hub.agent("claude") as agent:
        await agent.call("crux_execute_command", command="ls")
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.support.daemon_homes import end_daemons
from tests.support.real_clients import DARI

Json = dict[str, Any]
START_S = 60.0
STOP_S = 40.0
CALL_S = 60.0
LAB = Path(__file__).with_name("lab.py")
HOSTILE = Path(__file__).with_name("hostile_server.py")
CONFIG = (
    "[mcp.security]\n"
    "approval_wait_ms = 0\n"  # a command that needs a person is refused at once, and waits in the queue
)


class ToolFailed(Exception):
    """A tool's own error: `code`, `name`, `message`, `hint`."""

    def __init__(self, error: Json) -> None:
        super().__init__(error.get("message", error))
        self.error = error


class Agent:
    """An MCP client over HTTP. Calls may be in flight at the same time."""

    def __init__(self, url: str, token: str, name: str) -> None:
        self.name, self.token = name, token
        self._url = url
        self._count = 0
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        self._http = httpx.AsyncClient(headers=headers, timeout=CALL_S, trust_env=False)

    async def __aenter__(self) -> Agent:
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": self.name, "version": "1.0"},
        }
        message = {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}
        reply = await self._http.post(self._url, json=message)
        reply.raise_for_status()
        self._http.headers["Mcp-Session-Id"] = reply.headers["Mcp-Session-Id"]
        self._http.headers["MCP-Protocol-Version"] = "2025-11-25"
        await self._http.post(self._url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._http.aclose()

    async def ask(self, method: str, **params: Any) -> Json:
        """The reply to one request: `result` or `error`."""
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        reply = await self._http.post(self._url, json=message)
        if not reply.headers.get("content-type", "").startswith("text/event-stream"):
            return dict(reply.json())
        heard = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
        return next(dict(each) for each in heard if each.get("id") == message["id"] and "method" not in each)

    async def result(self, tool: str, /, **arguments: Any) -> Json:
        """All of a tool's result: content, structuredContent, isError."""
        reply = await self.ask("tools/call", name=tool, arguments=arguments)
        if "result" not in reply:
            raise ToolFailed(reply["error"])
        return dict(reply["result"])

    async def call(self, tool: str, /, **arguments: Any) -> Json:
        """The structured result of a call that works; ToolFailed for one that does not."""
        result = await self.result(tool, **arguments)
        if result.get("isError"):
            raise ToolFailed(result.get("_meta", {}).get("dari/error") or {"message": str(result["content"])})
        return dict(result.get("structuredContent") or {"content": result["content"]})

    async def fails(self, tool: str, /, **arguments: Any) -> Json:
        """The error of a call that has to fail."""
        try:
            answer = await self.call(tool, **arguments)
        except ToolFailed as failed:
            return failed.error
        raise AssertionError(f"{tool} worked: {answer}")


class ConsoleHub:
    """One `dari up`. It may be stopped and started again in the same home, at the same port."""

    def __init__(self, home: Path, options: tuple[str, ...] = (), environ: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.options = options
        self.origin = ""
        """Such as http://127.0.0.1:40001, without a slash."""
        self.link = ""
        """The one-time login link of the last start."""
        self.said = ""
        """What it wrote to stderr since the last start."""
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "DARI_HOME": str(self.dari_home),
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "PYTHONFAULTHANDLER": "1",
            **(environ or {}),
        }
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def dari_home(self) -> Path:
        return self.home / "dari"

    @property
    def token(self) -> str:
        return (self.home / "token").read_text().strip()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        """Of MCP."""
        return f"{self.origin}/mcp"

    def agent(self, name: str = "test-agent", token: str = "") -> Agent:
        """Used as `async with hub.agent() as agent`."""
        return Agent(self.url, token or self.token, name)

    def write_servers(self, **entries: Json) -> None:
        """The person's `mcp.json`, as it stands under `mcpServers`."""
        path = self.home / ".config" / "crewx" / "mcp.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps({"mcpServers": entries}, indent=2))
        draft.rename(path)

    def write_notes(self, root: Path | None = None) -> Path:
        """A folder of documents, and the knowledge base's configuration that names it."""
        from tests.support.knowledge_base import write_config, write_notes

        folder = write_notes(root or self.home / "notes")
        write_config(self.dari_home / "kebab" / "config.toml", folder, self.home / "knowledge")
        return folder

    async def start(self) -> None:
        port = str(urlsplit(self.origin).port) if self.origin else "0"
        words = ("up", "--http-port", port, "--token-path", str(self.home / "token"), *self.options)
        self._process = await asyncio.create_subprocess_exec(
            *(str(DARI), *words),
            cwd=self.home,
            env=self.environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        self.said, self.link = "", ""
        try:
            async with asyncio.timeout(START_S):
                await self._read_until_ready()
        except BaseException:
            await self.stop()
            raise
        assert self._process.stderr is not None
        self._reading = asyncio.create_task(self._read_on(self._process.stderr))

    async def _read_until_ready(self) -> None:
        is_console_on = "--no-console" not in self.options
        assert self._process is not None and self._process.stderr is not None
        while line := await self._read_line(self._process.stderr):
            if found := re.search(r"event=start url=(http://[^/\s]+)", line):
                self.origin = found[1]
            if found := re.search(r"http://\S+/login\S+", line):
                self.link = found[0]
            if self.origin and (self.link or not is_console_on):
                return
        raise AssertionError(f"dari up did not start:\n{self.said}")

    async def _read_line(self, stderr: asyncio.StreamReader) -> str:
        line = (await stderr.readline()).decode(errors="replace")
        self.said += line
        return line

    async def _read_on(self, stderr: asyncio.StreamReader) -> None:
        """A pipe that nobody reads would stop the hub; the end of what it says is kept."""
        while await self._read_line(stderr):
            self.said = self.said[-100_000:]

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """As a person would, or by another signal; every daemon goes on."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            if process.returncode is None:
                process.send_signal(number)
            async with asyncio.timeout(STOP_S):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            if self._reading is not None:
                await self._reading
                self._reading = None
            process._transport.close()  # type: ignore[attr-defined]

    def check(self) -> None:
        """It runs, unless a test has stopped it."""
        if self._process is not None and self._process.returncode is not None:
            raise AssertionError(f"dari up ended by itself with {self._process.returncode}:\n{self.said[-4000:]}")

    async def restart(self, number: signal.Signals = signal.SIGTERM) -> None:
        await self.stop(number)
        await self.start()


@contextmanager
def new_home() -> Iterator[Path]:
    """Short, as a socket's path has to be. Daemons that were started there are ended with it."""
    home = Path(tempfile.mkdtemp(prefix="con-"))
    (home / ".bashrc").write_text("PS1='$ '\n")
    settings = home / ".config" / "crux" / "crux.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(CONFIG)
    settings.chmod(0o600)
    try:
        yield home
    finally:
        end_daemons(home)
        shutil.rmtree(home, ignore_errors=True)


@asynccontextmanager
async def console_hub(home: Path, *options: str, **environ: str) -> AsyncIterator[ConsoleHub]:
    """Running until the block ends."""
    hub = ConsoleHub(home, options, environ)
    await hub.start()
    try:
        yield hub
    finally:
        await hub.stop()


def lab_server(**environ: str) -> Json:
    """An entry of `mcp.json`: tests/support/lab.py, with LAB_TOOLS, LAB_SAYS, LAB_LOG as given."""
    return {"command": sys.executable, "args": [str(LAB)], "env": environ}


def hostile_server(**more: Any) -> Json:
    """An entry of `mcp.json`: every text of this server is an attack on the page that shows it."""
    return {"command": sys.executable, "args": [str(HOSTILE)], **more}
