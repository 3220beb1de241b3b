from __future__ import annotations

import pytest

from dari.daemon.errors import ERROR_ROWS, DaemonError, ErrorCode, ScopeRequired, from_daemon_error, to_daemon_error
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


def test_the_codes_are_those_of_the_original_with_6_and_7_reserved() -> None:
    assert {int(code) for code in ErrorCode} == {1, 2, 3, 4, 5, 8, 9, 10, 11}
    assert [row.code for row in ERROR_ROWS] == list(ErrorCode)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput, 2),
        (Conflict, 3),
        (Failed, 4),
        (NotFound, 4),
        (TimedOut, 4),
        (Unavailable, 4),
        (DariError, 4),
        (Denied, 9),
        (NeedsApproval, 9),
    ],
)
def test_every_error_of_ours_comes_back_as_itself(error: type[DariError], code: int) -> None:
    refusal = to_daemon_error(error("what was wrong", "what to do"))
    restored = from_daemon_error(refusal, {})
    assert refusal.ipc_code == code
    assert (restored.name, restored.code) == (error.name, error.code)
    assert (restored.message, restored.hint) == ("what was wrong", "what to do")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (1, Denied),
        (2, InvalidInput),
        (3, Conflict),
        (4, Failed),
        (5, Failed),
        (8, Denied),
        (9, Denied),
        (10, Unavailable),
        (11, NotFound),
        (13, Failed),
    ],
)
def test_a_bare_code_becomes_the_error_that_says_what_to_do(code: int, error: type[DariError]) -> None:
    restored = from_daemon_error(DaemonError(code, "message"), {})
    assert isinstance(restored, error)
    assert restored.code == error.code


@pytest.mark.parametrize("code", [1, 5, 8, 10, 11, 13])
def test_codes_that_a_caller_did_not_cause_come_with_a_next_step(code: int) -> None:
    assert from_daemon_error(DaemonError(code, "message"), {}).hint


def test_a_missing_scope_reads_as_design_000_words_it() -> None:
    restored = from_daemon_error(DaemonError(ErrorCode.PERMISSION_DENIED, "scope 'admin' required"), {})
    assert isinstance(restored, ScopeRequired)
    assert restored.wire_message == "Forbidden: insufficient scope"
    assert restored.hint == "scope 'admin' required"


class ProxyRunning(Conflict):
    code = -32003
    name = "proxy_running"


def test_an_error_of_a_services_own_travels_by_its_name() -> None:
    refusal = to_daemon_error(ProxyRunning("already running"))
    assert refusal.ipc_code == ErrorCode.STATE_ERROR
    assert isinstance(from_daemon_error(refusal, {"proxy_running": ProxyRunning}), ProxyRunning)
    assert type(from_daemon_error(refusal, {})) is Conflict


def test_an_ipc_error_keeps_its_code() -> None:
    refusal = DaemonError(ErrorCode.SESSION_EXPIRED, "expired")
    assert to_daemon_error(refusal) is refusal
