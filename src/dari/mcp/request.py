"""One request being served: its caller, its parameters, and its way back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from dari.core.context import LEVELS, ClientRequest, Context, Level, LoggingMessage, Progress
from dari.errors import Failed, InvalidInput, TimedOut, Unavailable
from dari.mcp.client_requests import ClientAnsweredError, InputRequired, RequestState, read_answer, require_capabilities
from dari.mcp.error_mapping import RpcError, invalid_params
from dari.rpc.codec import UNREADABLE, Message, Params, RequestId, decode_any, notification_message
from dari.struct_types import ready
from dari.text.redact import redact_secrets

if TYPE_CHECKING:
    from dari.core.audit.calls import CallRecord
    from dari.mcp.reply_channel import ReplyChannel
    from dari.mcp.server import Server
    from dari.mcp.session import Session

QUESTION_TIMEOUT_S = 300.0


class Request(Context):
    """The `Context` of both eras. `session` is None in the stateless era, where every request stands alone."""

    __slots__ = (
        "_remembered", "grant", "channel", "method", "params", "record", "request_id", "server", "session", "version",
    )  # fmt: skip

    def __init__(
        self,
        server: Server,
        channel: ReplyChannel,
        request_id: RequestId,
        method: str,
        params: Params,
        session: Session | None,
        version: str,
    ) -> None:
        self.server = server
        self.channel = channel
        self.request_id = request_id
        self.method = method
        self.params = params
        self.session = session
        self.version = version
        self.grant = channel.grant
        self.record: CallRecord | None = None
        self._remembered: RequestState | None = None

    @property
    def is_stateless(self) -> bool:
        return self.session is None

    @property
    def wants_progress(self) -> bool:
        meta = self.params.meta
        return meta is not UNSET and meta.progress_token is not UNSET

    @property
    def log_level(self) -> Level | None:
        if self.session is not None:
            return self.session.log_level
        meta = self.params.meta
        level = UNSET if meta is UNSET else meta.log_level
        return None if level is UNSET else next((known for known in LEVELS if known == level), None)

    @property
    def session_key(self) -> str:
        """Of the connection or the HTTP session; a request of the stateless era over HTTP has only its principal."""
        session = self.channel.session
        return session.key if session is not None else self.grant.session_key(self.client_name)

    @property
    def client_name(self) -> str:
        if self.session is not None:
            return str(self.session.client_info.get("name", ""))
        meta = self.params.meta
        return "" if meta is UNSET or meta.client_info is UNSET else _name_in(meta.client_info)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client declared, at `initialize` or in this request's envelope."""
        if self.session is not None:
            return self.session.capabilities
        meta = self.params.meta
        declared = UNSET if meta is UNSET else meta.capabilities
        decoded = {} if declared is UNSET else _read(declared, "clientCapabilities")
        return decoded if isinstance(decoded, dict) else {}

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self.wants_progress:
            self.report(progress, total, message)
            await self.channel.drain()

    async def log(self, level: Level, data: Any, logger: str | None = None) -> None:
        if self._is_heard(level):
            self.note(LoggingMessage(level, data, UNSET if logger is None else logger))
            await self.channel.drain()

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        meta = self.params.meta
        token = UNSET if meta is UNSET else meta.progress_token
        if token is not UNSET:
            said = UNSET if message is None else redact_secrets(message)
            report = Progress(token, progress, UNSET if total is None else total, said)
            self.channel.emit(notification_message("notifications/progress", report))

    def note(self, record: LoggingMessage) -> None:
        if self._is_heard(record.level):
            self.channel.emit(notification_message("notifications/message", redact_secrets(record)))

    async def ask(self, questions: Mapping[str, ClientRequest]) -> dict[str, Any]:
        if self.session is None:
            return self._ask_by_retry(questions)
        try:
            require_capabilities(questions, self.session.capabilities)
        except RpcError as fault:
            raise Unavailable(fault.message, "use a client that supports it") from None
        if not self.channel.can_ask:
            raise Unavailable(
                "this client takes no event stream, so it cannot be asked", "send Accept: text/event-stream"
            )
        waiting = [asyncio.ensure_future(self._ask_now(key, question)) for key, question in questions.items()]
        try:
            return dict(zip(questions, await asyncio.gather(*waiting), strict=True))
        finally:
            for one in waiting:
                one.cancel()

    async def list_roots(self, *, key: str | None = None) -> list[dict[str, Any]]:
        """Asked once a session of a client that announces changes of them."""
        session = self.session
        declared = self.capabilities.get("roots")
        if session is None or not (isinstance(declared, dict) and declared.get("listChanged") is True):
            return await super().list_roots(key=key)
        if session.roots is not None:
            return session.roots
        changes = session.roots_changes
        roots = await super().list_roots(key=key)
        if changes == session.roots_changes:  # else they changed while the client answered
            session.roots = roots
        return roots

    @property
    def state(self) -> dict[str, Any]:
        return self._memory().state

    def suspend_stream(self, retry_ms: int = 500) -> None:
        """Let go of the client's connection while the call goes on; it polls for the rest."""
        self.channel.suspend(retry_ms)

    @property
    def given_answers(self) -> Mapping[str, msgspec.Raw]:
        given = self.params.input_responses
        return {} if given is UNSET or self.session is not None else given

    def forget_answers(self, *keys: str) -> None:
        for key in keys:
            self._memory().answers.pop(key, None)

    def recall(self) -> None:
        """Check `requestState` before the call runs, so that a forged one is refused even if nothing reads it."""
        self._memory()

    def sealed_state(self) -> str:
        """`requestState` for the next round."""
        return self.server.signer.seal(self._memory(), *self._binding())

    def _is_heard(self, level: Level) -> bool:
        least = self.log_level
        return least is not None and LEVELS.index(level) >= LEVELS.index(least)

    async def _ask_now(self, key: str, question: ClientRequest) -> Any:
        assert self.session is not None
        try:
            response = await self.session.request(self.channel, question.method, question.params(), QUESTION_TIMEOUT_S)
        except TimeoutError:
            raise TimedOut(
                f"the client did not answer {question.method} within {QUESTION_TIMEOUT_S:g} s", "ask again"
            ) from None
        except ConnectionError as error:
            raise Unavailable(f"{question.method} was not answered: {error}", "connect and call again") from None
        return read_answer(key, question, _result_of(response, question.method))

    def _ask_by_retry(self, questions: Mapping[str, ClientRequest]) -> dict[str, Any]:
        """Answers already given, or the end of this round."""
        memory = self._memory()
        given = self.params.input_responses
        for key in questions:
            if given is not UNSET and key in given:
                memory.answers[key] = _read(given[key], f"inputResponses['{key}']")
        open_questions = {key: question for key, question in questions.items() if key not in memory.answers}
        answers = {}
        for key, question in questions.items():
            if key not in open_questions:
                try:
                    answers[key] = read_answer(key, question, memory.answers[key])
                except InvalidInput as error:
                    raise invalid_params(error.message, error.hint) from None
        if open_questions:
            require_capabilities(open_questions, self.capabilities)
            raise InputRequired(open_questions)
        return answers

    def _memory(self) -> RequestState:
        if self._remembered is None:
            state = self.params.request_state
            self._remembered = (
                RequestState(answers={}, state={})
                if state is UNSET
                else self.server.signer.open(state, *self._binding())
            )
        return self._remembered

    def _binding(self) -> tuple[str, str, str]:
        target = self.params.uri if self.params.name is UNSET else self.params.name
        return self.grant.holder, self.method, "" if target is UNSET else target


class _Named(msgspec.Struct):
    name: str = ""


_decode_named = msgspec.json.Decoder(ready(_Named)).decode


def _name_in(client_info: msgspec.Raw) -> str:
    try:
        return _decode_named(client_info).name
    except UNREADABLE:
        return ""


def _read(raw: msgspec.Raw, name: str) -> Any:
    try:
        return decode_any(raw)
    except UNREADABLE as error:
        raise invalid_params(f"{name}: {error}") from None


def _result_of(response: Message, method: str) -> Any:
    if response.error is not UNSET and response.error is not None:
        raise ClientAnsweredError(method, response.error.code, response.error.message, response.error.data)
    try:
        return decode_any(response.result) if response.result is not UNSET else None
    except UNREADABLE as error:
        raise Failed(f"the client's answer to {method} is unreadable: {error}") from None
