"""One connection's conversation, without its I/O: a line in, a line out.

Nothing is allowed before the handshake; after it, what the token's scopes say, until a rotation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any
from uuid import uuid4

from msgspec import Raw, Struct

from dari.daemon.agent_hosts import hub_pid
from dari.daemon.ancestry import read_process
from dari.daemon.caller_scopes import CallerIdentity, require_person, serve_caller
from dari.daemon.errors import DaemonError, ErrorCode, NotAPerson, ScopeRequired, to_daemon_error
from dari.daemon.methods import Method, params_reader
from dari.daemon.peer import PeerCredentials
from dari.daemon.person import AGENT_HOSTS
from dari.daemon.protocol import (
    HANDSHAKE,
    MAX_LINE_BYTES,
    PROTOCOL_VERSION,
    HandshakeParams,
    HandshakeResult,
    check_request,
    decode_request,
    encode_error,
    encode_result,
)
from dari.daemon.tokens import Claims, Tokens
from dari.errors import DariError
from dari.os_errors import from_os_error

logger = logging.getLogger("dari.daemon")

# The principal that the peer's executable proves to be, None where the platform proves nothing,
# LookupError when the process cannot be found at all.
Identify = Callable[[PeerCredentials], str | None]
WhileConnected = Callable[[Coroutine[Any, Any, object]], Awaitable[object]]

MAX_CLIENT_CHARS = 200
"""Of the client that the hub passes a call on for. Nobody else is believed: rules and records go by that name."""
_read_handshake = params_reader(HandshakeParams)


class CallerGone(Exception):
    """The caller disconnected while its call was running, so it gets no answer."""


def prove_nothing(peer: PeerCredentials) -> None:
    """Linux has no code signatures, and `/proc/<pid>/exe` names an interpreter: nothing is proven."""


class Refusal(Struct, frozen=True):
    """A call of something that only a person may do, refused. It belongs into the audit log."""

    method: str
    principal: str
    pid: int | None
    reason: str
    params: bytes


OnRefused = Callable[[Refusal], object]


def ignore_refusal(refusal: Refusal) -> None:
    pass


class SessionAccess(Struct, frozen=True):
    """What every connection of a daemon shares."""

    daemon: str
    methods: Mapping[str, Method]
    tokens: Tokens
    identify: Identify
    on_refused: OnRefused = ignore_refusal


class DaemonSession:
    """The state is the claims of the token and the epoch they were verified in."""

    def __init__(self, access: SessionAccess, peer: PeerCredentials, while_connected: WhileConnected) -> None:
        self._access = access
        self._peer = peer
        self._while_connected = while_connected
        self._claims: Claims | None = None
        self._epoch = 0

    @property
    def is_established(self) -> bool:
        return self._claims is not None

    async def answer(self, line: bytes) -> bytes:
        """The reply to one line; every failure is a reply too."""
        request_id, name = Raw(), ""
        try:
            request = decode_request(line)
            request_id = request.id
            name, params = check_request(request)
            reply = encode_result(request_id, await self._perform(name, params, request.acts_for))
            if len(reply) > MAX_LINE_BYTES:
                raise DaemonError(ErrorCode.IO_ERROR, f"the reply has {len(reply)} bytes", "ask for less at a time")
            return reply
        except CallerGone:
            raise
        except DariError as error:
            return encode_error(request_id, to_daemon_error(error))
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
            return self._internal_error(request_id, name)
        except Exception as error:
            if (refused := from_os_error(error)) is not None:
                return encode_error(request_id, to_daemon_error(refused))
            return self._internal_error(request_id, name)

    async def _perform(self, name: str, params: bytes, acts_for: object) -> object:
        if name == HANDSHAKE:
            return self._shake_hands(params)
        method = self._allowed(name, params)
        assert self._claims is not None
        peer, scopes = self._peer, frozenset(self._claims.scopes)
        client = acts_for[:MAX_CLIENT_CHARS] if isinstance(acts_for, str) and _is_hub(peer) else ""
        with serve_caller(CallerIdentity(self._claims.aud, scopes, peer.pid, peer.started, acts_for=client)):
            try:
                if method.needs_person:
                    require_person(method.name)
                if method.ends_with_caller:
                    return await self._while_connected(method.call(params))
                return await method.call(params)
            except (NotAPerson, ScopeRequired) as error:  # some methods want a person for some values only
                self._report(method, params, error.hint if isinstance(error, ScopeRequired) else error.message)
                raise

    def _shake_hands(self, params: bytes) -> HandshakeResult:
        self._claims = None
        wanted = _read_handshake(params)
        if wanted.protocol_version != PROTOCOL_VERSION:
            versions = f"expected {PROTOCOL_VERSION}, got {wanted.protocol_version}"
            raise DaemonError(ErrorCode.INVALID_PARAMS, f"protocol_version mismatch: {versions}")
        claims = self._access.tokens.verify(wanted.token)
        try:
            principal = self._access.identify(self._peer)
        except LookupError as error:
            raise DaemonError(ErrorCode.AUTH_FAILED, "peer cannot be identified") from error
        if principal is not None and principal != claims.aud:
            mismatch = f"token aud '{claims.aud}' does not match principal '{principal}'"
            raise DaemonError(ErrorCode.PRINCIPAL_MISMATCH, mismatch)
        self._claims, self._epoch = claims, self._access.tokens.epoch
        if claims.aud == "mcp":
            AGENT_HOSTS.note_client(self._peer.pid)
        return HandshakeResult(str(uuid4()), PROTOCOL_VERSION, claims.aud, list(claims.scopes), principal is not None)

    def _allowed(self, name: str, params: bytes) -> Method:
        if self._claims is None:
            raise DaemonError(ErrorCode.AUTH_FAILED, "session not established")
        if self._epoch != self._access.tokens.epoch:
            raise DaemonError(ErrorCode.SESSION_EXPIRED, "session expired after token rotation")
        method = self._access.methods.get(name)
        if method is None:
            raise DaemonError(ErrorCode.METHOD_NOT_FOUND, f"unknown method: {name[:100]}")
        if method.scope not in self._claims.scopes:
            reason = f"scope '{method.scope}' required"
            if method.scope == "admin":
                self._report(method, params, reason)
            raise DaemonError(ErrorCode.PERMISSION_DENIED, reason)
        return method

    def _report(self, method: Method, params: bytes, reason: str) -> None:
        assert self._claims is not None
        self._access.on_refused(Refusal(method.name, self._claims.aud, self._peer.pid, reason, bytes(params)))

    def _internal_error(self, request_id: Raw, name: str) -> bytes:
        logger.exception("daemon=%s event=fatal method=%s", self._access.daemon, name)
        return encode_error(request_id, DaemonError(ErrorCode.INTERNAL_ERROR, "internal error"))


def _is_hub(peer: PeerCredentials) -> bool:
    """Whether the hub itself connected: neither without a hub, nor where the caller that connected has ended."""
    if peer.pid is None or peer.pid != hub_pid():
        return False
    found = read_process(peer.pid)  # another process may have had this pid when it connected
    return peer.started is None or (found is not None and found.started == peer.started)
