"""What is particular to the store in a file: versions, modes, the lock, foreign files."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dari.knowledge.errors import NotIndexed, ReadonlyMode, StoreDamaged, StoreLocked, StoreNewer
from dari.knowledge.store import schema
from dari.knowledge.store.lock import writer_lock
from dari.knowledge.store.sqlite import make_store, open_store
from tests.support.knowledge_documents import put


def test_the_store_is_readable_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "kebab.sqlite"
    with closing(make_store(path)[0]) as store:
        put(store, "a.md", "a")
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_nothing_to_read_names_the_command_that_ingests(tmp_path: Path) -> None:
    with pytest.raises(NotIndexed) as caught:
        open_store(tmp_path / "kebab.sqlite")
    assert "kebab ingest" in caught.value.hint


def test_a_store_of_a_newer_version_is_refused_by_readers_and_writers(tmp_path: Path) -> None:
    path = tmp_path / "kebab.sqlite"
    make_store(path)[0].close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    for opener in (open_store, make_store):
        with pytest.raises(StoreNewer) as caught:
            opener(path)
        assert caught.value.details == {"store_version": 99, "supported": len(schema.MIGRATIONS)}
    assert path.read_bytes() == before


def test_an_older_store_is_migrated_step_by_step_and_keeps_its_data(tmp_path: Path) -> None:
    path = tmp_path / "kebab.sqlite"
    with closing(make_store(path)[0]) as store:
        put(store, "a.md", "a")
    steps = (*schema.MIGRATIONS, "CREATE TABLE later (x)", "INSERT INTO later VALUES (1)")
    assert schema.make_or_migrate(path, steps) == (1, 3)
    assert schema.make_or_migrate(path, steps) == (3, 3)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT x FROM later").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (1,)


def test_a_step_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kebab.sqlite"
    make_store(path)[0].close()
    with pytest.raises(sqlite3.OperationalError):
        schema.make_or_migrate(path, (*schema.MIGRATIONS, "CREATE TABLE later (x); CREATE TABLE later (x)"))
    assert schema.version_of(path) == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'later'").fetchone() == (0,)


@pytest.mark.parametrize(
    "content", [b"this is not a database, it is a text of some length" * 50, b"SQLite format 3\0" + b"x" * 4080]
)
def test_a_file_that_is_not_a_store_is_named_as_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kebab.sqlite"
    path.write_bytes(content)
    for opener in (open_store, make_store):
        with pytest.raises(StoreDamaged):
            opener(path)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "kebab.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE songs (x); PRAGMA user_version = 1;")
    with pytest.raises(StoreDamaged):
        open_store(path)
    with pytest.raises(StoreDamaged):
        make_store(path)


def test_a_read_only_store_reads_and_refuses_every_write(tmp_path: Path) -> None:
    path = tmp_path / "kebab.sqlite"
    with closing(make_store(path)[0]) as writer:
        put(writer, "a.md", "a")
        with closing(open_store(path, is_readonly=True)) as store:
            assert store.document_by_path("a.md") is not None
            with pytest.raises(ReadonlyMode), store.write():
                pass
            with pytest.raises(ReadonlyMode):
                store.journal.put_turn("s", "q", "q", "{}")


def test_a_read_only_store_needs_no_right_to_write_to_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "data" / "kebab.sqlite"
    path.parent.mkdir()
    with closing(make_store(path)[0]) as writer:
        put(writer, "a.md", "a")
    path.chmod(0o444)
    path.parent.chmod(0o555)
    tmp_path.chmod(0o755)
    program = (
        "import sys; from pathlib import Path; from dari.knowledge.store.sqlite import open_store\n"
        "print(open_store(Path(sys.argv[1]), is_readonly=True).document_by_path('a.md').path)"
    )
    user = {} if os.geteuid() else {"user": 65534, "group": 65534, "extra_groups": []}
    if user and not _may_enter(path.parent):
        user = {}
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, **user)  # type: ignore[call-overload]
    path.parent.chmod(0o755)
    assert done.stdout.strip() == "a.md", done.stderr


def _may_enter(folder: Path) -> bool:
    """Whether another user reaches the folder and the interpreter."""
    program = [sys.executable, "-c", f"import os; os.stat({str(folder)!r}); import dari, msgspec"]
    try:
        return subprocess.run(program, user=65534, group=65534, extra_groups=[], capture_output=True).returncode == 0
    except PermissionError:
        return False


def test_a_second_writer_is_refused_with_the_one_that_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "writer.lock"
    with writer_lock(path):
        with pytest.raises(StoreLocked) as caught, writer_lock(path):
            pass
        assert caught.value.details == {"pid": os.getpid()}
        with pytest.raises(StoreLocked), writer_lock(path, wait_s=0.05):
            pass
    with writer_lock(path):
        pass
