"""What goes wrong around an ingest: a full disk, a broken or lost index, a store that was restored, resets."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from dari.errors import Unavailable
from dari.knowledge.backend import open_backend
from dari.knowledge.errors import ReadonlyMode, StoreLocked, StoreNewer
from dari.knowledge.ingest import writer
from dari.knowledge.ingest.pipeline import ingest
from dari.knowledge.ingest.reset import reset
from dari.knowledge.ingest.single import ingest_bytes, ingest_file
from dari.knowledge.ingest.writer import open_writer
from dari.knowledge.wire.reports import IngestProgressV1
from tests.support.knowledge_folder import (
    check_consistent,
    found_paths,
    make_settings,
    note,
    opened,
    run,
    unique_word,
    write_old,
)
from tests.support.waiting import PATIENCE_S

# As the command does it, in a process that may not write files above a size: what a full disk looks like without root.
PROGRAM = """
import json, resource, sys
from dari.knowledge.config import load_settings
from dari.knowledge.errors import classify
from dari.knowledge.ingest.pipeline import ingest
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
kinds = []
try:
    ingest(load_settings(None, json.loads(sys.argv[1])), listener=lambda event: kinds.append(event.kind))
    print(json.dumps({"code": "", "kinds": kinds}))
except BaseException as error:
    told = classify(error)
    print(json.dumps({"code": told.code, "message": told.message, "hint": str(told.hint), "kinds": kinds}))
"""


@pytest.mark.parametrize("limit", [60_000, 200_000, 700_000])
def test_a_full_disk_ends_the_ingest_with_a_clear_error_and_loses_nothing(tmp_path: Path, limit: int) -> None:
    environ = {
        "DARI_HOME": str(tmp_path / "home"),
        "KEBAB_WORKSPACE_ROOT": str(tmp_path / "notes"),
        "KEBAB_INGEST_PARSE_PROCESSES": "1",
        "KEBAB_INGEST_BATCH_FILES": "5",
    }
    settings = make_settings(tmp_path, environ)
    write_old(tmp_path / "notes/a.md", note("first"))
    run(settings)
    for number in range(60):
        write_old(tmp_path / f"notes/{number}.md", note(str(number), 12))
    command = [sys.executable, "-c", PROGRAM, msgspec.json.encode(environ).decode(), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=80)
    told = msgspec.json.decode(done.stdout)
    assert told["code"] in ("ingest_fatal", "io_error"), (told, done.stderr)
    assert "disk" in told["message"], told
    assert told["kinds"][-1] == "aborted" or told["kinds"] == []
    assert told["kinds"].count("aborted") <= 1
    with closing(opened(settings)) as store:
        assert store.document_by_path("a.md") is not None
    assert found_paths(settings, unique_word("first")) == ["a.md"]  # search goes on
    assert ingest(settings).errors == 0  # with room again
    assert check_consistent(settings) == 61


def test_an_index_that_was_lost_or_broken_is_built_anew(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    for name in ("a", "b"):
        write_old(tmp_path / f"notes/{name}.md", note(name))
    run(settings)
    shutil.rmtree(settings.data.lexical)
    with open_writer(settings) as writer:
        assert any("behind" in one for one in writer.notes)
    check_consistent(settings)
    (settings.data.lexical / "meta.json").write_text("{")
    report = run(settings)
    assert "built anew" in str(report.recovered)
    check_consistent(settings)
    with open_writer(settings) as writer:
        assert writer.notes == []


def test_traces_of_deleted_chunks_are_purged_and_an_index_that_would_need_them_is_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "KEPT_TOMBSTONE_REVISIONS", 3)
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/stays.md", note("stays"))
    run(settings)

    def count() -> int:
        with closing(sqlite3.connect(settings.data.sqlite)) as database:
            return int(database.execute("SELECT count(*) FROM tombstones").fetchone()[0])

    most = 0
    for turn in range(12):
        write_old(tmp_path / "notes/changes.md", note(f"turn {turn}", 1), age=turn)
        run(settings)
        if turn == 0:
            shutil.copytree(settings.data.lexical, tmp_path / "old index")
        most = max(most, count())
    assert 0 < most < 9, "one for each change would be eleven"
    shutil.rmtree(settings.data.lexical)
    shutil.copytree(tmp_path / "old index", settings.data.lexical)
    assert "built anew" in str(run(settings).recovered)
    assert found_paths(settings, unique_word("turn 0")) == []
    check_consistent(settings)


def test_a_store_that_was_restored_from_a_backup_gets_an_index_of_its_own(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    run(settings)
    shutil.copy(settings.data.sqlite, tmp_path / "backup")
    write_old(tmp_path / "notes/b.md", note("b"))
    run(settings)
    shutil.copy(tmp_path / "backup", settings.data.sqlite)
    with open_writer(settings) as writer:
        assert any("ahead" in one for one in writer.notes)
    assert check_consistent(settings) == 1
    assert run(settings).new == 1
    assert check_consistent(settings) == 2


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    run(settings)
    with closing(sqlite3.connect(settings.data.sqlite)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = settings.data.sqlite.read_bytes()
    with pytest.raises(StoreNewer):
        run(settings)
    assert settings.data.sqlite.read_bytes() == before
    assert reset(settings, "data-only").documents_removed == 0
    assert run(settings).new == 1


def test_resets_forget_what_they_name_and_nothing_else(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    write_old(settings.config_file, "config_version = 1\n")
    run(settings)
    with closing(opened(settings)) as store, store.write() as transaction:
        transaction.put_vectors("m", 4, [1], 1)
    for folder in (settings.data.vectors / "m", settings.data.models / "m"):
        write_old(folder / "file", "x")
    write_old(settings.data.active_model, "{}")
    report = reset(settings, "vector-only")
    assert (report.removed, report.documents_removed) == ((str(settings.data.vectors),), 0)
    with closing(opened(settings)) as store:
        assert (store.vector_models(), store.stats().doc_count) == ([], 1)
    check_consistent(settings)
    assert reset(settings, "config-only").removed == (str(settings.config_file),)
    assert not settings.config_file.exists()
    report = reset(settings, "data-only")
    assert report.documents_removed == 1
    assert report.removed_bytes > 0
    assert sorted(path.name for path in settings.data.data.iterdir()) == ["model.json", "models", "writer.lock"]
    assert run(settings).new == 1
    reset(settings, "all")
    assert [path.name for path in settings.data.data.iterdir()] == ["writer.lock"]
    with pytest.raises(ReadonlyMode):
        reset(make_settings(tmp_path, is_readonly=True), "all")


def test_a_reset_of_orphans_removes_documents_whose_file_or_source_is_gone(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    gone = write_old(tmp_path / "notes/b.md", note("b"))
    write_old(tmp_path / "old/c.md", note("c"))
    run(settings)
    run(settings, tmp_path / "old")
    ingest_bytes(settings, note("d").encode(), "D")
    gone.unlink()
    shutil.rmtree(tmp_path / "old")
    write_old(settings.data.vectors / "unknown/rows", "x")
    report = reset(settings, "orphans-only")
    assert report.documents_removed == 2
    assert sorted(report.removed)[:3] == sorted(["b.md", "old/c.md", str(settings.data.vectors / "unknown")])
    assert check_consistent(settings) == 2
    assert os.listdir(settings.data.vectors) == []


def test_a_server_that_cannot_be_reached_is_an_error_and_nothing_is_written_here_instead(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {"KEBAB_STORE_URL": "postgresql://127.0.0.1:1/kebab"})
    write_old(tmp_path / "notes/a.md", note("a"))
    with pytest.raises(Unavailable):
        run(settings)
    with pytest.raises(Unavailable):
        reset(settings, "data-only")
    assert not settings.data.data.exists()


def may_mount() -> bool:
    """Whether this user may make a mount namespace of his own."""
    try:
        command = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        return subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not may_mount(), reason="a small disk needs a mount namespace")
def test_a_disk_without_room_is_named_as_full_wherever_it_happens(tmp_path: Path) -> None:
    sizes = [330, 700, 1100, 1450]  # the last is enough for the store, not for the index
    command = ["unshare", "-rm", sys.executable, "-m", "tests.support.full_disk", str(tmp_path), *map(str, sizes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=85, cwd=Path(__file__).parents[3])
    lines = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(sizes), done.stderr
    for told in lines:
        print(told)
        assert (told["searched"], told["errors"], told["documents"]) == (True, 0, 61)
        assert told["ends"] in (["aborted"], ["completed"], [])
        if told["code"]:
            assert "disk is full" in told["message"], told
    assert {told["code"] for told in lines} & {"ingest_fatal", "io_error"}


def test_an_ingest_that_waits_for_another_writer_ends_when_it_is_cancelled(tmp_path: Path, either_store: str) -> None:
    settings, cancelled = make_settings(tmp_path), threading.Event()
    write_old(tmp_path / "notes/a.md", note("a"))
    works = [
        lambda: ingest(settings, cancelled=cancelled, wait_s=3600),
        lambda: ingest_file(settings, tmp_path / "notes/a.md", cancelled=cancelled, wait_s=3600),
        lambda: ingest_bytes(settings, b"text", "T", cancelled=cancelled, wait_s=3600),
    ]
    with ThreadPoolExecutor(len(works)) as threads, open_writer(settings):
        waiting = [threads.submit(work) for work in works]
        cancelled.set()
        for one in waiting:
            with pytest.raises(StoreLocked):
                one.result(PATIENCE_S)


@pytest.mark.parametrize("either_store", ["postgres"], indirect=True)
@pytest.mark.xdist_group("postgres")
def test_an_ingest_whose_server_ends_says_what_the_server_said(tmp_path: Path, either_store: str) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    end_writer = "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' AND granted"

    def listen(event: IngestProgressV1) -> None:
        if event.kind == "asset_started":
            with closing(open_backend(settings)) as other:
                other.database.rows(end_writer)  # type: ignore[attr-defined]

    with pytest.raises(Unavailable, match="terminating connection"):
        run(settings, listener=listen)
    assert run(settings).new == 1
