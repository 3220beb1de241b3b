"""Runs a server on the transports that were asked for, with the lifecycle of design 000 §5.5 and WS3.

| event                    | stdio          | http                | both                                |
|--------------------------|----------------|---------------------|-------------------------------------|
| stdin ends               | exit 0         | –                   | HTTP goes on                        |
| bind fails at start      | –              | exit 1              | exit 1                              |
| HTTP fails while running | –              | exit 1              | stdio goes on                       |
| SIGINT, SIGTERM          | exit 0 at once | graceful stop, ≤5 s | graceful stop, ≤5 s                 |
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from dari.core.scopes import MCP_GRANT
from dari.log import format_event
from dari.mcp.server import Server
from dari.settings import ServeSettings

if TYPE_CHECKING:
    from dari.transport.server import FindServer, Forwarder, MakePages, McpListeners

_log = logging.getLogger("dari.transport")
Announce = Callable[[str, str], None]
ServeStdio = Callable[[asyncio.Event], Awaitable[None]]
"""Serves stdin and stdout until the client leaves, or soon after the event is set."""


class TransportSupervisor:
    """One run of one server. `announce` gets the URL and the token file once HTTP listens."""

    def __init__(
        self,
        server: Server,
        settings: ServeSettings,
        *,
        announce: Announce | None = None,
        find_server: FindServer | None = None,
        make_pages: MakePages | None = None,
        forwarder: Forwarder | None = None,
        stdio: ServeStdio | None = None,
    ) -> None:
        """`forwarder` and `stdio` serve in the place of the server."""
        self._server = server
        self._settings = settings
        self._announce = announce
        self._find_server = find_server
        self._make_pages = make_pages
        self._forwarder = forwarder
        self._stdio = stdio
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """End the run, as a signal would."""
        self._stop.set()

    async def run(self) -> int:
        """Serve until it is over; returns the exit code."""
        settings = self._settings
        with _signals(self.stop):
            hub = await self._start_http() if settings.transport != "stdio" or settings.socket_path else None
            try:
                if settings.transport == "http":
                    return await self._until_stopped(hub)
                return await self._serve_stdio(hub if settings.transport == "both" else None)
            finally:
                if hub is not None:
                    await hub.stop()
                    if hub.url:
                        _log.info(format_event("http", "stop"))
                self._server.close()

    async def _start_http(self) -> McpListeners:
        from dari.transport.server import McpListeners

        hub = McpListeners(
            self._server,
            self._settings,
            MCP_GRANT,
            self._make_pages,
            self._find_server,
            self._forwarder,
        )
        await hub.start()
        if hub.url:
            token = self._settings.token_path
            _log.info(format_event("http", "start", f"url={hub.url}" + (f" token_path={token}" if token else "")))
            if self._announce is not None:
                self._announce(hub.url, "" if token is None else str(token))
        return hub

    async def _serve_stdio(self, hub: McpListeners | None) -> int:
        """Serve stdin and stdout; with a hub, what happens to one of the two leaves the other alone."""
        _log.info(format_event("stdio", "start"))
        ended = asyncio.Event()
        stdio = asyncio.create_task(self._run_stdio(ended))
        stopping = asyncio.create_task(self._stop.wait())
        failing = asyncio.create_task(hub.failed()) if hub is not None else None
        breaking: asyncio.Task[None] | None = None
        try:
            await asyncio.wait({stdio, stopping, *([failing] if failing else [])}, return_when=asyncio.FIRST_COMPLETED)
            if hub is not None and failing is not None and failing.done() and not stopping.done():
                _log.error(format_event("http", "fatal", f"{failing.result()}; stdio goes on"))
                breaking = asyncio.create_task(hub.stop())
                await asyncio.wait({stdio, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stdio.done():
                stdio.result()
                _log.info(format_event("stdio", "eof"))
                if hub is not None and breaking is None:
                    return await self._until_stopped(hub)
            else:
                _log.info(format_event("stdio", "stop"))
                if hub is not None:
                    ended.set()
                    await asyncio.gather(hub.stop(), asyncio.wait({stdio}, timeout=self._settings.stop_grace_s))
            return 0
        finally:
            await _ended(stdio, stopping, failing)

    async def _run_stdio(self, ended: asyncio.Event) -> None:
        from dari.transport.stdio import serve_stdio

        if self._stdio is not None:
            await self._stdio(ended)
        else:
            await serve_stdio(self._server, MCP_GRANT, ended)

    async def _until_stopped(self, hub: McpListeners | None) -> int:
        assert hub is not None
        stopping, failing = asyncio.create_task(self._stop.wait()), asyncio.create_task(hub.failed())
        try:
            await asyncio.wait({stopping, failing}, return_when=asyncio.FIRST_COMPLETED)
            if failing.done() and not stopping.done():
                _log.error(format_event("http", "fatal", str(failing.result())))
                return 1
            return 0
        finally:
            await _ended(stopping, failing)


async def _ended(*tasks: asyncio.Task[object] | None) -> None:
    for task in tasks:
        if task is not None and not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    installed = []
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop)
            installed.append(number)
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
