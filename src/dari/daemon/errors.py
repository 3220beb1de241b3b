"""The error codes 1–11 of a daemon's replies, and what each becomes on either side.

`ROWS` is the one table: a daemon turns an error of ours into a code by `sends`, a client turns the
code back into an error by `raises`. Several errors share a code, so a reply names the error in
`data.name` wherever the code alone would say something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from dari.errors import (
    Conflict,
    DariError,
    Denied,
    Failed,
    InvalidInput,
    NeedsApproval,
    NotFound,
    TimedOut,
    Unavailable,
)


class ErrorCode(IntEnum):
    """6 and 7 are reserved: the original never used them."""

    AUTH_FAILED = 1
    INVALID_PARAMS = 2
    STATE_ERROR = 3
    IO_ERROR = 4
    INTERNAL_ERROR = 5
    PRINCIPAL_MISMATCH = 8
    PERMISSION_DENIED = 9
    SESSION_EXPIRED = 10
    METHOD_NOT_FOUND = 11


class DaemonError(DariError):
    """A refusal with its code as on the wire; `kind` is the name of the error behind it, if known."""

    name = "ipc"

    def __init__(self, ipc_code: int, message: str, hint: str = "", kind: str = "") -> None:
        super().__init__(message, hint)
        self.ipc_code = ipc_code
        self.kind = kind


class ScopeRequired(Denied):
    """Design 000 §5.7 fixes the wording `insufficient scope`; which scope is missing stands in the hint."""

    name = "insufficient_scope"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__("insufficient scope", hint or message)


class NotAPerson(Denied):
    """The call is for a person's terminal, and came from somewhere that an agent drives."""

    name = "not_a_person"


class ErrorRow(NamedTuple):
    code: ErrorCode
    raises: type[DariError]
    sends: tuple[type[DariError], ...] = ()
    hint: str = ""


RECONNECT = "connect again with the token that the daemon's token file holds now"

ERROR_ROWS = (
    ErrorRow(ErrorCode.AUTH_FAILED, Denied, hint=RECONNECT),
    ErrorRow(ErrorCode.INVALID_PARAMS, InvalidInput, (InvalidInput,)),
    ErrorRow(ErrorCode.STATE_ERROR, Conflict, (Conflict,)),
    ErrorRow(ErrorCode.IO_ERROR, Failed, (Failed, NotFound, TimedOut, Unavailable, DariError)),
    ErrorRow(ErrorCode.INTERNAL_ERROR, Failed, hint="this is a bug in the daemon; its log holds the traceback"),
    ErrorRow(ErrorCode.PRINCIPAL_MISMATCH, Denied, hint="use the token file of your own principal"),
    ErrorRow(ErrorCode.PERMISSION_DENIED, ScopeRequired, (Denied, NeedsApproval, NotAPerson)),
    ErrorRow(ErrorCode.SESSION_EXPIRED, Unavailable, hint=RECONNECT),
    ErrorRow(ErrorCode.METHOD_NOT_FOUND, NotFound, hint="client and daemon differ in version; restart the daemon"),
)

_BY_CODE: Mapping[int, ErrorRow] = {row.code: row for row in ERROR_ROWS}
_BY_TYPE: Mapping[type[DariError], ErrorRow] = {error: row for row in ERROR_ROWS for error in row.sends}
_BY_NAME: Mapping[str, type[DariError]] = {error.name: error for error in _BY_TYPE if error is not DariError}
_UNKNOWN = ErrorRow(ErrorCode.INTERNAL_ERROR, Failed, hint="the daemon is newer than this client")


def to_daemon_error(error: DariError) -> DaemonError:
    """What a daemon sends for an error: the code of its nearest class in the table."""
    if isinstance(error, DaemonError):
        return error
    row = next(_BY_TYPE[cls] for cls in type(error).__mro__ if cls in _BY_TYPE)
    kind = "" if error.name == row.raises.name else error.name
    return DaemonError(row.code, error.message, error.hint, kind)


def from_daemon_error(refusal: DaemonError, known: Mapping[str, type[DariError]]) -> DariError:
    """What a client raises for a refusal; `known` names the errors of one service, beyond the shared ones."""
    row = _BY_CODE.get(refusal.ipc_code, _UNKNOWN)
    raises = known.get(refusal.kind) or _BY_NAME.get(refusal.kind) or row.raises
    return raises(refusal.message, refusal.hint or row.hint)
