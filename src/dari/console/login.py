"""Who may open the console: a one-time key in a link, then a cookie and a page key.

A link's key is made for a person (`dari up` prints a link, `dari console` opens one), works once and for ten minutes.
It is changed for two secrets that last a month. Browsers send a cookie to every port of a host, so any program that
serves a page on this machine is given it; the page key stays in the storage of our own origin, and a script can read
only that one. The live connection asks for both. The file of sessions holds hashes, so that it opens nothing by itself,
and a hub that is started again still knows the pages that are open.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.paths import make_dirs, write_private
from dari.struct_types import ready

KEY_LIFETIME_S = 600.0
SESSION_LIFETIME_S = 30 * 24 * 3600.0
MAX_KEYS = 16
MAX_SESSIONS = 64


class ConsoleSession(Struct, frozen=True):
    """A browser that has logged in. `id` is the hash of its cookie, `page_key` that of its page key."""

    id: str
    page_key: str
    created_unix: float
    expires_unix: float

    def accepts(self, page_key: str) -> bool:
        return hmac.compare_digest(_digest(page_key), self.page_key)


class Admission(Struct, frozen=True):
    """What a browser that logs in is given."""

    cookie: str
    page_key: str


class Logins:
    """Keys in memory, sessions in a 0600 file."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._now = now
        self._keys: dict[str, float] = {}
        self._sessions = {each.id: each for each in _read(path)}
        self.on_end: list[Callable[[str], None]] = []
        """Called with the id of a session that has ended."""

    def new_key(self) -> str:
        """A key for one login, within ten minutes."""
        self._forget_old()
        while len(self._keys) >= MAX_KEYS:
            del self._keys[next(iter(self._keys))]
        key = secrets.token_urlsafe(32)
        self._keys[_digest(key)] = self._now() + KEY_LIFETIME_S
        return key

    def knows(self, key: str) -> bool:
        """Whether `redeem` would take it now."""
        self._forget_old()
        return _digest(key) in self._keys

    def redeem(self, key: str) -> Admission | None:
        """A new session; None when the key was used, has expired, or never was one."""
        if not self.knows(key):
            return None
        del self._keys[_digest(key)]
        while len(self._sessions) >= MAX_SESSIONS:
            self._drop(min(self._sessions.values(), key=lambda each: each.created_unix).id)
        given, now = Admission(secrets.token_urlsafe(32), secrets.token_urlsafe(32)), self._now()
        session = ConsoleSession(_digest(given.cookie), _digest(given.page_key), now, now + SESSION_LIFETIME_S)
        self._sessions[session.id] = session
        self._write()
        return given

    def find(self, cookie: str) -> ConsoleSession | None:
        """The session of a cookie; the look-up goes by its hash, so time tells nothing about other cookies."""
        session = self._sessions.get(_digest(cookie)) if cookie else None
        return session if session is not None and session.expires_unix > self._now() else None

    def end(self, id: str) -> None:
        """Log out, and end the open pages of that session."""
        if id in self._sessions:
            self._drop(id)
            self._write()

    def _drop(self, id: str) -> None:
        del self._sessions[id]
        for tell in self.on_end:
            tell(id)

    def _forget_old(self) -> None:
        now = self._now()
        self._keys = {key: until for key, until in self._keys.items() if until > now}
        for session in [each for each in self._sessions.values() if each.expires_unix <= now]:
            self._drop(session.id)

    def _write(self) -> None:
        make_dirs(self._path.parent)
        write_private(self._path, msgspec.json.encode(list(self._sessions.values())))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _read(path: Path) -> list[ConsoleSession]:
    """Without a readable file of our own, nobody is logged in."""
    try:
        if path.stat().st_mode & 0o077:
            return []
        return msgspec.json.decode(path.read_bytes(), type=ready(list[ConsoleSession]))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []
