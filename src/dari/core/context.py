"""What a running tool may ask its caller."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

from dari.core.scopes import Grant

if TYPE_CHECKING:
    from dari.core.audit.calls import CallRecord

MAX_CLIENT_NAME_CHARS = 60

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: tuple[Level, ...] = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Elicit(Struct, frozen=True):
    """Ask the person for the fields of a flat JSON schema; the answer is an `Elicited`."""

    message: str
    schema: dict[str, Any]
    method = "elicitation/create"
    capability = "elicitation"

    def params(self) -> dict[str, Any]:
        return {"message": self.message, "requestedSchema": self.schema}


class ElicitUrl(Struct, frozen=True):
    """Send the person to a page (sign in, pay); the answer is an `Elicited` without content."""

    message: str
    url: str
    elicitation_id: str
    method = "elicitation/create"
    capability = "elicitation"

    def params(self) -> dict[str, Any]:
        return {"mode": "url", "message": self.message, "url": self.url, "elicitationId": self.elicitation_id}


class Sample(Struct, frozen=True):
    """Ask the client's model; the answer is the client's `CreateMessageResult` as a dict."""

    messages: list[dict[str, Any]]
    max_tokens: int
    extra: dict[str, Any] = {}
    method = "sampling/createMessage"
    capability = "sampling"

    def params(self) -> dict[str, Any]:
        return {"messages": self.messages, "maxTokens": self.max_tokens, **self.extra}


class Roots(Struct, frozen=True):
    """Ask which folders the client has open; the answer is its `ListRootsResult` as a dict."""

    method = "roots/list"
    capability = "roots"

    def params(self) -> dict[str, Any]:
        return {}


class Relayed(Struct, frozen=True):
    """A question of another server, passed on as it is; the answer is the client's own, as a dict."""

    method: str
    capability: str
    body: dict[str, Any]

    def params(self) -> dict[str, Any]:
        return self.body


ClientRequest = Elicit | ElicitUrl | Sample | Roots | Relayed


class Elicited(Struct, frozen=True):
    """What the person did with the form."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class LoggingMessage(Struct, frozen=True, omit_defaults=True):
    """`notifications/message`."""

    level: Level
    data: Any
    logger: str | UnsetType = UNSET


class Progress(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`notifications/progress`."""

    progress_token: int | str
    progress: float
    total: float | UnsetType = UNSET
    message: str | UnsetType = UNSET


class Root(Struct, frozen=True, omit_defaults=True):
    """A folder the client has open."""

    uri: str
    name: str | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(default=UNSET, name="_meta")


class Context(ABC):
    """One call's view of its caller: the same in both protocol eras and on every transport.

    In the stateless era a question ends the call with `input_required` and the tool runs again from its
    first line once the client has answered: ask before you change anything.
    """

    grant: Grant
    request_id: int | str
    record: CallRecord | None = None
    """The record of this call, where calls are recorded."""
    _asked = 0

    @abstractmethod
    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the call is; dropped when the caller did not ask for progress."""

    @abstractmethod
    async def log(self, level: Level, data: Any, logger: str | None = None) -> None:
        """Send a log record; dropped below the level the caller asked for."""

    @abstractmethod
    async def ask(self, questions: Mapping[str, ClientRequest]) -> dict[str, Any]:
        """Ask several things at once; the answers come back under the same keys.

        Raises Unavailable when the client lacks the capability or refuses.
        """

    @property
    @abstractmethod
    def capabilities(self) -> Mapping[str, Any]:
        """What the client declared it can do: `elicitation`, `sampling`, `roots`, …"""

    @property
    def wants_progress(self) -> bool:
        """Whether the caller asked for progress."""
        return False

    @property
    def log_level(self) -> Level | None:
        """The least level that `log` passes on; None without a listener."""
        return None

    @property
    def session_key(self) -> str:
        """The same for all calls of one client, as far as the protocol lets one tell; unique in this process."""
        return ""

    @property
    def client_name(self) -> str:
        """What the client calls itself; nothing vouches for it."""
        return ""

    @property
    def who(self) -> str:
        """The caller as records name it: the principal, the client that its token vouches for, and what the client
        calls itself: `mcp:Cursor`, `mcp@work-laptop:Cursor`."""
        name, holder = self.client_name, self.grant.holder
        return f"{holder}:{name[:MAX_CLIENT_NAME_CHARS]}" if name else holder

    @property
    def agent(self) -> str:
        """The caller as a person is shown it: the client that its token vouches for, else what it calls itself."""
        return self.grant.client or self.client_name

    @property
    def is_stateless(self) -> bool:
        """Whether a question ends this call, to be taken up again by the client's retry."""
        return False

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:  # noqa: B027
        """`progress` for code that cannot wait."""

    def note(self, record: LoggingMessage) -> None:  # noqa: B027
        """`log` for code that cannot wait."""

    @property
    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What this call remembers between rounds of questions, signed into the client's retry."""

    @property
    def given_answers(self) -> Mapping[str, Raw]:
        """The answers that came with this request, unread; only the stateless era has any."""
        return {}

    def forget_answers(self, *keys: str) -> None:  # noqa: B027 (only the stateless era carries them along)
        """Do not carry these answers into the next round: they were used."""

    def suspend_stream(self, retry_ms: int = 500) -> None:  # noqa: B027 (only one transport has a stream to let go)
        """Let go of the client's connection while the call goes on; the client polls for the rest."""

    async def elicit(self, message: str, schema: dict[str, Any], *, key: str | None = None) -> Elicited:
        key = key or self._next_key()
        answers = await self.ask({key: Elicit(message, schema)})
        answer = answers[key]
        assert isinstance(answer, Elicited)
        return answer

    async def sample(
        self, messages: list[dict[str, Any]], max_tokens: int, *, key: str | None = None, **extra: Any
    ) -> dict[str, Any]:
        key = key or self._next_key()
        answers = await self.ask({key: Sample(messages, max_tokens, extra)})
        return dict(answers[key])

    async def list_roots(self, *, key: str | None = None) -> list[dict[str, Any]]:
        key = key or self._next_key()
        answers = await self.ask({key: Roots()})
        return list(answers[key].get("roots", []))

    def _next_key(self) -> str:
        """Questions are identified by their order, which is the same in every round."""
        self._asked += 1
        return f"question-{self._asked}"
