"""A headless Chromium and the few commands of its DevTools protocol that tests give."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.support.proxy_lab import started

_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage",
    "--remote-debugging-port=0", "--proxy-bypass-list=<-loopback>",
]  # fmt: skip
_START_S = 30.0


class Page:
    """One tab; commands go out one at a time."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._session: str | None = None
        self._loads = 0

    async def open(self) -> None:
        target = await self.ask("Target.createTarget", url="about:blank")
        session = await self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = session["sessionId"]
        await self.ask("Page.enable")

    async def ask(self, method: str, **params: object) -> Any:
        number = next(self._ids)
        command = {"id": number, "method": method, "params": params}
        if self._session is not None:
            command["sessionId"] = self._session
        await self._socket.send(json.dumps(command))
        while True:
            answer = await self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    async def go(self, url: str) -> str | None:
        """Why the page could not be had; None when it could, and its scripts have run."""
        before = self._loads
        problem: str | None = (await self.ask("Page.navigate", url=url)).get("errorText")
        while problem is None and self._loads == before:
            await self._next()
        return problem

    async def _next(self) -> Any:
        message = json.loads(await self._socket.recv())
        self._loads += message.get("method") == "Page.domContentEventFired"
        return message

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression, or of the promise that it is."""
        answer = await self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")


@asynccontextmanager
async def browser(program: str, directory: Path, proxy_url: str, *flags: str) -> AsyncIterator[Page]:
    words = [program, *_FLAGS, f"--user-data-dir={directory}", f"--proxy-server={proxy_url}", *flags, "about:blank"]
    async with started(words) as process:
        assert process.stderr is not None
        async with asyncio.timeout(_START_S):
            url = await _address(process.stderr)
        # Whatever else it says must not fill its pipe.
        rest = asyncio.create_task(process.stderr.read())
        try:
            async with connect(url, max_size=None, open_timeout=_START_S, proxy=None) as socket:
                page = Page(socket)
                await page.open()
                yield page
                await _end(page, process)
        finally:
            rest.cancel()
            await asyncio.gather(rest, return_exceptions=True)


async def _address(stderr: asyncio.StreamReader) -> str:
    said: Sequence[bytes] = []
    while line := await stderr.readline():
        said = [*said, line]
        if b"DevTools listening on " in line:
            return line.split()[-1].decode()
    raise AssertionError(f"Chromium ended: {b''.join(said).decode(errors='replace')}")


async def _end(page: Page, process: asyncio.subprocess.Process) -> None:
    page._session = None
    await page.ask("Browser.close")
    async with asyncio.timeout(_START_S):
        await process.wait()
