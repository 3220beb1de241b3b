"""The protocol kernel: messages in, messages out through a channel. No I/O happens here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType, ValidationError

from dari.core.context import LEVELS, LoggingMessage
from dari.core.events import Event, ListChanged, ResourceUpdated
from dari.core.registry import Registry
from dari.core.scopes import Grant
from dari.log import format_event
from dari.mcp import inflight, list_cache, methods
from dari.mcp.batch import receive_batch
from dari.mcp.client_requests import StateSigner
from dari.mcp.error_mapping import RpcError, invalid_params, invalid_request, method_not_found, parse_error
from dari.mcp.handlers import lifecycle
from dari.mcp.handlers.subscriptions import ListenStream
from dari.mcp.headers import check_envelope
from dari.mcp.reply_channel import ReplyChannel
from dari.mcp.request import Request
from dari.mcp.session import Session
from dari.mcp.versions import HANDSHAKE, STATELESS, UNSUPPORTED_VERSION, V2024_11, V2025_03
from dari.rpc.codec import (
    EMPTY_PARAMS,
    UNREADABLE,
    Envelope,
    ErrorObject,
    Message,
    Meta,
    Params,
    RequestId,
    decode_envelope,
    decode_message,
    error_message,
    mend_surrogates,
    notification_message,
    result_message,
)
from dari.text.redact import redact_secrets

_log = logging.getLogger("dari.mcp")


class Info(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Who we are, as `initialize` and `server/discover` tell it."""

    name: str
    version: str
    title: str | UnsetType = UNSET
    website_url: str | UnsetType = UNSET


class Server:
    """Serves one registry to any number of links, in both eras at once, decided message by message.

    `strict` is the policy of design 000: 2024-11-05 and nothing else.
    """

    def __init__(
        self,
        registry: Registry,
        info: Info,
        *,
        instructions: str = "",
        strict: bool = False,
        page_size: int = 500,
        capabilities: Mapping[str, Any] | None = None,
        on_exit: Callable[[], None] | None = None,
    ) -> None:
        """`capabilities` is all that the server announces, where a design fixes it; None: what the registry has.

        With `on_exit` the server has the end of a language server (design 001 §15): `shutdown` is answered, and the
        notification `exit` calls it.
        """
        self.registry = registry
        self.info = info
        self.capabilities = capabilities
        self.on_exit = on_exit
        self.instructions = instructions
        self.strict = strict
        self.versions = (V2024_11,) if strict else HANDSHAKE
        self.stateless_versions = () if strict else STATELESS
        self.signer = StateSigner()
        self.sessions: set[Session] = set()
        self.first_request = 0
        """Where the ids of our requests begin in a new session."""
        self.calls = inflight.InflightCalls()
        self.listening: set[ListenStream] = set()
        self.on_session_end: list[Callable[[Session], None]] = []
        self.on_access_end: list[Callable[[Grant], None]] = []
        self.lists = list_cache.ListCache(registry, page_size)
        registry.events.subscribe(self._on_event)

    def receive(self, data: bytes, channel: ReplyChannel) -> None:
        """Take one message as bytes. Replies go through the channel, now or later."""
        try:
            message = decode_message(data)
        except UNREADABLE as error:
            self.refuse(data, error, channel)
            return
        self.dispatch(message, channel)

    def dispatch(self, message: Message, channel: ReplyChannel) -> None:
        """Take one decoded message."""
        request_id = message.id
        try:
            if message.jsonrpc != "2.0":
                raise invalid_request("jsonrpc must be '2.0'")
            method = message.method
            if method is UNSET:
                self._response(message, channel)
                return
            if _log.isEnabledFor(logging.DEBUG):
                _log.debug(format_event(channel.transport, "request", f"method={method} id={request_id}"))
            params = message.params or EMPTY_PARAMS
            if request_id is UNSET:
                lifecycle.receive_notification(self, channel, method, params)
                return
            if not isinstance(request_id, (int, str)):
                raise invalid_request(f"id must be a string or an integer, not {request_id!r}")
            result = self._handle(channel, request_id, method, params)
        except RpcError as fault:
            known_id = request_id if isinstance(request_id, (int, str)) else None
            channel.reply(error_message(known_id, fault.code, fault.message, fault.data), fault.code)
            return
        if result is not None:
            channel.reply(result_message(request_id, result))

    def refuse(self, data: bytes, error: Exception, channel: ReplyChannel) -> None:
        """Answer a message that the typed decode could not read, with its id where it can be found."""
        if data[:64].lstrip()[:1] == b"[":
            session = channel.session
            if session is not None and session.version == V2025_03:
                receive_batch(self, data, channel)
                return
            fault = invalid_request("batches exist in protocol 2025-03-26 only")
            channel.reply(error_message(None, fault.code, fault.message), fault.code)
            return
        request_id = None
        try:
            envelope = decode_envelope(mend_surrogates(data))
            if channel.owns_ids and envelope.id is UNSET and isinstance(envelope.method, str):
                return  # A notification; HTTP answers it with a status, a pipe not at all.
            request_id = envelope.id if type(envelope.id) in (int, str) else None
            fault = self._unreadable(envelope, error)
            if envelope.method is UNSET and channel.session is not None:
                # An answer that breaks JSON-RPC is still the end of its question.
                channel.session.answer(Message(id=request_id, error=ErrorObject(fault.code, fault.message)))
        except ValidationError as worse:
            fault = invalid_request(str(worse))
        except UNREADABLE as worse:
            fault = parse_error(worse)
        channel.reply(error_message(request_id, fault.code, fault.message, fault.data), fault.code)

    def open_session(self, channel: ReplyChannel, session_id: str = "") -> Session:
        """A session for a channel that will speak the handshake era."""
        session = Session(channel.grant, session_id)
        session.skip_request_ids(self.first_request)
        self.sessions.add(session)
        return session

    def close_session(self, session: Session, reason: str = "the connection ended") -> None:
        self.sessions.discard(session)
        # Over HTTP two requests of one session may carry the same id; only one of them is in `running` then.
        known = set(session.running.values())
        hidden = [call for call in self.calls if call.session is session and call not in known]
        session.close(reason)
        self.unwatch_all(session)
        for call in hidden:
            call.cancel(reason)
        for tell in self.on_session_end:
            tell(session)

    def end_access(self, grant: Grant) -> None:
        """The token of a grant counts no more. Sessions are closed one by one; a client of the stateless era over HTTP
        has none, and what is kept for it ends here."""
        for tell in self.on_access_end:
            tell(grant)

    def on_sessions_end(self, end: Callable[[Callable[[str], bool]], None]) -> None:
        """Call `end` with what tells the keys of the sessions that have ended, whenever some have."""
        self.on_session_end.append(lambda session: end(lambda key: key == session.key))
        self.on_access_end.append(lambda grant: end(grant.has_session_key))

    def unwatch_all(self, session: Session) -> None:
        """The session hears of no resource any more."""
        for uri in session.subscriptions:
            self.registry.unwatch(uri)
        session.subscriptions.clear()

    def log_to_sessions(self, record: LoggingMessage) -> None:
        """A log record that belongs to no call: for the clients that asked for logs of its level."""
        message = b""
        for session in list(self.sessions):
            if not session.has_asked_for_logs or session.standing is None:
                continue
            if LEVELS.index(record.level) >= LEVELS.index(session.log_level):
                message = message or notification_message("notifications/message", redact_secrets(record))
                session.standing.emit(message)

    def end_listening(self, *transports: str) -> None:
        """Give every `subscriptions/listen` its final result, or every one on these transports."""
        for listening in list(self.listening):
            if not transports or listening.transport in transports:
                listening.finish()

    def close(self, reason: str = "the server is stopping") -> None:
        """End listeners and cancel what still runs."""
        self.end_listening()
        for call in self.calls:
            call.cancel(reason)

    def _handle(self, channel: ReplyChannel, request_id: RequestId, method: str, params: Params) -> bytes | None:
        meta = params.meta
        if meta is not UNSET and meta.version is not UNSET:
            return self._handle_stateless(channel, request_id, method, params, meta)
        session = channel.session
        if session is None:
            raise invalid_params("this request names no protocol version", "send it in params._meta, or initialize")
        handler = methods.HANDSHAKE.get(method)
        if handler is None and method == "shutdown" and self.on_exit is not None:
            return b"null"
        if handler is None:
            raise method_not_found(method)
        if not session.version and method not in methods.BEFORE_INITIALIZE:
            raise invalid_request("initialize first, or name a protocol version in params._meta")
        if channel.owns_ids and request_id in session.running:
            raise invalid_request(f"id {request_id!r} is in use by a request that still runs")
        return self._run(handler, Request(self, channel, request_id, method, params, session, session.version))

    def _handle_stateless(
        self, channel: ReplyChannel, request_id: RequestId, method: str, params: Params, meta: Meta
    ) -> bytes | None:
        version = meta.version
        assert isinstance(version, str)
        if self.strict:
            raise self.unsupported_version()  # whatever the envelope and its headers lack
        if meta.capabilities is UNSET:
            raise invalid_params("params._meta lacks 'io.modelcontextprotocol/clientCapabilities'", "send {} for none")
        if channel.headers is not None:
            check_envelope(channel.headers, version, method, params)
        if version not in self.stateless_versions:
            raise self.unsupported_version(version)
        handler = methods.STATELESS.get(method)
        if handler is None:
            raise method_not_found(method)
        session = channel.session
        if session is not None and channel.owns_ids and request_id in session.running:
            raise invalid_request(f"id {request_id!r} is in use by a request that still runs")
        result = self._run(handler, Request(self, channel, request_id, method, params, None, version))
        return None if result is None else inflight.to_stateless_result(result)

    def _run(self, handler: methods.Handler, request: Request) -> bytes | None:
        try:
            return handler(request)
        except RpcError as fault:
            inflight.record_error(request, fault)
            raise
        except (Exception, SystemExit) as error:
            request.channel.reply(*inflight.to_error_message(request, error))
            return None

    def unsupported_version(self, requested: str = "") -> RpcError:
        if self.strict:
            return RpcError(-32602, "Invalid params: unsupported protocol version", {"supported": list(self.versions)})
        supported = list(self.versions + self.stateless_versions)
        return RpcError(
            UNSUPPORTED_VERSION, "Unsupported protocol version", {"supported": supported, "requested": requested}
        )

    def _response(self, message: Message, channel: ReplyChannel) -> None:
        if message.result is UNSET and message.error is UNSET:
            raise invalid_request("neither a method nor a result")
        if channel.session is not None:
            channel.session.answer(message)

    def _unreadable(self, envelope: Envelope, error: Exception) -> RpcError:
        method = envelope.method
        if envelope.jsonrpc != "2.0":
            return invalid_request("jsonrpc must be '2.0'")
        if not isinstance(method, str):
            return invalid_request(str(error))
        if envelope.id is not UNSET and type(envelope.id) not in (int, str):
            return invalid_request("id must be a string or an integer")
        if method not in methods.HANDSHAKE and method not in methods.STATELESS:
            return method_not_found(method)
        if self.strict and method == "initialize" and not _names_version(envelope.params, self.versions):
            return self.unsupported_version()
        return invalid_params(str(error))

    def _on_event(self, event: Event) -> None:
        for listening in list(self.listening):
            listening.tell(event)
        message = _event_message(event)
        for session in list(self.sessions):
            if session.standing is not None and session.version and _wants(session, event):
                session.standing.emit(message)


def _names_version(params: Any, versions: tuple[str, ...]) -> bool:
    return isinstance(params, dict) and params.get("protocolVersion") in versions


def _event_message(event: Event) -> bytes:
    if isinstance(event, ListChanged):
        return notification_message(f"notifications/{event.kind}/list_changed")
    return notification_message("notifications/resources/updated", {"uri": event.uri})


def _wants(session: Session, event: Event) -> bool:
    return not isinstance(event, ResourceUpdated) or event.uri in session.subscriptions
