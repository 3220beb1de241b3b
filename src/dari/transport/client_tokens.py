"""Named tokens: one for each client, so that records name the agent, and one can be taken away alone.

    tokens.json        0600  name, secret, scopes and dates of each token
    tokens.used.json   0600  when each was used last; `shared` is the token that has no name

Secrets stand there as they are: a person copies them into the settings of a client, like those of `mcp.token`. Requests
are compared with them by a keyed hash (BLAKE2b, a quarter of the time of an HMAC) whose key is new in every process, so
that neither a hit nor a miss tells of a secret by the time it takes.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dari.core.scopes import MCP_SCOPES, READ, Grant
from dari.daemon.lock import FileLock
from dari.errors import Conflict, Failed, InvalidInput, NotFound, Unavailable
from dari.log import format_event
from dari.os_errors import describe_os_error
from dari.paths import home, make_dirs, read_regular, write_private
from dari.struct_types import ready
from dari.transport.token_file import make_token

SHARED = "shared"
"""What the token without a client is called; no client may have this name."""
MAX_TOKENS = 200
MIN_SECRET_CHARS = 32
MAX_FILE_BYTES = 1024 * 1024
LOCK_TIMEOUT_S = 5.0
_RECHECK_S = 0.5
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,38}[a-z0-9])?")
_log = logging.getLogger("dari.transport")


def tokens_path() -> Path:
    """Where the tokens of clients are for this user."""
    return home() / "tokens.json"


class ClientToken(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One token as the file has it."""

    name: str
    secret: str
    scopes: tuple[str, ...]
    created_unix: float
    rotated_unix: float = 0.0

    def __repr__(self) -> str:
        return f"ClientToken(name={self.name!r}, secret=…)"


class _TokenFile(Struct, frozen=True):
    tokens: list[ClientToken] = []


_decode = msgspec.json.Decoder(ready(_TokenFile)).decode
_decode_used = msgspec.json.Decoder(dict[str, float]).decode


def check_name(name: str) -> str:
    """The name, if a client may have it."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"the name of a client must be 1 to 40 small letters, digits, '.', '-' or '_', got {name[:60]!r}",
            "such as claude-code",
        )
    if name == SHARED:
        raise InvalidInput(f"{SHARED!r} is the token that all clients may use", "choose another name")
    return name


class TokenStore:
    """The file, and the changes to it: one at a time, whichever process makes them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.used_path = path.with_name(f"{path.stem}.used.json")

    def read(self) -> dict[str, ClientToken]:
        """By name, oldest first; Failed when the file cannot be trusted or read."""
        try:
            mode = os.stat(self.path).st_mode
            data = read_regular(self.path, MAX_FILE_BYTES)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise Failed(f"cannot read {self.path}: {describe_os_error(error)}", "check its owner and mode") from None
        if mode & 0o077:
            raise Failed(f"{self.path} is readable by others", f"chmod 600 {self.path}")
        try:
            tokens = {token.name: token for token in _decode(data).tokens}
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Failed(f"{self.path} is not a list of tokens: {error}", "move it away, and make new tokens") from None
        for token in tokens.values():
            # An editor can write what `create` refuses: a name that forges records, a secret that anybody guesses.
            if not _NAME.fullmatch(token.name) or token.name == SHARED or len(token.secret) < MIN_SECRET_CHARS:
                wrong = f"{self.path} has a token {token.name[:60]!r} with a name or a secret that is not allowed"
                raise Failed(wrong, "take it out of the file, and make it with `dari tokens create`")
        return tokens

    def get(self, name: str) -> ClientToken:
        return _found(self.read(), name)

    def create(self, name: str, scopes: Collection[str] = MCP_SCOPES) -> ClientToken:
        check_name(name)
        made = ClientToken(name=name, secret=_secret(), scopes=_allowed(scopes), created_unix=time.time())
        with self._changing() as tokens:
            if name in tokens:
                raise Conflict(f"a token for '{name}' exists already", "rotate it, revoke it, or choose another name")
            if len(tokens) >= MAX_TOKENS:
                raise Conflict(f"there are {MAX_TOKENS} tokens already", "revoke one that is not used")
            tokens[name] = made
        return made

    def rotate(self, name: str) -> ClientToken:
        """A new secret; what the old one opened ends."""
        with self._changing() as tokens:
            made = tokens[name] = replace(_found(tokens, name), secret=_secret(), rotated_unix=time.time())
        return made

    def revoke(self, name: str) -> ClientToken:
        with self._changing() as tokens:
            gone = _found(tokens, name)
            del tokens[name]
        return gone

    def last_uses(self) -> dict[str, float]:
        """Unix times by name; what cannot be read was never used."""
        try:
            return _decode_used(read_regular(self.used_path, MAX_FILE_BYTES))
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}

    def write_last_uses(self, uses: dict[str, float]) -> None:
        """The later time of each name counts: several processes write."""
        known = self.last_uses()
        merged = {name: max(at, known.get(name, 0.0)) for name, at in uses.items()}
        names = {SHARED, *self.read()}
        kept = {name: at for name, at in (known | merged).items() if name in names}
        write_private(self.used_path, msgspec.json.encode(kept))

    @contextmanager
    def _changing(self) -> Iterator[dict[str, ClientToken]]:
        make_dirs(self.path.parent)
        lock = FileLock(self.path.with_name(f"{self.path.stem}.lock"))
        if not lock.acquire_blocking(LOCK_TIMEOUT_S):
            raise Unavailable(f"another process changes {self.path}", "try again")
        try:
            tokens = self.read()
            yield tokens
            write_private(self.path, msgspec.json.format(msgspec.json.encode(_TokenFile(list(tokens.values())))))
        finally:
            lock.release()


class ClientTokens:
    """The tokens that count now, as the guard asks for them. A changed file counts within half a second."""

    def __init__(self, store: TokenStore, grant: Grant) -> None:
        """`grant` is what a client has besides its name and the scopes of its token."""
        self._store = store
        self._grant = grant
        self._key = os.urandom(32)
        self._by_digest: dict[bytes, Grant] = {}
        self._known: dict[ClientToken, Grant] = {}
        self._stamp: tuple[int, ...] | None = None
        self._checked_s = 0.0
        self.used_s: dict[str, float] = {}
        """By the clock of the requests."""
        self.on_ended: Callable[[Collection[Grant]], None] = lambda grants: None
        """Called with the grants of tokens that were revoked, rotated or changed."""
        self.refresh()

    def find(self, authorization: bytes, now_s: float) -> Grant | None:
        """The grant of the client whose token the header carries."""
        if now_s - self._checked_s > _RECHECK_S:
            self._checked_s = now_s
            self.refresh()
        if not self._by_digest:
            return None
        grant = self._by_digest.get(blake2b(authorization, key=self._key).digest())
        if grant is None:
            scheme, _, given = authorization.partition(b" ")
            if scheme.lower() != b"bearer":
                return None
            grant = self._by_digest.get(self._digest(given.strip()))
        if grant is not None:
            self.used_s[grant.client] = now_s
        return grant

    def refresh(self) -> None:
        """Follow the file. One that cannot be trusted opens nothing; the reason is logged once."""
        stamp = self._look()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            tokens = list(self._store.read().values())
        except Failed as error:
            _log.error(format_event("http", "token", f"{error.message}; hint: {error.hint}"))
            tokens = []
        before = self._known
        # A token that is as it was keeps its grant: sessions belong to the grant that made them.
        self._known = {token: before.get(token) or self._grant_of(token) for token in tokens}
        self._by_digest = {self._digest(token.secret.encode()): grant for token, grant in self._known.items()}
        if ended := [grant for token, grant in before.items() if token not in self._known]:
            self.on_ended(ended)

    def _look(self) -> tuple[int, ...] | None:
        try:
            info = os.stat(self._store.path)
        except OSError:
            return ()
        return info.st_mtime_ns, info.st_ino, info.st_size, info.st_mode

    def _grant_of(self, token: ClientToken) -> Grant:
        # Whatever the file says: no token has more than agents may have.
        return replace(self._grant, client=token.name, scopes=MCP_SCOPES.intersection(token.scopes))

    def _digest(self, secret: bytes) -> bytes:
        return blake2b(b"Bearer " + secret, key=self._key).digest()


def _allowed(scopes: Collection[str]) -> tuple[str, ...]:
    if not scopes or not MCP_SCOPES.issuperset(scopes):
        known = ", ".join(sorted(MCP_SCOPES))
        raise InvalidInput(f"scopes must be some of {known}, got {', '.join(sorted(scopes)) or 'none'}", f"use {READ}")
    return tuple(sorted(scopes))


def _found(tokens: dict[str, ClientToken], name: str) -> ClientToken:
    found = tokens.get(name)
    if found is None:
        names = ", ".join(tokens) or "none"
        raise NotFound(f"there is no token for '{name[:60]}'", f"there are: {names}")
    return found


def _secret() -> str:
    """The beginning tells people and scanners whose it is."""
    return f"dtk_{make_token()}"
