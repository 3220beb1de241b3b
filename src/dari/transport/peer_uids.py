"""Which users of this machine may connect to an HTTP listener: ours, and those that an option names.

A token alone does not do. Another user who takes the port first is sent the token by a client that trusts the
address, and replays it; a connection has a uid that nobody can replay.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable

from dari.daemon.tcp_peer import Address, is_local, knows_tcp_owners, tcp_peer_uid
from dari.errors import InvalidInput
from dari.log import format_event
from dari.transport.http_limits import Refusal

ANY_USER = "any"
MAX_REPORTED = 64
_log = logging.getLogger("dari.transport")


class PeerCheck:
    """Asked once per connection. A connection from another machine has no uid: there the token decides alone."""

    def __init__(self, further_uids: Iterable[int] | None = (), own_uid: int | None = None) -> None:
        """`further_uids` may connect besides `own_uid` (the one we run as); None lets every user connect."""
        self._own_uid = os.geteuid() if own_uid is None else own_uid
        self._allowed = None if further_uids is None or not knows_tcp_owners() else {self._own_uid, *further_uids}
        self._reported: set[int | None] = set()

    def refusal(self, peer: Address, own: Address) -> Refusal | None:
        """Why this connection may ask nothing, as status and message; None when it may."""
        if self._allowed is None:
            return None
        try:
            uid = tcp_peer_uid(peer, own)
            if uid in self._allowed or (uid is None and not is_local(peer[0])):
                return None
        except (OSError, ValueError):
            uid = None
        self._report(uid)
        # A local socket that no process of this system holds is refused too: nothing says whose it is.
        whose = "a user that cannot be found out" if uid is None else f"uid {uid}"
        return 403, f"connections must come from uid {self._own_uid}, this one is of {whose}; see --allow-uid"

    def _report(self, uid: int | None) -> None:
        """Once per user: one that tries on and on shall not fill the log."""
        if uid not in self._reported and len(self._reported) < MAX_REPORTED:
            self._reported.add(uid)
            whose = "cannot be found out" if uid is None else str(uid)
            _log.warning(format_event("http", "refused", f"peer uid={whose}; --allow-uid names further users"))


def read_uids(names: Iterable[str]) -> tuple[int, ...] | None:
    """The values of `--allow-uid`: numbers and login names; None when one of them is `any`."""
    return None if ANY_USER in (given := list(names)) else tuple(_read_uid(name) for name in given)


def _read_uid(name: str) -> int:
    if name.isascii() and name.isdigit() and int(name) < 2**32 - 1:
        return int(name)
    try:
        import pwd

        return pwd.getpwnam(name).pw_uid
    except (ImportError, KeyError, ValueError):
        raise InvalidInput(
            f"--allow-uid must be a uid, a login name or {ANY_USER!r}, got {name[:40]!r}",
            "`id -u NAME` prints the uid of a user",
        ) from None
