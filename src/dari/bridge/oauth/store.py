"""Logins on this machine: one 0600 file each below the bridge's `oauth`, secrets in the keyring where there is one."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field, structs

from dari.bridge.oauth.keychain import Keychain
from dari.daemon.lock import FileLock
from dari.errors import Unavailable
from dari.log import format_event
from dari.mcp.client.errors import Unauthorized
from dari.paths import private_dir, write_private
from dari.rpc.codec import UNREADABLE
from dari.struct_types import ready

LOGIN_FORMAT = 1
JsonObject = dict[str, Any]
Grant = Literal["code", "client_credentials"]
SecretLocation = Literal["file", "keyring"]


class LoginSecrets(Struct, omit_defaults=True):
    """The secret part of a login."""

    access_token: str = ""
    refresh_token: str = ""
    client: JsonObject = field(default_factory=dict)
    """Our registration (RFC 7591), with its secret if it has one."""

    def __repr__(self) -> str:
        return "Secrets(…)"


class Login(Struct, kw_only=True, omit_defaults=True):
    """One login of one profile at one address. `secrets` is None while they lie in the keyring."""

    format: int = LOGIN_FORMAT
    profile: str
    url: str
    """Without query: a key may stand there."""
    place: SecretLocation = "file"
    grant: Grant = "code"
    expires_unix: float | None = None
    scope: str = ""
    issuer: str = ""
    saved_unix: float = 0.0
    has_tokens: bool = False
    can_refresh: bool = False
    server: JsonObject = field(default_factory=dict)
    """The authorization server's metadata (RFC 8414): a refresh in another process needs its token endpoint."""
    protected: JsonObject = field(default_factory=dict)
    """The resource's metadata (RFC 9728)."""
    secrets: LoginSecrets | None = None

    @property
    def kept(self) -> LoginSecrets:
        if self.secrets is None:
            self.secrets = LoginSecrets()
        return self.secrets

    def drop_tokens(self) -> None:
        """They are worth nothing any more; the registration stays."""
        self.kept.access_token = self.kept.refresh_token = ""
        self.expires_unix = None

    def is_expired(self, now_unix: float | None = None) -> bool:
        return self.expires_unix is not None and self.expires_unix <= (time.time() if now_unix is None else now_unix)


def login_file_name(profile: str, url: str) -> str:
    """One name per profile and address; readable, and no path whatever the profile is called."""
    digest = hashlib.sha256(f"{profile}\0{url}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', profile)[:40]}-{digest}"


_POLL_S = 0.02
_log = logging.getLogger("dari.bridge")


class LoginStore:
    """All logins of one bridge; `home` is the bridge's."""

    def __init__(self, home: Path, keychain: Keychain | None = None) -> None:
        self.folder = home / "oauth"
        self._keychain = keychain or Keychain()

    def login(self, profile: str, url: str, *, uses_keyring: bool = True, has_profile: bool = True) -> StoredLogin:
        kept = StoredLogin(self.folder, profile, url, self._keychain, uses_keyring=uses_keyring)
        if not has_profile:
            kept.command = f"dari remote add NAME {kept.url}, then dari remote login NAME"
        return kept

    def all(self) -> list[Login]:
        """What is known without asking the keyring: nothing in it is secret."""
        found = []
        for path in sorted(self.folder.glob("*.json")):
            login = _read(path)
            if login is not None:
                found.append(structs.replace(login, secrets=None))
        return found


class StoredLogin:
    """One login. Change it only inside `turn`: refresh tokens that rotate are spent by the first who uses them."""

    def __init__(self, folder: Path, profile: str, url: str, keychain: Keychain, *, uses_keyring: bool = True) -> None:
        name = login_file_name(profile, url)
        self.profile = profile
        self.url = url.partition("?")[0]
        self.command = f"dari remote login {profile}"
        """What a person runs to log in."""
        self.path = folder / f"{name}.json"
        self._account = name
        self._lock_path = folder / f"{name}.lock"
        self._keychain = keychain
        self._uses_keyring = uses_keyring

    @asynccontextmanager
    async def turn(self, wait_s: float) -> AsyncIterator[None]:
        """Hold the login against every other task and process. The kernel lets go of it if we die."""
        private_dir(self.path.parent)
        lock = FileLock(self._lock_path)
        end_s = asyncio.get_running_loop().time() + wait_s
        while not lock.try_acquire():
            if asyncio.get_running_loop().time() > end_s:
                raise Unauthorized(
                    f"another login to '{self.profile}' has been running for more than {wait_s:g} s",
                    "finish or stop that login, then try again",
                )
            await asyncio.sleep(_POLL_S)
        try:
            yield
        finally:
            lock.release()

    def peek(self) -> Login | None:
        """What the file says, without the keyring."""
        return _read(self.path)

    async def load(self) -> Login | None:
        """The login with its secrets; None where there is none. Unavailable when the keyring does not hand them out."""
        login = _read(self.path)
        if login is None or login.place == "file":
            return login
        text = await self._keychain.get(self._account)
        if text is None:
            return None  # removed by hand there
        try:
            return structs.replace(login, secrets=msgspec.json.decode(text, type=ready(LoginSecrets)))
        except UNREADABLE:
            return None

    async def save(self, login: Login) -> None:
        """Keep it, in the keyring if that works, else in the file."""
        secrets = login.kept
        login.saved_unix = time.time()
        login.has_tokens = bool(secrets.access_token)
        login.can_refresh = bool(secrets.refresh_token)
        was_in_keyring = login.place == "keyring"
        login.place = "keyring" if await self._hide(secrets) else "file"
        shown = structs.replace(login, secrets=None if login.place == "keyring" else secrets)
        data = msgspec.json.encode(shown)
        private_dir(self.path.parent)
        await asyncio.to_thread(write_private, self.path, data)
        if was_in_keyring and login.place == "file":
            await self._forget()

    async def remove(self) -> bool:
        """Whether there was one."""
        login = _read(self.path)
        if login is not None and login.place == "keyring":
            await self._forget()
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        return True

    async def _hide(self, secrets: LoginSecrets) -> bool:
        if not self._uses_keyring or not await self._keychain.is_usable():
            return False
        try:
            await self._keychain.set(self._account, msgspec.json.encode(secrets).decode())
        except Unavailable as error:
            _log.warning(
                format_event("bridge", "keyring", f"profile={self.profile} {error.message}; using a 0600 file")
            )
            return False
        return True

    async def _forget(self) -> None:
        try:
            await self._keychain.delete(self._account)
        except Unavailable as error:
            _log.warning(
                format_event("bridge", "keyring", f"profile={self.profile} {error.message}; an entry stays behind")
            )


def _read(path: Path) -> Login | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(file, "rb") as stream:
            login = msgspec.json.decode(stream.read(), type=ready(Login))
    except FileNotFoundError:
        return None
    except (OSError, *UNREADABLE) as error:
        # Not the error's text: it may quote the file.
        _log.warning(format_event("bridge", "oauth", f"{path.name} cannot be read ({type(error).__name__})"))
        return None
    return login if login.format == LOGIN_FORMAT else None
