from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from dari.cli.kit.errors import ExitCodes, run_guarded
from dari.errors import Conflict, DariError, Denied, Failed, InvalidInput, NotFound, TimedOut

REMOTE = ExitCodes({"conflict": 1}, known=(1, 2, 3), other=4)
CRUX = ExitCodes({"not_found": 2, "invalid_input": 1, "conflict": 1, "denied": 1, "needs_approval": 1}, other=3)


@pytest.mark.parametrize(
    "codes, error, code",
    [
        (REMOTE, InvalidInput("x"), 1),
        (REMOTE, Conflict("x"), 1),
        (REMOTE, TimedOut("x"), 2),
        (REMOTE, Failed("x"), 3),
        (REMOTE, ValueError("x"), 4),
        (CRUX, NotFound("x"), 2),
        (CRUX, Denied("x"), 1),
        (CRUX, Failed("x"), 3),
        (CRUX, TimedOut("x"), 3),
        (CRUX, OSError("x"), 3),
    ],
)
def test_each_program_has_exit_codes_of_its_own(codes: ExitCodes, error: BaseException, code: int) -> None:
    assert codes.of(error) == code


def test_an_expected_failure_is_an_error_and_a_hint_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise OSError(errno.ENOSPC, "No space left", "/tmp/x")

    assert run_guarded(fail) == Failed.exit_code
    said = capsys.readouterr().err
    assert said.startswith("error: /tmp/x: ") and "\nhint: " in said and "Traceback" not in said


def test_a_fault_of_ours_is_raised() -> None:
    def fail() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_guarded(fail)


def test_a_reader_that_left_is_not_a_failure() -> None:
    def fail() -> int:
        raise BrokenPipeError

    assert run_guarded(fail) == 0


def test_an_error_of_ours_has_its_exit_code() -> None:
    def fail() -> int:
        raise DariError("x", "y")

    assert run_guarded(fail) == DariError.exit_code


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("program", ["dari.cli.main", "dari.cli.crux.main", "dari.cli.kebab.fast_client"])
def test_a_closed_stream_is_dropped_without_a_traceback(program: str, closed: str) -> None:
    words = f"import sys; from {program} import main; sys.exit(main(['--help']))"
    command = ["sh", "-c", f'"$0" -c "{words}" {closed}', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("usage" in done.stdout.lower()) == (" >&-" not in f" {closed}")
