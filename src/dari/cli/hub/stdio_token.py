"""`DARI_CLIENT_TOKEN` in the environment of `dari mcp`: the token vouches for the client that is served over stdio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress

from dari.core.scopes import MCP_GRANT
from dari.errors import DariError, Denied
from dari.transport.client_tokens import ClientTokens, TokenStore, tokens_path
from dari.transport.token_watch import POLL_S

VARIABLE = "DARI_CLIENT_TOKEN"


class StdioToken:
    """A client's token that counts now. Denied where it does not: a client that should be named is not let in
    without its name."""

    def __init__(self, secret: str) -> None:
        self._store = TokenStore(tokens_path())
        self._tokens = ClientTokens(self._store, MCP_GRANT)
        self._header = b"Bearer " + secret.encode("utf-8", "replace")
        grant = self._tokens.find(self._header, 0.0)
        if grant is None:
            raise Denied(
                f"{VARIABLE} holds no token of a client", "dari tokens lists them; dari tokens show NAME prints one"
            )
        self.grant = grant

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> StdioToken | None:
        """That of a client with this environment; None where it names none."""
        secret = environ.get(VARIABLE, "").strip()
        return cls(secret) if secret else None

    async def note_use(self) -> None:
        with suppress(OSError, DariError):
            await asyncio.to_thread(self._store.write_last_uses, {self.grant.client: round(time.time(), 3)})

    async def ended(self) -> None:
        """Return when the token was revoked or replaced."""
        while self._tokens.find(self._header, 0.0) is self.grant:
            await asyncio.sleep(POLL_S)
            self._tokens.refresh()
