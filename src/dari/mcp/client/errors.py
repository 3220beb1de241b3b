"""What can go wrong between us and a server that is not ours.

DariError
├── Failed ── RemoteError       the server answered with a JSON-RPC error
├── Denied ── Unauthorized      HTTP 401: it wants a token, or another one
└── Unavailable
    ├── NotSent                 there was no connection to send it on; nothing ran
    ├── ServerRefused           an HTTP status instead of an answer
    └── SessionExpired          the server has forgotten our session; nothing ran
"""

from __future__ import annotations

from typing import Any

from dari.errors import Denied, Failed, Unavailable


class RemoteError(Failed):
    """A JSON-RPC error, as the server sent it."""

    name = "remote_error"
    prefix = ""

    def __init__(self, remote_code: int, message: str, data: Any = None) -> None:
        super().__init__(message, _hint_in(data))
        self.remote_code = remote_code
        self.data = data


class Unauthorized(Denied):
    """The server does not know us."""

    name = "unauthorized"
    http_status = 401


class NotSent(Unavailable):
    """Nothing of the request has left: it may be sent elsewhere."""


class ServerRefused(Unavailable):
    """The server answered with an HTTP status and nothing that JSON-RPC knows."""

    def __init__(self, message: str, hint: str = "", *, status: int) -> None:
        super().__init__(message, hint)
        self.status = status


class SessionExpired(Unavailable):
    """The request did not run: its session is not known any more. A new handshake helps."""


def copy_error(error: Exception) -> Exception:
    """The same failure for one more caller: an exception that is raised twice mixes up its tracebacks."""
    return Unavailable(error.message, error.hint) if isinstance(error, Unavailable) else error


def _hint_in(data: Any) -> str:
    hint = data.get("hint") if isinstance(data, dict) else None
    return hint if isinstance(hint, str) else ""
