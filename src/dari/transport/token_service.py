"""The tokens of clients for people: what there is, and making, showing, replacing and taking away.

The hub serves these methods on its control socket; `dari tokens` and the console use them. A secret leaves only through
what is for a person: no tool of an agent, no record and no log has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from dari.core.scopes import ADMIN, MCP_SCOPES, READ
from dari.daemon.stub import expose
from dari.errors import Conflict, NotFound
from dari.paths import write_private
from dari.transport.client_tokens import SHARED, ClientToken, TokenStore, tokens_path
from dari.transport.health import read_token
from dari.transport.token_file import make_token, shared_token_path

if TYPE_CHECKING:
    from dari.core.audit.log import AuditLog

FLUSH_S = 1.0


class TokenEntry(Struct, frozen=True, kw_only=True):
    """A token without its secret."""

    name: str
    scopes: list[str]
    created_unix: float = 0.0
    """0: not known."""
    rotated_unix: float = 0.0
    last_used_unix: float = 0.0
    """Within some seconds; 0: never, as far as is known."""
    is_shared: bool = False
    """The one of `mcp.token`, which any client may use and which names none."""


class TokenList(Struct, frozen=True):
    entries: list[TokenEntry]


class TokenSecret(Struct, frozen=True):
    """What a client sends: `Authorization: Bearer SECRET`."""

    name: str
    secret: str
    scopes: list[str]

    def __repr__(self) -> str:
        return f"TokenSecret(name={self.name!r}, secret=…)"


class TokenService:
    """Works on the files, so that it does the same with and without a running hub; listeners follow them."""

    def __init__(
        self, store: TokenStore, shared_path: Path, audit: Callable[[], AuditLog | None] = lambda: None
    ) -> None:
        self._store = store
        self.shared_path = shared_path
        self._audit = audit

    @classmethod
    def of_home(cls, audit: Callable[[], AuditLog | None] = lambda: None, shared_path: Path | None = None) -> Self:
        """On the files of this user; `shared_path` where the shared token is at another place than usual."""
        return cls(TokenStore(tokens_path()), shared_path or shared_token_path(), audit)

    @expose("tokens.list", READ)
    async def list_tokens(self) -> TokenList:
        """The shared token first, then those of clients, oldest first."""
        return await asyncio.to_thread(self._list)

    @expose("tokens.create", ADMIN, needs_person=True)
    async def create(self, name: str, read_only: bool = False, by: str = "") -> TokenSecret:
        self._check_recorded()
        scopes = frozenset({READ}) if read_only else MCP_SCOPES
        made = await asyncio.to_thread(self._store.create, name, scopes)
        self._record("token created", name, by, scopes=sorted(scopes))
        return _secret_of(made)

    @expose("tokens.show", ADMIN, needs_person=True)
    async def show(self, name: str, by: str = "") -> TokenSecret:
        self._check_recorded()
        if name != SHARED:
            shown = _secret_of(await asyncio.to_thread(self._store.get, name))
        else:
            shown = TokenSecret(SHARED, self._read_shared(), sorted(MCP_SCOPES))
        self._record("token shown", name, by)
        return shown

    @expose("tokens.rotate", ADMIN, needs_person=True)
    async def rotate(self, name: str, by: str = "") -> TokenSecret:
        """A new secret. Sessions, streams and calls of the old one end within half a second."""
        self._check_recorded()
        if name != SHARED:
            made = _secret_of(await asyncio.to_thread(self._store.rotate, name))
        else:
            self._read_shared()
            made = TokenSecret(SHARED, make_token(), sorted(MCP_SCOPES))
            await asyncio.to_thread(write_private, self.shared_path, made.secret.encode() + b"\n")
        self._record("token rotated", name, by)
        return made

    @expose("tokens.revoke", ADMIN, needs_person=True)
    async def revoke(self, name: str, by: str = "") -> TokenEntry:
        """Sessions, streams and calls of the token end within half a second."""
        if name == SHARED:
            raise Conflict("the shared token cannot be revoked, since the hub has one always", "rotate it")
        gone = await asyncio.to_thread(self._store.revoke, name)
        self._record("token revoked", name, by)
        return _entry(gone, {})

    def _list(self) -> TokenList:
        uses = self._store.last_uses()
        try:
            made_unix = self.shared_path.stat().st_mtime
        except OSError:
            made_unix = 0.0
        shared = TokenEntry(
            name=SHARED,
            scopes=sorted(MCP_SCOPES),
            created_unix=made_unix,
            last_used_unix=uses.get(SHARED, 0.0),
            is_shared=True,
        )
        return TokenList([shared, *(_entry(token, uses) for token in self._store.read().values())])

    def _read_shared(self) -> str:
        secret = read_token(self.shared_path).decode()
        if not secret:
            raise NotFound(f"{self.shared_path} holds no token", "`dari up` makes one; `dari doctor` checks it")
        return secret

    def _check_recorded(self) -> None:
        """No secret is given out without a record. To take one away works always."""
        if (audit := self._audit()) is not None:
            audit.check()

    def _record(self, event: str, name: str, by: str, **detail: Any) -> None:
        if (audit := self._audit()) is not None:
            audit.note("decision", who=by or "a person", event=event, client=name, **detail)
            audit.flush(FLUSH_S)


def _entry(token: ClientToken, uses: dict[str, float]) -> TokenEntry:
    return TokenEntry(
        name=token.name,
        scopes=list(token.scopes),
        created_unix=token.created_unix,
        rotated_unix=token.rotated_unix,
        last_used_unix=uses.get(token.name, 0.0),
    )


def _secret_of(token: ClientToken) -> TokenSecret:
    return TokenSecret(token.name, token.secret, list(token.scopes))
