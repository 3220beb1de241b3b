"""A person with a browser, profiles that need them, and calls of the demo server on their behalf."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from dari.bridge.config.profile import AuthSettings, HttpSettings, Profile, ProfileSource
from dari.bridge.oauth.callback import NO_PROMPT, LoginPrompt
from dari.bridge.oauth.keychain import Keychain
from dari.bridge.oauth.persistent import oauth_for
from dari.mcp.client.client import Client
from dari.mcp.client.oauth import OAuth
from dari.transport.client.http import HttpChannel


class NoKeychain(Keychain):
    """A machine without a keyring, whatever this one has."""

    def _find(self) -> None:
        return None


class Drawer:
    """A keyring in memory; it can be slow, broken, or locked for ever."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.fails = False

    def get_password(self, service: str, username: str, /) -> str | None:
        self._check()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str, /) -> None:
        self._check()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str, /) -> None:
        self._check()
        del self.kept[service, username]

    def _check(self) -> None:
        if self.fails:
            raise RuntimeError("locked")


async def get(url: str, host: str = "", method: str = "GET") -> tuple[int, dict[str, str], str]:
    """One request, as a browser would make it, not following anything."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    writer.write(f"{method} {target} HTTP/1.1\r\nhost: {host or parts.netloc}\r\nconnection: close\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    headers = dict(line.lower().split(": ", 1) for line in head.strip().split("\r\n")[1:])
    where = next((line[10:] for line in head.split("\r\n") if line.lower().startswith("location: ")), "")
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    writer.close()
    return int(head.split(" ")[1]), {**headers, "location": where}, body.decode()


class Browser:
    """Opens what is shown, logs in, and follows the way back."""

    can_ask = True

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.pages: list[str] = []
        self._visits: set[asyncio.Task[None]] = set()

    async def show(self, url: str, redirect_url: str) -> None:
        self.shown.append(url)
        task = asyncio.create_task(self.visit(url))
        self._visits.add(task)
        task.add_done_callback(self._visits.discard)

    async def visit(self, url: str) -> None:
        status, headers, body = await get(url)
        if status == 302:
            _, _, body = await get(headers["location"])
        self.pages.append(body)

    async def pasted(self, complaint: str) -> str:
        return await asyncio.get_running_loop().create_future()


def profile_at(url: str, auth: AuthSettings | None = None, id: str = "notes", *, is_trusted: bool = True) -> Profile:
    # The authority of these tests is at another port of this machine than the server.
    connection = HttpSettings(url=url, auth=replace(auth or AuthSettings(type="oauth2"), allows_private=is_trusted))
    return Profile(id=id, source=ProfileSource("mcp.json", 1, "user"), connection=connection)


def oauth_at(
    home: Path, url: str, auth: AuthSettings | None = None, interact: LoginPrompt = NO_PROMPT, keyring: Any = None
) -> OAuth:
    oauth = oauth_for(profile_at(url, auth), url, home=home, keyring=keyring or NoKeychain(), interact=interact)
    assert oauth is not None
    return oauth


async def echo(url: str, oauth: OAuth, text: str = "hello") -> str:
    async with Client(HttpChannel(url, oauth=oauth)) as client:
        return (await client.call_tool("demo_size", {"text": text})).text


async def log_in(home: Path, url: str, auth: AuthSettings | None = None, **more: Any) -> Browser:
    browser = Browser()
    assert await echo(url, oauth_at(home, url, auth, browser, **more)) == "5"
    return browser


SCRIPT = """
import asyncio, sys
from pathlib import Path
from tests.support.oauth_users import echo, oauth_at
home, url, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
async def main():
    oauth = oauth_at(home, url)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print(" ".join(await asyncio.gather(*(echo(url, oauth) for _ in range(count)))), flush=True)
    print(sorted(name for name in ("mcp", "httpx2") if name in sys.modules), flush=True)
asyncio.run(main())
"""


async def another_process(home: Path, url: str, count: int = 1) -> asyncio.subprocess.Process:
    """A process that waits for a line, and then makes its calls."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SCRIPT,
        str(home),
        url,
        str(count),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    line = await process.stdout.readline()
    if line != b"ready\n":
        _, errors = await process.communicate()
        raise AssertionError(errors.decode())
    return process
