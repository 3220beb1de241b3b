"""What the engine asks of the parts around it. Every port has a default, so the engine runs alone.

    Rules      one decision per request head, one status per response head
    Recorder   hears of every flow: when its head is known, its bytes, its end
    Gate       which peers may connect, which addresses may be reached
    Throttle   latency before a response, seconds to wait after some bytes

All are called on the event loop's thread, on the hot path: they answer at once and never await.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dari.proxy.flow import Flow, Headers, WebSocketFrame

Direction = Literal["downstream", "upstream"]
"""`upstream` is from the client to the origin."""

Fault = Literal["reset", "truncate"]


@dataclass(slots=True, frozen=True)
class HeaderEdits:
    """Applied in this order; names are compared without case."""

    remove: tuple[bytes, ...] = ()
    replace: tuple[tuple[bytes, bytes], ...] = ()
    """Every header of that name gives way to one with this value; it is added when there was none."""
    add: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(slots=True, frozen=True)
class LocalResponse:
    """A response made here. `file` is streamed and wins over `body`; a file that cannot be opened gives 502."""

    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    file: str | None = None


@dataclass(slots=True)
class HeadEdit:
    """What a paused head becomes. None leaves a part as it is."""

    method: str | None = None
    url: str | None = None
    status: int | None = None
    headers: Headers | None = None
    body: bytes | None = None
    """Replaces the whole body, in the direction of the head that was paused."""
    abort: bool = False
    """End the flow here: a request gets 502, a response resets the client."""


Resume = Callable[[HeadEdit | None], None]
Pause = Callable[[Flow, Resume], None]
"""Called with the flow when its head is ready to go on; nothing is sent until `Resume` is called, once."""


@dataclass(slots=True)
class Decision:
    """What the rules want of one request. The engine copies the names of the rules into the flow."""

    is_recorded: bool = True
    decrypts: bool = False
    """Only asked for CONNECT (and for TLS on the transparent listener)."""
    reads_plain: bool = False
    """Only asked for CONNECT: requests are read if the client sends them without TLS, as browsers do for ws:// URLs."""
    reason: str | None = None
    """Why it is not decrypted; ends up in `flow.tls.problem`."""
    block_status: int | None = None
    local: LocalResponse | None = None
    remote_url: str | None = None
    """Absolute http or https URL that is asked instead; a bad one gives 502."""
    request_edits: HeaderEdits | None = None
    response_edits: HeaderEdits | None = None
    response_body: Callable[[bytes], bytes] | None = None
    """Gets the whole response body (at most `EngineConfig.edit_bytes`, decoded from chunks) and returns the new one."""
    request_body: Callable[[bytes], bytes] | None = None
    needs_body_edit: bool = False
    """A request whose body is too large for `request_body` is refused instead of passed on as it is."""
    delay_s: float = 0.0
    fault: Fault | None = None
    truncate_bytes: int = 0
    """With `truncate`: how many bytes of the response body still go out."""
    pause_request: Pause | None = None
    pause_response: Pause | None = None
    map_local: str | None = None
    map_remote: str | None = None
    rule_ids: tuple[str, ...] = field(default=())


PASS = Decision()
"""Nothing applies, to the response neither; compared by identity on the hot path."""


class RulesHook(Protocol):
    def decide(self, flow: Flow) -> Decision:
        """Called once per request head; `flow.method` is CONNECT for a tunnel."""

    def respond(self, flow: Flow, status: int) -> int:
        """The status the client shall see; called once per final response, local ones included, unless it was PASS."""


class RecorderHook(Protocol):
    @property
    def spools(self) -> bool:
        """Whether `body` wants to be called; read once per flow."""

    def began(self, flow: Flow) -> None: ...
    def body(self, flow: Flow, from_client: bool, chunk: bytes) -> None:
        """Payload without its framing, in order; not that of a body that came whole and is all in the sample."""

    def frame(self, flow: Flow, frame: WebSocketFrame) -> None:
        """A WebSocket message went by; it is in `flow.frames` already."""

    def finished(self, flow: Flow) -> None: ...


class AccessHook(Protocol):
    def admits(self, peer_ip: str) -> bool:
        """False drops the connection without a byte."""

    def permits(self, ip: str) -> bool:
        """False answers 403 instead of connecting there; called with literals and with what DNS gave."""


class ThrottleHook(Protocol):
    def applies(self, flow: Flow) -> bool:
        """Asked once per flow; False leaves out the other two."""

    def delay_s(self, flow: Flow) -> float:
        """Before the response's head, or before a tunnel opens."""

    def take(self, direction: Direction, n_bytes: int) -> float:
        """How many seconds to wait before these bytes go on; they count at once."""

    def piece_bytes(self, direction: Direction) -> int:
        """How much to take at a time, so that a slow line is slow and not silent."""


class NoRules:
    """Records all, changes nothing, decrypts what `decrypts` says."""

    def __init__(self, decrypts: bool = False) -> None:
        self._connect = Decision(decrypts=decrypts, reason=None if decrypts else "no rule asks for it")

    def decide(self, flow: Flow) -> Decision:
        return self._connect if flow.method == "CONNECT" else PASS

    def respond(self, flow: Flow, status: int) -> int:
        return status


class NoRecorder:
    spools = False

    def began(self, flow: Flow) -> None: ...
    def body(self, flow: Flow, from_client: bool, chunk: bytes) -> None: ...
    def frame(self, flow: Flow, frame: WebSocketFrame) -> None: ...
    def finished(self, flow: Flow) -> None: ...


class AllowAll:
    def admits(self, peer_ip: str) -> bool:
        return True

    def permits(self, ip: str) -> bool:
        return True
