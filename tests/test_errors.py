"""The error table: every class with its code, its words, its HTTP status and its exit code."""

from __future__ import annotations

import inspect

import pytest

from dari import errors
from dari.errors import DariError

# name of the class, code, name on the wire, what stands before the message, HTTP status, exit code
TABLE = [
    ("DariError", -32004, "failed", "Tool execution failed: ", 500, 3),
    ("Failed", -32004, "failed", "Tool execution failed: ", 500, 3),
    ("InvalidInput", -32602, "invalid_input", "Invalid params: ", 400, 1),
    ("NotFound", -32004, "not_found", "Tool execution failed: ", 404, 1),
    ("Denied", -32001, "denied", "Forbidden: ", 403, 2),
    ("NeedsApproval", -32001, "needs_approval", "Forbidden: ", 403, 2),
    ("Conflict", -32004, "conflict", "Tool execution failed: ", 409, 3),
    ("TimedOut", -32004, "timed_out", "Tool execution failed: ", 504, 2),
    ("Unavailable", -32603, "unavailable", "Internal error: ", 503, 2),
]


def classes() -> dict[str, type[DariError]]:
    found = inspect.getmembers(errors, inspect.isclass)
    return {name: value for name, value in found if value.__module__ == "dari.errors"}


def test_all_names_exactly_the_classes() -> None:
    assert sorted(errors.__all__) == sorted(classes())
    assert sorted(errors.__all__) == sorted(row[0] for row in TABLE), "a new error needs a row in the table"


@pytest.mark.parametrize(("kind", "code", "name", "prefix", "http_status", "exit_code"), TABLE)
def test_each_error_stands_in_the_table(
    kind: str, code: int, name: str, prefix: str, http_status: int, exit_code: int
) -> None:
    error = classes()[kind]("pane 7 does not exist", "list the panes")
    assert (error.code, error.name, error.prefix) == (code, name, prefix)
    assert (error.http_status, error.exit_code) == (http_status, exit_code)
    assert error.wire_message == prefix + "pane 7 does not exist"


@pytest.mark.parametrize("kind", sorted(classes()))
def test_an_error_is_its_message_and_carries_its_hint(kind: str) -> None:
    error = classes()[kind]("the fact", "the next step")
    assert str(error) == error.message == "the fact"
    assert error.hint == "the next step"
    assert classes()[kind]("the fact").hint == ""


def test_every_error_is_caught_as_one_family() -> None:
    assert all(issubclass(kind, DariError) for kind in classes().values())


def test_the_tree_at_the_top_of_the_file_is_the_tree_in_the_file() -> None:
    assert errors.__doc__
    drawn = [line.split()[1] for line in errors.__doc__.splitlines() if "──" in line]
    assert sorted(["DariError", *drawn]) == sorted(errors.__all__)


@pytest.mark.parametrize("kind", sorted(classes()))
def test_a_file_name_that_is_no_utf_8_can_be_told(kind: str) -> None:
    error = classes()[kind]("no file 'caf\udce9'", "look for 'caf\udce9'")
    assert error.message.encode().decode() == r"no file 'caf\udce9'"
    assert error.hint.encode().decode() == r"look for 'caf\udce9'"
    assert classes()[kind]("다리").message == "다리"


@pytest.mark.parametrize("kind", sorted(classes()))
def test_a_whole_file_given_as_a_name_does_not_make_a_message_of_its_size(kind: str) -> None:
    error = classes()[kind](f"there is no file {'한' * 200_000!r}, check it", "y" * 200_000)
    assert len(error.message) <= errors.MAX_MESSAGE_CHARS and len(error.hint) <= errors.MAX_MESSAGE_CHARS
    assert error.message.startswith("there is no file '한") and error.message.endswith("한', check it")
    assert " characters left out) " in error.message
