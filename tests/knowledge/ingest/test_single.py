"""Single files and stdin."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from dari.errors import DariError, Denied
from dari.knowledge.backend import open_backend
from dari.knowledge.errors import InvalidArgument
from dari.knowledge.ingest.recovery import remove_orphan_assets
from dari.knowledge.ingest.single import ingest_bytes, ingest_file
from dari.knowledge.ingest.writer import open_writer
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

pytestmark = pytest.mark.usefixtures("either_store")


def test_a_file_of_a_configured_folder_is_indexed_where_it_is(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = write_old(tmp_path / "notes/sub/a.md", note("a"))
    write_old(tmp_path / "notes/b.md", note("b"))
    report = ingest_file(settings, path)
    assert (report.new, report.scanned) == (1, 1)
    assert found_paths(settings, unique_word("a")) == ["sub/a.md"]
    assert ingest_file(settings, path).unchanged == 1
    assert run(settings).new == 1


def test_a_file_from_elsewhere_is_copied_and_keeps_its_origin(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = write_old(tmp_path / "elsewhere/Report.MD", note("r"))
    assert ingest_file(settings, path).new == 1
    with closing(opened(settings)) as store:
        record = store.list_documents()[0]
        assert record.path.startswith("_external/")
        assert record.path.endswith(".md")
        assert len(record.path) == len("_external/") + 12 + 3
        assert (record.title, record.source_uri, record.source_id) == ("Report.MD", path.as_uri(), "_external")
    with closing(open_backend(settings)) as backend:
        assert backend.read_asset(record.asset_id, 10_000) == path.read_bytes()
        assert backend.read_asset(record.asset_id, 10) is None
    if not settings.config.store.url:
        assert settings.data.asset(record.asset_id).stat().st_mode & 0o777 == 0o600
    path.unlink()
    write_old(tmp_path / "notes/a.md", note("a"))
    assert run(settings).removed == 0
    assert found_paths(settings, unique_word("r")) == [record.path]


def test_the_same_text_twice_is_one_document(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    assert ingest_bytes(settings, note("a").encode(), "Title", "https://example.com/a").new == 1
    assert ingest_bytes(settings, note("a").encode(), "Title", "https://example.com/a").unchanged == 1
    assert ingest_bytes(settings, note("a").encode(), "Other title").updated == 1
    assert check_consistent(settings) == 1
    with closing(opened(settings)) as store:
        assert [record.title for record in store.list_documents()] == ["Other title"]


@pytest.mark.parametrize(
    ("data", "title", "extension"),
    [(b"", "t", "md"), (b" \n", "t", "md"), (b"x", " ", "md"), (b"x", "t", "../md"), (b"x" * (9 << 20), "t", "md")],
)
def test_texts_that_cannot_be_indexed_are_refused(tmp_path: Path, data: bytes, title: str, extension: str) -> None:
    with pytest.raises(InvalidArgument):
        ingest_bytes(make_settings(tmp_path), data, title, extension=extension)


def test_secrets_and_unknown_kinds_are_skipped_and_counted(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    assert ingest_file(settings, write_old(tmp_path / "x/.env", "A=1")).skipped_secret == 1
    assert (
        ingest_file(settings, write_old(tmp_path / "x/k.md", "-----BEGIN RSA PRIVATE KEY-----\n")).skipped_secret == 1
    )
    assert ingest_file(settings, write_old(tmp_path / "x/a.xyz", "x")).skipped == 1
    with pytest.raises(InvalidArgument):
        ingest_file(settings, tmp_path / "x")
    with pytest.raises(InvalidArgument):
        ingest_file(settings, tmp_path / "none.md")
    os.mkfifo(tmp_path / "x/pipe.md")
    with pytest.raises((OSError, DariError)):
        ingest_file(settings, tmp_path / "x/pipe.md")


def test_a_copy_without_a_document_is_removed_after_a_kill(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    ingest_bytes(settings, note("a").encode(), "Title")
    with open_writer(settings) as writer:
        writer.backend.put_asset("a" * 32, b"orphan")
        writer.store.journal.begin_run("x")  # of a process that is killed now
    with open_writer(settings) as writer:
        assert any("without a document" in one for one in writer.notes)
        assert remove_orphan_assets(writer) == 0
    assert check_consistent(settings) == 1


def test_a_path_that_was_decided_about_may_not_lead_elsewhere_later(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    secret = write_old(tmp_path / "private/diary.md", note("diary"))
    inside = write_old(tmp_path / "notes/a.md", note("a"))
    assert ingest_file(settings, inside, is_checked=True).new == 1
    assert ingest_file(settings, secret, is_checked=True).new == 1  # a person agreed to this one
    inside.unlink()
    os.symlink(secret, inside)
    os.symlink(tmp_path / "private", tmp_path / "notes/sub")
    for path in (inside, tmp_path / "notes/sub/diary.md"):
        with pytest.raises(Denied):
            ingest_file(settings, path, is_checked=True)
