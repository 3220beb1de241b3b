"""One classifier from failures to `error.v1`."""

from __future__ import annotations

import errno
import json
import sqlite3
from pathlib import Path

import pytest
from msgspec import UNSET

from dari import errors as dari_errors
from dari.knowledge import errors
from dari.knowledge.errors import classify, codes
from dari.knowledge.wire.schemas import schema_text


def test_the_published_enum_and_the_code_agree() -> None:
    published = json.loads(schema_text("error.v1"))["properties"]["code"]["enum"]
    assert sorted(codes()) == sorted(published)


def test_no_two_classes_share_a_code() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__module__ == errors.__name__]
    named = [kind.wire_code for kind in kinds]
    assert sorted(named) == sorted(set(named))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigInvalid("bad"), "config_invalid"),
        (errors.ModelNotInstalled("not here"), "model_not_pulled"),
        (errors.StoreLocked("pid 4 writes"), "store_locked"),
        (dari_errors.InvalidInput("k"), "invalid_input"),
        (dari_errors.NotFound("x"), "not_found"),
        (dari_errors.NeedsApproval("x"), "needs_approval"),
        (dari_errors.Denied("x"), "denied"),
        (dari_errors.Conflict("x"), "conflict"),
        (dari_errors.TimedOut("x"), "timeout"),
        (dari_errors.Unavailable("x"), "unavailable"),
        (dari_errors.Failed("x"), "generic"),
        (TimeoutError(), "timeout"),
        (OSError(errno.ENOSPC, "No space left", "/data"), "io_error"),
        (PermissionError(errno.EACCES, "denied", "/data"), "io_error"),
        (ValueError("a bug"), "generic"),
    ],
)
def test_a_failure_has_its_code(error: Exception, code: str) -> None:
    assert classify(error).code == code


def test_a_hint_and_details_are_kept() -> None:
    shown = classify(errors.DocNotFound("no document", "kebab list docs", doc_id="abc"))
    assert (shown.hint, shown.details) == ("kebab list docs", {"doc_id": "abc"})


def test_a_failure_without_a_next_step_has_no_hint() -> None:
    assert classify(errors.DocNotFound("no document")).hint is UNSET


def test_an_approval_has_its_id_in_the_details() -> None:
    assert classify(dari_errors.NeedsApproval("ingest waits (approval ab12cd34)")).details == {
        "approval_id": "ab12cd34"
    }


def test_a_bug_says_what_it_was_and_where_to_look() -> None:
    shown = classify(KeyError("gone"))
    assert shown.message == "KeyError: 'gone'"
    assert shown.hint


def test_a_locked_and_a_damaged_database_are_told_apart(tmp_path: Path) -> None:
    damaged = tmp_path / "kebab.sqlite"
    damaged.write_bytes(b"not a database" * 100)
    with pytest.raises(sqlite3.DatabaseError) as caught:
        sqlite3.connect(damaged).execute("select 1 from x")
    assert classify(caught.value).code == "store_damaged"
    path = tmp_path / "locked.sqlite"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("begin exclusive")
    with pytest.raises(sqlite3.OperationalError) as busy:
        sqlite3.connect(path, timeout=0).execute("create table x (y)")
    assert classify(busy.value).code == "store_locked"
    holder.close()


def test_a_secret_in_a_message_is_hidden() -> None:
    key = "sk-" + "proj-" + "a1B2c3D4" * 5
    assert key not in classify(dari_errors.Failed(f"the server refused {key}")).message


def test_a_package_that_is_not_installed_is_named_with_the_extra_that_brings_it() -> None:
    error = ModuleNotFoundError("No module named 'tantivy'", name="tantivy.query")
    shown = classify(error)
    assert (shown.code, errors.is_bug(error)) == ("unavailable", False)
    assert "tantivy" in shown.message
    assert "knowledge]" in str(shown.hint)


def test_a_missing_module_of_our_own_is_a_bug() -> None:
    error = ModuleNotFoundError("No module named 'dari.nope'", name="dari.nope")
    assert (classify(error).code, errors.is_bug(error)) == ("generic", True)
