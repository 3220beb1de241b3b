"""HTTP sessions of the handshake era: found by id, kept while used, swept when idle, evicted when there are too many.

Who makes many loses its own first: sessions are counted per peer, and the idle ones of the peer with the most go, those
that never did more than `initialize` before the others. One with a running call or an open stream never goes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import islice
from uuid import uuid4

from dari.core.scopes import Grant
from dari.log import format_event
from dari.mcp.server import Server
from dari.mcp.session import Session
from dari.transport.sse import EventStreams

TTL_S = 30 * 60.0
SWEEP_S = 60.0
MAX_SESSIONS = 10_000
MAX_SESSIONS_PER_PEER = 2_000
MAX_LOOKED_AT = 64
"""Before an eviction is given up: busy sessions in front of an idle one are passed over."""

_log = logging.getLogger("dari.transport")


class _Share:
    """The sessions of one peer, each half with the least recently used one first."""

    __slots__ = ("unused", "used")

    def __init__(self) -> None:
        self.unused: dict[bytes, Session] = {}
        """Nothing but `initialize`."""
        self.used: dict[bytes, Session] = {}

    def __len__(self) -> int:
        return len(self.unused) + len(self.used)


class HttpSessions:
    """A table with a sliding time to live."""

    def __init__(self, server: Server, ttl_s: float = TTL_S) -> None:
        self._server = server
        self._ttl_s = ttl_s
        self._by_id: dict[bytes, Session] = {}
        self._shares: dict[str, _Share] = {}
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._by_id)

    def has_room(self, peer: str) -> bool:
        """Whether the peer may have one more; an idle one goes for it where that is needed."""
        share = self._shares.get(peer)
        if share is not None and len(share) >= MAX_SESSIONS_PER_PEER:
            return self._evict(share)
        if len(self._by_id) < MAX_SESSIONS:
            return True
        return any(self._evict(each) for each in sorted(self._shares.values(), key=len, reverse=True))

    def draft(self, grant: Grant, peer: str = "") -> Session:
        """A session for an `initialize` that has not succeeded yet; unknown until it is kept."""
        session = Session(grant, str(uuid4()))
        session.peer = peer
        session.streams = EventStreams()
        return session

    def keep(self, session: Session) -> None:
        session.last_activity_s = self._loop.time()
        key = session.id.encode()
        self._by_id[key] = session
        self._shares.setdefault(session.peer, _Share()).unused[key] = session
        self._server.sessions.add(session)
        # What changes before the client opens its stream is kept for it.
        session.standing = session.streams.standing()

    def find(self, session_id: bytes) -> Session | None:
        """The live session, its life extended."""
        session = self._by_id.get(session_id)
        if session is None:
            return None
        now_s = self._loop.time()
        if now_s - session.last_activity_s > self._ttl_s and not self._is_busy(session):
            self._expire(session)
            return None
        session.last_activity_s = now_s
        share = self._shares[session.peer]
        half = share.used if session_id in share.used else share.unused
        half[session_id] = half.pop(session_id)
        return session

    def note_use(self, session: Session) -> None:
        """It asked for something after `initialize`, so it goes after those that never did."""
        key, share = session.id.encode(), self._shares.get(session.peer)
        if share is not None and share.unused.pop(key, None) is not None:
            share.used[key] = session

    def end(self, session: Session, reason: str) -> None:
        key = session.id.encode()
        if self._by_id.pop(key, None) is not None:
            share = self._shares[session.peer]
            share.unused.pop(key, None)
            share.used.pop(key, None)
            if not len(share):
                del self._shares[session.peer]
        self._server.close_session(session, reason)
        session.streams.close()

    def end_all(self, is_meant: Callable[[Session], bool], reason: str) -> int:
        """End the sessions that are meant; returns how many."""
        ending = [session for session in self._by_id.values() if is_meant(session)]
        for session in ending:
            self.end(session, reason)
        return len(ending)

    def sweep(self) -> int:
        """Remove what was idle too long; returns how many."""
        limit_s = self._loop.time() - self._ttl_s
        idle = [s for s in self._by_id.values() if s.last_activity_s < limit_s and not self._is_busy(s)]
        for session in idle:
            self._expire(session)
        return len(idle)

    def end_streams(self) -> None:
        """Close the standing streams; answers that are still being made go on."""
        for session in self._by_id.values():
            session.streams.standing().finish()

    def close(self) -> None:
        for session in list(self._by_id.values()):
            self.end(session, "the server is stopping")

    def _evict(self, share: _Share) -> bool:
        for half in (share.unused, share.used):
            for session in islice(half.values(), MAX_LOOKED_AT):
                if not self._is_busy(session):
                    _log.info(format_event("http", "session_evicted", f"session={session.id[:8]} peer={session.peer}"))
                    self.end(session, "the session was idle, and there are too many")
                    return True
        return False

    def _is_busy(self, session: Session) -> bool:
        return bool(session.running) or session.streams.is_watched

    def _expire(self, session: Session) -> None:
        _log.info(format_event("http", "session_expired", f"session={session.id[:8]}"))
        self.end(session, "the session expired")
