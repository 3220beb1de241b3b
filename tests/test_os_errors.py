"""What the operating system refuses is an error with a path and a next step, on every edge; a bug stays a bug."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dari.core.registry import Registry
from dari.core.tool import tool
from dari.errors import Conflict, DariError, Denied, Failed, InvalidInput, NotFound, Unavailable
from dari.mcp.error_mapping import to_dari_error
from dari.os_errors import describe_os_error, from_os_error, name_file_in_errors
from dari.paths import make_dirs, write_private

REFUSALS = [
    (errno.ENOSPC, Failed),
    (errno.EDQUOT, Failed),
    (errno.EFBIG, Failed),
    (errno.EROFS, Failed),
    (errno.EIO, Failed),
    (errno.EACCES, Denied),
    (errno.EPERM, Denied),
    (errno.ENAMETOOLONG, InvalidInput),
    (errno.ENOTDIR, InvalidInput),
    (errno.EISDIR, InvalidInput),
    (errno.ELOOP, InvalidInput),
    (errno.ENOENT, NotFound),
    (errno.EEXIST, Conflict),
    (errno.EMFILE, Unavailable),
    (errno.ENFILE, Unavailable),
    (errno.ENOMEM, Unavailable),
]


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """The kernel refuses to let a file of this process grow, as it does on a full disk."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize(("number", "kind"), REFUSALS, ids=lambda value: errno.errorcode.get(value, ""))
def test_an_errno_with_a_path_is_an_error_with_that_path_and_a_next_step(number: int, kind: type[DariError]) -> None:
    told = from_os_error(OSError(number, os.strerror(number), "/somewhere/file"))
    assert type(told) is kind
    assert told.message.startswith("/somewhere/file: ")
    assert told.hint


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE])
def test_a_disk_that_refuses_is_expected_without_a_path_too(number: int) -> None:
    told = from_os_error(OSError(number, os.strerror(number)))
    assert told is not None and told.hint


@pytest.mark.parametrize(
    "bug",
    [ValueError("x"), KeyError("x"), OSError("no number"), OSError(errno.EINVAL, "x"), TimeoutError(), OSError(2, "x")],
)
def test_a_bug_stays_a_bug(bug: Exception) -> None:
    assert from_os_error(bug) is None
    assert "bug in the tool" in to_dari_error(bug, "a test").hint


def test_a_real_write_that_fails_names_the_file_and_not_its_draft(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    write_private(path, b"old")
    with files_of_at_most(1000), pytest.raises(OSError) as caught:
        write_private(path, b"x" * 5000)
    told = from_os_error(caught.value)
    assert told is not None and told.message == f"{path}: {describe_os_error(caught.value)}"
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["kept.json"]


def test_a_device_that_is_full_is_told_by_its_name() -> None:
    with (
        pytest.raises(OSError) as caught,
        name_file_in_errors("/dev/full"),
        open("/dev/full", "wb", buffering=0) as full,
    ):
        full.write(b"x")
    assert str(from_os_error(caught.value)) == "/dev/full: the disk is full"


def test_a_database_on_a_full_disk_is_told_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("CREATE TABLE kept (text)")
    database.execute("PRAGMA max_page_count = 3")
    with pytest.raises(sqlite3.OperationalError) as caught, name_file_in_errors(path):
        for _ in range(100):
            database.execute("INSERT INTO kept VALUES (?)", ("x" * 4000,))
    database.close()
    told = from_os_error(caught.value)
    assert isinstance(told, Failed)
    assert told.message.startswith(f"{path}: the disk is full")


def test_a_database_that_only_says_something_wrong_is_a_bug(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "kept.db")
    with pytest.raises(sqlite3.OperationalError) as caught:
        database.execute("SELEC nothing")
    database.close()
    assert from_os_error(caught.value) is None


class Writing:
    """A tool that writes, and handles nothing."""

    prefix = "test"

    def __init__(self, path: Path) -> None:
        self._path = path

    @tool()
    async def keep(self) -> str:
        """Write the file; returns `done`."""
        write_private(self._path, b"x" * 5000)
        return "done"


async def test_a_tool_that_handles_nothing_tells_the_path_and_what_to_do(tmp_path: Path) -> None:
    registry = Registry()
    registry.add_toolkit(Writing(tmp_path / "kept"))
    with files_of_at_most(1000), pytest.raises(OSError) as caught:
        await registry.tools["test_keep"].run(b"{}", None)  # type: ignore[arg-type]
    told = to_dari_error(caught.value, "test_keep failed")
    assert str(tmp_path / "kept") in told.message and "the disk is full" in told.message
    assert "bug" not in told.hint and "free some space" in told.hint


def test_a_name_that_is_not_utf8_is_told_escaped() -> None:
    told = from_os_error(OSError(errno.ENOSPC, "x", b"/a/\xff"))
    assert told is not None and "\\udcff" in told.message


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize("words", [("dari", "doctor"), ("dari", "--help"), ("dari.cli.crux.main", "--help")])
def test_a_command_whose_output_cannot_be_written_says_so_without_a_traceback(words: tuple[str, ...]) -> None:
    import subprocess

    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", *words], stdout=full, stderr=-1, text=True, env=environment)
    assert done.returncode not in (0, 120)
    assert "the disk is full\nhint: " in done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_a_read_only_place_is_answered_with_another_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(tmp_path / "x"))

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(Failed) as caught:
        make_dirs(tmp_path / "x")
    assert "read-only" in caught.value.message and "DARI_HOME" in caught.value.hint


def test_a_log_on_a_full_disk_loses_its_line_and_prints_no_traceback() -> None:
    program = (
        "import logging; from dari.log import configure_logging; configure_logging(); "
        "log = logging.getLogger('dari'); log.addHandler(logging.FileHandler('/dev/full')); log.info('a line')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr.count("\n") == 1 and done.stderr.endswith("INFO a line\n"), done.stderr
