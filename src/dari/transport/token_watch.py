"""Follows the token files while a listener runs: what a revoked or rotated token opened ends within half a second, and
the times of last use are written down."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from contextlib import suppress

from dari.core.scopes import Grant
from dari.errors import DariError
from dari.log import format_event
from dari.transport.client_tokens import SHARED, ClientTokens, TokenStore
from dari.transport.endpoint import McpEndpoint
from dari.transport.token_file import TokenFile

POLL_S = 0.25
WRITE_S = 10.0
REVOKED = "the token was revoked"
_log = logging.getLogger("dari.transport")


class TokenWatch:
    """`endpoint` is that of the listener which asks for the tokens."""

    def __init__(
        self, token: TokenFile, clients: ClientTokens | None, store: TokenStore | None, endpoint: McpEndpoint
    ) -> None:
        self._token = token
        self._clients = clients
        self._store = store
        self._endpoint = endpoint
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._written: dict[str, float] = {}
        token.on_rotated = self._end_shared
        if clients is not None:
            clients.on_ended = self._end_clients

    def start(self) -> asyncio.Task[None]:
        """Returns the task: it should not end by itself."""
        self._task = self._loop.create_task(self._follow())
        return self._task

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            await self._write()

    async def _follow(self) -> None:
        written_s = self._loop.time()
        while True:
            await asyncio.sleep(POLL_S)
            self._token.refresh()
            if self._clients is not None:
                self._clients.refresh()
            if self._loop.time() - written_s > WRITE_S:
                written_s = self._loop.time()
                await self._write()

    async def _write(self) -> None:
        used_s = {} if self._clients is None else dict(self._clients.used_s)
        if self._token.used_s:
            used_s[SHARED] = self._token.used_s
        if self._store is None or used_s == self._written:
            return
        self._written = used_s
        offset_s = time.time() - self._loop.time()
        uses = {name: round(at_s + offset_s, 3) for name, at_s in used_s.items()}
        try:
            await asyncio.to_thread(self._store.write_last_uses, uses)
        except (OSError, DariError) as error:
            _log.warning(format_event("http", "token", f"the last use of tokens was not written: {error}"))

    def _end_shared(self) -> None:
        _log.info(format_event("http", "token", "the shared token was replaced"))
        self._endpoint.end_access([self._endpoint.grant], REVOKED)

    def _end_clients(self, ended: Collection[Grant]) -> None:
        names = ", ".join(sorted(grant.client for grant in ended))
        _log.info(format_event("http", "token", f"revoked or replaced: {names}"))
        self._endpoint.end_access(ended, REVOKED)
