"""The bearer token that all clients may use: a 0600 file, made when it is missing, read again when it changes."""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from dari.errors import Failed
from dari.log import format_event
from dari.os_errors import DISK_FULL_ERRNOS, describe_os_error
from dari.paths import home, make_dirs, read_regular, write_private

MAX_TOKEN_FILE_BYTES = 1 << 16
_RECHECK_S = 0.5
_NOT_A_TOKEN = re.compile(rb"[^!-~]")  # what a header cannot carry as one word: the file is somebody else's
_log = logging.getLogger("dari.transport")


def shared_token_path() -> Path:
    """Where the hub's token is for this user, unless an option names another place."""
    return home() / "mcp.token"


def make_token() -> str:
    """A new token. It never begins with a dash, which a command would take for an option: `--key -xyz`."""
    token = secrets.token_urlsafe(32)
    while token.startswith("-"):
        token = secrets.token_urlsafe(32)
    return token


class TokenFile:
    """A bearer token in a 0600 file, made when it is missing, read again when the file changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._token = b""
        self._header = b""
        self._stamp: tuple[int, ...] | None = None
        self._checked_s = 0.0
        self._last_good = b""
        self.used_s = 0.0
        """By the clock of the requests; 0: not since the start."""
        self.on_rotated: Callable[[], None] = lambda: None
        """Called when one that counted counts no more: another has taken its place, or its file is gone or not ours
        alone. What it opened ends."""
        try:
            if not path.exists():
                make_dirs(path.parent)
                write_private(path, make_token().encode() + b"\n")
            self._read()
        except OSError as error:
            room = "free some space, or " if error.errno in DISK_FULL_ERRNOS else ""
            raise Failed(
                f"cannot use token file {path}: {describe_os_error(error)}", f"{room}choose another --token-path"
            ) from None

    def accepts(self, authorization: bytes, now_s: float) -> bool:
        """Whether the header carries the token. A rotated file counts within half a second."""
        if now_s - self._checked_s > _RECHECK_S:
            self._checked_s = now_s
            self.refresh()
        if not self._token:
            return False
        if not hmac.compare_digest(authorization, self._header):
            scheme, _, given = authorization.partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
                return False
        self.used_s = now_s
        return True

    def prove(self, sign: Callable[[bytes], str]) -> str:
        """What `sign` makes of the token that counts now."""
        self.refresh()
        return sign(self._token)

    def refresh(self) -> None:
        """Follow the file. Without a trustworthy one every request is refused; the reason is logged once."""
        try:
            self._read()
        except OSError:
            self._token, self._stamp = b"", None
        except Failed as error:
            _log.error(format_event("http", "token", f"{error.message}; hint: {error.hint}"))
        if not self._token and self._last_good:
            self._last_good = b""
            self.on_rotated()

    def _read(self) -> None:
        info = os.stat(self.path)
        stamp = (info.st_mtime_ns, info.st_ino, info.st_size, info.st_mode)
        if stamp == self._stamp:
            return
        self._token, self._stamp = b"", stamp
        is_small = info.st_size <= MAX_TOKEN_FILE_BYTES
        token = read_regular(self.path, MAX_TOKEN_FILE_BYTES).strip() if is_small else b" "
        if not token:
            raise Failed(f"token file {self.path} is empty", "remove it; a new one is made at start")
        if _NOT_A_TOKEN.search(token):
            hint = "name another file; one that is missing is made"
            raise Failed(f"{self.path} must hold a token: one line of ASCII letters, digits and signs", hint)
        if info.st_mode & 0o077:
            raise Failed(f"token file {self.path} is readable by others", f"chmod 600 {self.path}")
        self._token, self._header = token, b"Bearer " + token
        before, self._last_good = self._last_good, token
        if before and before != token:
            self.on_rotated()
