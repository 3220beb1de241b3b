"""Changes on disk reach the index by themselves."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from dari.errors import DariError
from dari.knowledge.config import Source
from dari.knowledge.errors import InvalidArgument
from dari.knowledge.ingest.pipeline import IngestScope
from dari.knowledge.ingest.watch import MAX_PATHS, scopes_of, watch
from dari.knowledge.ingest.writer import open_writer
from dari.knowledge.wire.reports import IngestReportV1
from tests.support.knowledge_folder import check_consistent, found_paths, make_settings, note, unique_word, write_old
from tests.support.waiting import wait_until


def test_changed_paths_are_looked_at_alone_and_ignore_files_mean_all(tmp_path: Path) -> None:
    outer, inner = Source(id="default", root=tmp_path), Source(id="inner", root=tmp_path / "in")
    roots = {str(tmp_path): outer, str(tmp_path / "in"): inner}
    paths = [f"{tmp_path}/a.md", f"{tmp_path}/in/b.md", f"{tmp_path}/.git/index", "/elsewhere/c.md"]
    assert scopes_of(paths, roots) == [IngestScope(outer, ("a.md",)), IngestScope(inner, ("b.md",))]
    assert scopes_of([f"{tmp_path}/sub/.gitignore"], roots) == [IngestScope(outer)]
    assert scopes_of([f"{tmp_path}/{number}.md" for number in range(MAX_PATHS + 1)], roots) == [IngestScope(outer)]
    assert scopes_of([f"{tmp_path}/.git/x"], roots) == []


def test_files_that_come_change_move_and_go_are_followed_until_it_is_stopped(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {"KEBAB_INGEST_WATCH_DEBOUNCE_MS": "100"})
    write_old(tmp_path / "notes/a.md", note("a"))
    stopped, ready = threading.Event(), threading.Event()
    reports: list[IngestReportV1] = []
    errors: list[DariError] = []
    thread = threading.Thread(
        target=watch,
        args=(settings,),
        kwargs={"stopped": stopped, "on_report": reports.append, "on_error": errors.append, "on_ready": ready.set},
    )
    thread.start()
    try:
        assert ready.wait(60)
        assert reports[0].new == 1
        (tmp_path / "notes/b.md").write_text(note("b"))
        wait_until(lambda: found_paths(settings, unique_word("b")) == ["b.md"])
        os.rename(tmp_path / "notes/b.md", tmp_path / "notes/c.md")
        wait_until(lambda: found_paths(settings, unique_word("b")) == ["c.md"])
        (tmp_path / "notes/.kebabignore").write_text("a.md\n")
        wait_until(lambda: found_paths(settings, unique_word("a")) == [])
        (tmp_path / "notes/c.md").unlink()
        wait_until(lambda: found_paths(settings, unique_word("b")) == [])
    finally:
        stopped.set()
        thread.join()
    assert errors == []
    check_consistent(settings)


def test_whoever_hears_of_an_ingest_may_write_to_the_store(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    stopped = threading.Event()
    errors: list[DariError] = []
    written: list[int] = []

    def make_vectors(report: IngestReportV1) -> None:
        with open_writer(settings, 0.0):
            written.append(report.new)

    watch(settings, stopped=stopped, on_report=make_vectors, on_error=errors.append, on_ready=stopped.set)
    assert errors == []
    assert written == [1]


def test_a_store_that_cannot_be_opened_for_a_while_does_not_end_the_watch(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {"KEBAB_INGEST_WATCH_DEBOUNCE_MS": "100"})
    write_old(tmp_path / "notes/a.md", note("a"))
    stopped, ready = threading.Event(), threading.Event()
    errors: list[DariError] = []
    thread = threading.Thread(
        target=watch,
        args=(settings,),
        kwargs={"stopped": stopped, "on_report": lambda _: None, "on_error": errors.append, "on_ready": ready.set},
    )
    thread.start()
    try:
        assert ready.wait(60)
        aside = settings.data.sqlite.rename(tmp_path / "aside")
        settings.data.sqlite.mkdir()
        (tmp_path / "notes/b.md").write_text(note("b"))
        wait_until(lambda: bool(errors))
        settings.data.sqlite.rmdir()
        aside.rename(settings.data.sqlite)
        (tmp_path / "notes/c.md").write_text(note("c"))
        wait_until(lambda: found_paths(settings, unique_word("c")) == ["c.md"])
        assert found_paths(settings, unique_word("b")) == ["b.md"]  # what the failed run was to index
    finally:
        stopped.set()
        thread.join()


def test_watching_nothing_is_refused(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {"KEBAB_WORKSPACE_ROOT": ""})
    with pytest.raises(InvalidArgument):
        watch(settings, stopped=threading.Event(), on_report=lambda _: None, on_error=lambda _: None)
