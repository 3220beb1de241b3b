from __future__ import annotations

import pytest

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
from dari.ipc.codes import ROWS, Code, IpcError, ScopeRequired, refuse, restore


def test_the_codes_are_those_of_the_original_with_6_and_7_reserved() -> None:
    assert {int(code) for code in Code} == {1, 2, 3, 4, 5, 8, 9, 10, 11}
    assert [row.code for row in ROWS] == list(Code)


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
    refusal = refuse(error("what was wrong", "what to do"))
    restored = restore(refusal, {})
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
    restored = restore(IpcError(code, "message"), {})
    assert isinstance(restored, error)
    assert restored.code == error.code


@pytest.mark.parametrize("code", [1, 5, 8, 10, 11, 13])
def test_codes_that_a_caller_did_not_cause_come_with_a_next_step(code: int) -> None:
    assert restore(IpcError(code, "message"), {}).hint


def test_a_missing_scope_reads_as_design_000_words_it() -> None:
    restored = restore(IpcError(Code.PERMISSION_DENIED, "scope 'admin' required"), {})
    assert isinstance(restored, ScopeRequired)
    assert restored.wire_message == "Forbidden: insufficient scope"
    assert restored.hint == "scope 'admin' required"


class ProxyRunning(Conflict):
    code = -32003
    name = "proxy_running"


def test_an_error_of_a_services_own_travels_by_its_name() -> None:
    refusal = refuse(ProxyRunning("already running"))
    assert refusal.ipc_code == Code.STATE_ERROR
    assert isinstance(restore(refusal, {"proxy_running": ProxyRunning}), ProxyRunning)
    assert type(restore(refusal, {})) is Conflict


def test_an_ipc_error_keeps_its_code() -> None:
    refusal = IpcError(Code.SESSION_EXPIRED, "expired")
    assert refuse(refusal) is refusal
