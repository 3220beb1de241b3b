"""`dari_tokens_*`: a token for each client, as `dari tokens` has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from dari.core.scopes import ADMIN
from dari.core.tool import tool
from dari.transport.token_service import TokenEntry, TokenList, TokenSecret

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

BY = "console"
Name = Annotated[str, Meta(description="Name of the client, such as claude-code; shared: the token of mcp.token")]


class TokenTools:
    """Tools named `dari_tokens_<method>`. Those that return a secret are not redacted: a person has to copy it."""

    prefix = "dari_tokens"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._tokens = backends.tokens

    @tool(scope=ADMIN, read_only=True, name="list")
    async def list_tokens(self) -> TokenList:
        """Return every token with its scopes, dates and last use, without secrets."""
        return await self._tokens.list_tokens()

    @tool(scope=ADMIN, idempotent=False, output="as_is")
    async def create(
        self,
        name: Annotated[str, Meta(description="Small letters, digits, '.', '-', '_'; such as claude-code")],
        read_only: Annotated[bool, Meta(description="Only tools that change nothing")] = False,
    ) -> TokenSecret:
        """Make a token for a client; returns its secret."""
        return await self._tokens.create(name, read_only, BY)

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def show(self, name: Name) -> TokenSecret:
        """Return the secret of a token, to copy it into the settings of its client."""
        return await self._tokens.show(name, BY)

    @tool(scope=ADMIN, destructive=True, idempotent=False, output="as_is")
    async def rotate(self, name: Name) -> TokenSecret:
        """Give a token a new secret; what the old one opened ends within half a second. Returns the new one."""
        return await self._tokens.rotate(name, BY)

    @tool(scope=ADMIN, destructive=True)
    async def revoke(self, name: Name) -> TokenEntry:
        """Take a token away; its sessions, streams and calls end within half a second."""
        return await self._tokens.revoke(name, BY)
