"""Errors as data: every failure a caller can act on, named after what to do next.

    DariError
    ├── InvalidInput      correct the value and call again
    ├── NotFound          list what exists, then pick one
    ├── Denied            ask for the scope, or use another principal
    ├── NeedsApproval     a person must agree first
    ├── Conflict          the state forbids it; change the state first
    ├── TimedOut          try again, or allow more time
    ├── Unavailable       something we depend on is not there
    └── Failed            it was tried and did not work

Engines raise these. Only the edges translate them: MCP results and JSON-RPC errors
(`dari.mcp.error_mapping`), HTTP statuses (`dari.transport`), exit codes (`dari.cli`).
"""

from __future__ import annotations

TYPE_CHECKING = False  # `import typing` costs 5 ms, and every command imports this
if TYPE_CHECKING:
    from typing import ClassVar

__all__ = [
    "Conflict",
    "DariError",
    "Denied",
    "Failed",
    "InvalidInput",
    "NeedsApproval",
    "NotFound",
    "TimedOut",
    "Unavailable",
]

MAX_MESSAGE_CHARS = 4_000
_HEAD_CHARS, _TAIL_CHARS = 3_000, 800


class DariError(Exception):
    """A failure with a stable code, the fact that was wrong, and the next step.

    `code` is the JSON-RPC code of design 000 §5.7; `prefix` is what that table puts before the detail.
    """

    code: ClassVar[int] = -32004
    name: ClassVar[str] = "failed"
    prefix: ClassVar[str] = "Tool execution failed: "
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = _tellable(message)
        self.hint = _tellable(hint)

    @property
    def wire_message(self) -> str:
        """The message as the error table spells it."""
        return self.prefix + self.message


def _tellable(text: str) -> str:
    """Short enough to read, and without lone surrogates, which JSON cannot carry: a file name outside UTF-8 has them.

    A message names the value that was wrong, and a value may be a whole file that was given as a name.
    """
    if len(text) > MAX_MESSAGE_CHARS:
        left_out = len(text) - _HEAD_CHARS - _TAIL_CHARS
        text = f"{text[:_HEAD_CHARS]} … ({left_out:,} characters left out) … {text[-_TAIL_CHARS:]}"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class Failed(DariError):
    """The work was attempted and failed."""


class InvalidInput(DariError):
    """A value is wrong; the message names it."""

    code = -32602
    name = "invalid_input"
    prefix = "Invalid params: "
    http_status = 400
    exit_code = 1


class NotFound(DariError):
    """The named thing does not exist."""

    name = "not_found"
    http_status = 404
    exit_code = 1


class Denied(DariError):
    """The caller may not do this."""

    code = -32001
    name = "denied"
    prefix = "Forbidden: "
    http_status = 403
    exit_code = 2


class NeedsApproval(DariError):
    """A person has to approve the call before it runs. A message that ends with `(approval ID)` names the id."""

    code = -32001
    name = "needs_approval"
    prefix = "Forbidden: "
    http_status = 403
    exit_code = 2

    @property
    def approval_id(self) -> str:
        """The id in the queue; empty when the call is not in it."""
        head, _, last = self.message.rpartition("(approval ")
        return last[:-1] if head and last.endswith(")") and last[:-1].isalnum() else ""


class Conflict(DariError):
    """The current state does not allow it."""

    name = "conflict"
    http_status = 409


class TimedOut(DariError):
    """The time limit passed first."""

    name = "timed_out"
    http_status = 504
    exit_code = 2


class Unavailable(DariError):
    """A daemon, server or file that the call needs cannot be reached."""

    code = -32603
    name = "unavailable"
    prefix = "Internal error: "
    http_status = 503
    exit_code = 2
