"""The seam between the client and what carries its messages: a pipe, a socket, HTTP."""

from __future__ import annotations

from typing import Protocol

from dari.errors import DariError


class Inbox(Protocol):
    """What a channel hands in. None of these wait, and none raise."""

    def receive(self, message: bytes) -> None:
        """One JSON-RPC message, or a batch of them."""

    def refused(self, request_id: int, body: bytes) -> bool:
        """A request was refused with this body; True when it was a JSON-RPC error and the request is settled."""

    def fail(self, request_id: int, error: DariError) -> None:
        """This request will have no answer."""

    def is_waiting(self, request_id: int) -> bool:
        """Whether a caller still waits for this answer."""

    def hold(self) -> None:
        """Stop the clocks: a person is asked for permission, and takes their time."""

    def release(self) -> None:
        """The person has answered; time limits start anew."""

    def lost(self, error: DariError) -> None:
        """The channel is gone, and with it every answer."""

    def session_lost(self) -> None:
        """The server has forgotten the session; the standing stream noticed it."""

    def resumed(self) -> None:
        """The standing stream is back after a gap in which events may have been missed."""


class Channel(Protocol):
    """Carries messages to one server. It is opened once; after `close` it can be opened again."""

    carries_headers: bool
    """Whether every message travels with HTTP headers of its own."""
    is_full: bool
    """Whether the server reads slower than we write: wait for `drain` before the next request."""

    async def open(self, inbox: Inbox) -> None:
        """Start the process or connect; raises Unavailable."""

    def ask(self, request_id: int, message: bytes, headers: bytes) -> None:
        """Send a request."""

    def tell(self, message: bytes, headers: bytes = b"") -> None:
        """Send a notification, or the answer to a request of the server."""

    def cancel(self, request_id: int, notice: bytes) -> None:
        """The caller gave this request up. `notice`, if given, tells the server where closing does not."""

    def agreed(self, version: str, *, is_stateless: bool) -> None:
        """What `initialize` or `server/discover` settled; an empty version before that."""

    async def follow(self) -> None:
        """Let messages arrive that belong to no request; a pipe does so by nature."""

    async def drain(self) -> None:
        """Wait until more can be written."""

    def last_words(self) -> str:
        """What the server said beside the protocol, for an error: the end of a child's stderr."""

    async def close(self) -> None:
        """End it all: the session, the process, the sockets."""
