"""The client of a running call as its server sees it, and the list fields that the gateway has to read."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw

from dari.bridge.upstream.caller import Caller
from dari.core.approvals import Approval
from dari.core.context import Context, LoggingMessage, Progress, Relayed
from dari.core.header_params import find_header_params
from dari.core.prompt import PromptArgument
from dari.errors import Unavailable
from dari.mcp.client.errors import RemoteError
from dari.mcp.client_requests import ClientAnsweredError, require_capabilities
from dari.mcp.error_mapping import RpcError
from dari.rpc.codec import decode_any, encode

JsonObject = dict[str, Any]
CAPABILITIES = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
"""What a client has to declare before a server may ask it."""

MAX_ABOUT_CHARS = 600


def prompt_arguments(listed: JsonObject) -> list[PromptArgument]:
    """Only what is required matters here: the server checks the rest."""
    given = listed.get("arguments")
    return [
        PromptArgument(str(one["name"]), required=one.get("required") is True)
        for one in (given if isinstance(given, list) else [])
        if isinstance(one, dict) and "name" in one
    ]


def read_header_params(schema: Any) -> dict[str, tuple[str, ...]]:
    try:
        return find_header_params(schema)
    except ValueError:
        return {}  # clients leave such a tool out over HTTP; over a pipe it works


_CAPABILITIES = frozenset(CAPABILITIES.values())


class CallerCannotAnswer(Unavailable):
    """The client did not declare what the question needs. A server that asks in between gets the error; where
    the question ends a result, the client gets it."""

    def __init__(self, fault: RpcError) -> None:
        super().__init__(fault.message, "use a client that declares it")
        self.fault = fault


class CallerContext:
    """`context` is the request that can be answered at the moment; None between two rounds of questions."""

    __slots__ = ("context", "unasked")

    def __init__(self, context: Context) -> None:
        self.context: Context | None = context
        self.unasked: RpcError | None = None
        """Why the last question was not asked: what the client would have had to declare."""

    def caller(self, *, takes_questions: bool = False, answered: bytes = b"") -> Caller:
        """What the server learns of the caller, and how to reach it during the call."""
        context = self.context
        assert context is not None
        level = context.log_level
        wants_progress = context.wants_progress
        declared = context.capabilities
        capabilities = {name: declared[name] for name in declared if name in _CAPABILITIES}
        return Caller(
            who=context.who,
            session=context.session_key,
            # A client that sees progress waits for a person; another one gets an answer in time, and calls again.
            patience="long" if wants_progress else "short",
            for_model=True,
            ask=self.ask if capabilities or context.is_stateless else None,
            takes_questions=takes_questions,
            answered=answered,
            capabilities=capabilities,
            on_progress=self.report if wants_progress else None,
            on_waiting=self.waiting if wants_progress else None,
            on_log=None if level is None else self.note,
            log_level=level,
        )

    async def ask(self, method: str, params: Raw) -> Any:
        assert self.context is not None
        question = to_relayed(method, params)
        if self.context.is_stateless:
            self.check_capability(question, self.context)
        try:
            answers = await self.context.ask({method: question})
        except ClientAnsweredError as error:
            raise RemoteError(error.remote_code, error.remote_message, error.data) from None
        return Raw(encode(answers[method]))

    def check_capability(self, question: Relayed, context: Context) -> None:
        try:
            require_capabilities({question.method: question}, context.capabilities)
        except RpcError as fault:
            self.unasked = fault
            raise CallerCannotAnswer(fault) from None

    def report(self, progress: Progress) -> None:
        if self.context is not None:
            total = None if progress.total is UNSET else progress.total
            self.context.report(progress.progress, total, None if progress.message is UNSET else progress.message)

    def waiting(self, question: Approval) -> None:
        if self.context is not None:
            self.context.report(0.0, None, f"{question.name} waits for a person (approval {question.id})")

    def note(self, record: LoggingMessage) -> None:
        if self.context is not None:
            self.context.note(record)


def can_be_asked(context: Context) -> bool:
    """Whether there is anything that this client answers."""
    return not _CAPABILITIES.isdisjoint(context.capabilities)


def to_relayed(method: str, params: Raw) -> Relayed:
    """The question as the server asked it."""
    body = decode_any(params)
    return Relayed(method, CAPABILITIES.get(method, method), body if isinstance(body, dict) else {})
