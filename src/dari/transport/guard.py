"""Who may talk to the HTTP endpoint: the user of the peer, bearer token, Host, Origin, rate."""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from dari.errors import Failed
from dari.log import format_event
from dari.os_errors import DISK_FULL_ERRNOS, describe_os_error
from dari.paths import make_dirs, write_private
from dari.transport.authority import BadAuthority, parse_authority, parse_origin
from dari.transport.peer_uids import PeerCheck

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_RECHECK_S = 0.5
_log = logging.getLogger("dari.transport")


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
        try:
            if not path.exists():
                make_dirs(path.parent)
                write_private(path, make_token().encode() + b"\n")
            self._refresh()
        except OSError as error:
            room = "free some space, or " if error.errno in DISK_FULL_ERRNOS else ""
            raise Failed(
                f"cannot use token file {path}: {describe_os_error(error)}", f"{room}choose another --token-path"
            ) from None

    def accepts(self, authorization: bytes, now_s: float) -> bool:
        """Whether the header carries the token. A rotated file counts within half a second."""
        if now_s - self._checked_s > _RECHECK_S:
            self._checked_s = now_s
            self._follow()
        if not self._token:
            return False
        if hmac.compare_digest(authorization, self._header):
            return True
        scheme, _, given = authorization.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._token)

    def prove(self, sign: Callable[[bytes], str]) -> str:
        """What `sign` makes of the token that counts now."""
        self._follow()
        return sign(self._token)

    def _follow(self) -> None:
        """Without a trustworthy token file every request is refused; the reason is logged once."""
        try:
            self._refresh()
        except OSError:
            self._token, self._stamp = b"", None
        except Failed as error:
            _log.error(format_event("http", "token", f"{error.message}; hint: {error.hint}"))

    def _refresh(self) -> None:
        info = os.stat(self.path)
        stamp = (info.st_mtime_ns, info.st_ino, info.st_size, info.st_mode)
        if stamp == self._stamp:
            return
        self._token, self._stamp = b"", stamp
        if info.st_mode & 0o077 and not stat.S_ISDIR(info.st_mode):
            raise Failed(f"token file {self.path} is readable by others", f"chmod 600 {self.path}")
        token = self.path.read_bytes().strip()
        if not token:
            raise Failed(f"token file {self.path} is empty", "remove it; a new one is made at start")
        self._token, self._header = token, b"Bearer " + token


class HttpGuard:
    """The checks every HTTP request passes before its body is read."""

    def __init__(
        self,
        token: TokenFile | None,
        hosts: Iterable[str] | None = (),
        origins: Iterable[str] = (),
        peers: PeerCheck | None = None,
    ) -> None:
        """`hosts` are names besides those of loopback; None takes any, for a socket that no page can reach.

        `peers` says who may connect at all; None: somebody else has looked at that.
        """
        self.token = token
        self.peers = peers
        self._hosts = None if hosts is None else LOOPBACK_NAMES | {_host_name(host) for host in hosts}
        self._origins = frozenset(origin.rstrip("/").encode() for origin in origins)
        self._known_hosts: set[bytes] = set()

    def allows_host(self, header: bytes | None) -> bool:
        """A name we answer to, with any port: a page that rebinds its own name to 127.0.0.1 is refused."""
        if self._hosts is None:
            return True
        if header is None:
            return False
        if header in self._known_hosts:
            return True
        try:
            allowed = parse_authority(header).host in self._hosts
        except BadAuthority:
            return False
        if allowed and len(self._known_hosts) < 64:
            self._known_hosts.add(header)
        return allowed

    def allows_origin(self, header: bytes) -> bool:
        """A page from this machine, or one that was named by option."""
        if header in self._origins:
            return True
        try:
            return parse_origin(header)[1].host in LOOPBACK_NAMES
        except BadAuthority:
            return False

    def allows_token(self, authorization: bytes | None, now_s: float) -> bool:
        if self.token is None:
            return True
        return authorization is not None and self.token.accepts(authorization, now_s)


def _host_name(host: str) -> str:
    """The name of `--allow-host` or `--http-bind`, which may come with brackets and a port."""
    try:
        return parse_authority((f"[{host}]" if host.count(":") > 1 and "[" not in host else host).encode()).host
    except BadAuthority:
        return host.lower()
