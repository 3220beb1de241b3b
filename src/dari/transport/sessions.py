"""HTTP sessions of the handshake era: found by id, kept while used, swept when idle."""

from __future__ import annotations

import asyncio
import logging
from uuid import uuid4

from dari.core.grant import Grant
from dari.log import event
from dari.mcp.server import Server
from dari.mcp.session import Session
from dari.transport.events import Streams

TTL_S = 30 * 60.0
SWEEP_S = 60.0
MOST_SESSIONS = 10_000

_log = logging.getLogger("dari.transport")


class Sessions:
    """A table with a sliding time to live."""

    def __init__(self, server: Server, ttl_s: float = TTL_S) -> None:
        self._server = server
        self._ttl_s = ttl_s
        self._by_id: dict[bytes, Session] = {}
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def is_full(self) -> bool:
        return len(self._by_id) >= MOST_SESSIONS

    def draft(self, grant: Grant) -> Session:
        """A session for an `initialize` that has not succeeded yet; unknown until it is kept."""
        session = Session(grant, str(uuid4()))
        session.streams = Streams()
        return session

    def keep(self, session: Session) -> None:
        session.created_s = session.last_activity_s = self._loop.time()
        self._by_id[session.id.encode()] = session
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
        return session

    def end(self, session: Session, reason: str) -> None:
        self._by_id.pop(session.id.encode(), None)
        self._server.close_session(session, reason)
        session.streams.close()

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

    def _is_busy(self, session: Session) -> bool:
        return bool(session.running) or session.streams.is_watched

    def _expire(self, session: Session) -> None:
        _log.info(event("http", "session_expired", f"session={session.id[:8]}"))
        self.end(session, "the session expired")
