"""An ingest over real files, with the real parser processes, store and index."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from dari.knowledge.config import IngestSettings, Settings, Source
from dari.knowledge.document import ParsedDocument
from dari.knowledge.errors import IngestFatal, InvalidArgument, ReadonlyMode, StoreLocked
from dari.knowledge.ingest.walk import Walk
from dari.knowledge.ingest.writer import open_writer
from dari.knowledge.parse import ParseFailed, ParserPool
from dari.knowledge.service import KnowledgeService
from dari.knowledge.store.records import DocumentFilter
from dari.knowledge.wire.reports import TERMINAL_KINDS, IngestProgressV1
from tests.support.documents import pdf
from tests.support.knowledge_folder import (
    check_consistent,
    events_of,
    found_paths,
    make_settings,
    note,
    opened,
    run,
    unique_word,
    write_old,
)

pytestmark = pytest.mark.usefixtures("either_store")


def test_a_folder_is_found_after_its_first_ingest(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    write_old(tmp_path / "notes/deep/b.txt", note("b"))
    report = run(settings)
    assert (report.scanned, report.new, report.errors, report.aborted) == (2, 2, 0, False)
    assert found_paths(settings, unique_word("b")) == ["deep/b.txt"]
    assert check_consistent(settings) == 2
    with closing(opened(settings)) as store:
        record = store.document_by_path("deep/b.txt")
        assert record is not None
        assert (record.source_id, record.media, record.modified_at) == ("default", "text", "2023-11-14T22:13:20.000Z")
        assert store.blocks_of(record.doc_no)


def test_a_second_ingest_opens_no_file_that_is_as_it_was(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = write_old(tmp_path / "notes/a.md", note("a"))
    run(settings)
    with closing(opened(settings)) as store:
        revision = store.revision()
        path.write_bytes(note("z").encode())  # the same size at the same time: it could only be seen by opening it
        os.utime(path, (1_700_000_000, 1_700_000_000))
        assert (run(settings).unchanged, store.revision()) == (1, revision)
        assert run(settings, force=True).updated == 1
    assert found_paths(settings, unique_word("z")) == ["a.md"]


def test_a_file_that_was_written_just_now_is_looked_at_again(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = tmp_path / "notes/a.md"
    path.write_text(note("a"))
    run(settings)
    info = path.stat()
    path.write_text(note("z"))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert run(settings).updated == 1


def test_a_change_keeps_the_numbers_of_passages_that_did_not_change(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = write_old(tmp_path / "notes/a.md", note("a", 3))
    run(settings)
    with closing(opened(settings)) as store:
        before = {chunk.text: chunk.chunk_no for chunk in store.chunks(store.chunk_nos_of(DocumentFilter())).values()}
        write_old(path, note("a", 3) + "\n# New\n\nSomething else.\n", age=-5)
        assert run(settings).updated == 1
        after = {chunk.text: chunk.chunk_no for chunk in store.chunks(store.chunk_nos_of(DocumentFilter())).values()}
    assert set(before.items()) < set(after.items())
    check_consistent(settings)


def test_the_same_content_with_a_new_time_is_unchanged_and_its_time_is_noted(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = write_old(tmp_path / "notes/a.md", note("a"))
    run(settings)
    write_old(path, note("a"), age=-100)
    events, report = events_of(settings)
    assert report.unchanged == 1
    assert [event.outcome for event in events if event.kind == "asset_finished"] == ["unchanged"]
    events, report = events_of(settings)
    assert [event.kind for event in events] == ["scan_started", "scan_completed", "completed"]


def test_a_renamed_file_keeps_its_chunks_and_gets_the_ids_that_a_new_ingest_would_give(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = write_old(tmp_path / "notes/old.md", note("a", 3))
    run(settings)
    with closing(opened(settings)) as store:
        numbers = store.chunk_nos_of(DocumentFilter())
        with store.write() as transaction:
            transaction.put_vectors("m", 4, numbers, len(numbers))
        (tmp_path / "notes/new").mkdir()
        path.rename(tmp_path / "notes/new/name.md")
        report = run(settings)
        assert (report.renamed, report.new, report.removed) == (1, 0, 0)
        assert store.chunk_nos_of(DocumentFilter()) == numbers
        assert store.pending_chunks("m", 9) == []  # nothing to embed again
        record = store.document_by_path("new/name.md")
        assert record is not None
        moved = [chunk.chunk_id for chunk in store.chunks_of(record.doc_no)]
    assert found_paths(settings, unique_word("a")) == ["new/name.md"]
    assert found_paths(settings, "name") != []
    check_consistent(settings)
    fresh = make_settings(tmp_path, {"DARI_HOME": str(tmp_path / "other")})
    run(fresh)
    with closing(opened(fresh)) as store:
        again = store.document_by_path("new/name.md")
        assert again is not None
        assert again.doc_id == record.doc_id
        assert [chunk.chunk_id for chunk in store.chunks_of(again.doc_no)] == moved


def two_sources(tmp_path: Path, trust: str = "primary") -> Settings:
    (tmp_path / "work").mkdir(exist_ok=True)
    config = tmp_path / "two.toml"
    config.write_text(
        f'config_version = 1\n[[sources]]\nid = "work"\nroot = "{tmp_path}/work"\ntrust_level = "{trust}"\n'
    )
    return make_settings(tmp_path, {"KEBAB_CONFIG": str(config)})


def test_a_code_file_that_is_renamed_is_called_by_its_new_name(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    old = write_old(tmp_path / "notes/old.py", "def work():\n    return 1\n")
    run(settings)
    old.rename(tmp_path / "notes/new.py")
    assert run(settings).renamed == 1
    with closing(opened(settings)) as store:
        record = store.document_by_path("new.py")
        assert record is not None and record.title == "new.py"


def test_a_pdf_under_another_name_is_not_read_again(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/download.html", pdf(["some words"]))
    assert run(settings).new == 1
    report = run(settings)
    assert (report.updated, report.unchanged) == (0, 1)


@pytest.mark.parametrize("is_back", [False, True])
def test_a_file_that_moves_between_two_sources_keeps_its_vectors(tmp_path: Path, is_back: bool) -> None:
    settings = two_sources(tmp_path, "secondary")
    here, there = tmp_path / "notes/a.md", tmp_path / "work/deep/b.md"
    if is_back:
        here, there = there, here
    for other in ("notes/stays.md", "work/stays.md"):
        write_old(tmp_path / other, note(other))
    write_old(here, note("a", 3))
    run(settings)
    there.parent.mkdir(parents=True, exist_ok=True)
    with closing(opened(settings)) as store:
        with store.write() as transaction:
            transaction.put_vectors("m", 4, numbers := store.chunk_nos_of(DocumentFilter()), len(numbers))
        here.rename(there)
        report = run(settings)
        assert (report.new, report.renamed, report.removed) == ((1, 0, 1) if is_back else (0, 1, 0))
        path = "a.md" if is_back else "work/deep/b.md"
        record = store.document_by_path(path)
        assert record is not None
        # Into a source of more trust a document does not carry less than it has there: it is parsed again.
        assert record.trust_level == ("primary" if is_back else "secondary")
        assert record.source_id == ("default" if is_back else "work")
        assert bool(store.pending_chunks("m", 9)) == is_back
    assert found_paths(settings, unique_word("a")) == [path]
    check_consistent(settings)


def test_a_folder_that_is_away_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    settings = two_sources(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    write_old(tmp_path / "work/b.md", note("b"))
    run(settings)
    (tmp_path / "notes").rename(tmp_path / "unmounted")
    write_old(tmp_path / "work/c.md", note("c"))
    with pytest.raises(IngestFatal, match="notes"):
        run(settings)
    assert found_paths(settings, unique_word("c")) == ["work/c.md"]
    assert found_paths(settings, unique_word("a")) == ["a.md"], "its documents are kept"
    check_consistent(settings)


def test_a_file_that_was_moved_and_changed_or_copied_is_no_rename(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = write_old(tmp_path / "notes/a.md", note("a"))
    run(settings)
    write_old(tmp_path / "notes/copy.md", note("a"))
    assert run(settings).new == 1
    path.unlink()
    write_old(tmp_path / "notes/b.md", note("b"))
    report = run(settings)
    assert (report.new, report.removed, report.renamed) == (1, 1, 0)
    (tmp_path / "notes/b.md").rename(tmp_path / "notes/b.txt")  # another parser reads it now
    report = run(settings)
    assert (report.new, report.removed, report.renamed) == (1, 1, 0)


def test_two_files_that_change_places_are_both_updated(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"), age=10)
    write_old(tmp_path / "notes/b.md", note("b"), age=20)
    run(settings)
    write_old(tmp_path / "notes/a.md", note("b"), age=20)
    write_old(tmp_path / "notes/b.md", note("a"), age=10)
    assert run(settings).updated == 2
    assert found_paths(settings, unique_word("a")) == ["b.md"]
    check_consistent(settings)


def test_deleted_files_and_newly_ignored_ones_go(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    for name in ("a.md", "b.md", "c.md"):
        write_old(tmp_path / "notes" / name, note(name))
    run(settings)
    (tmp_path / "notes/a.md").unlink()
    write_old(tmp_path / "notes/.kebabignore", "b.md\n")
    report = run(settings)
    assert (report.removed, report.skipped_kebabignore, report.unchanged) == (2, 1, 1)
    assert found_paths(settings, unique_word("a.md")) == []
    assert check_consistent(settings) == 1


def test_an_empty_folder_is_not_believed_to_have_lost_everything(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    path = write_old(tmp_path / "notes/a.md", note("a"))
    run(settings)
    path.unlink()
    with pytest.raises(IngestFatal):
        run(settings)
    (tmp_path / "notes").rmdir()
    with pytest.raises(IngestFatal) as caught:
        run(settings)
    assert "mounted" in caught.value.hint
    with closing(opened(settings)) as store:
        assert store.document_by_path("a.md") is not None
        assert [one.status for one in store.journal.ingest_runs()] == ["failed", "failed", "completed"]


@contextmanager
def _ordinary_user() -> Iterator[Path]:
    """A home of a user whom modes bind: root, whom none does, becomes nobody for as long."""
    is_root = os.geteuid() == 0
    home = Path(tempfile.mkdtemp(prefix="kebab-"))
    try:
        if is_root:
            os.chown(home, 65534, 65534)
            os.seteuid(65534)
        yield home
    finally:
        if is_root:
            os.seteuid(0)
        shutil.rmtree(home)


@pytest.mark.parametrize("mode", [0, 0o400], ids=["not listed", "listed without a look at what is listed"])
def test_documents_of_a_folder_that_cannot_be_read_are_kept(mode: int) -> None:
    with _ordinary_user() as home:
        settings = make_settings(home)
        write_old(home / "notes/closed/a.md", note("a"))
        write_old(home / "notes/closed/deep/c.md", note("c"))
        write_old(home / "notes/b.md", note("b"))
        run(settings)
        (home / "notes/closed").chmod(mode)
        try:
            assert run(settings).removed == 0
        finally:
            (home / "notes/closed").chmod(0o700)


def test_a_file_without_extension_that_cannot_be_opened_is_unreadable_not_foreign() -> None:
    """It is opened to see what it is; one that was foreign would be deleted from the index."""
    with _ordinary_user() as home:
        write_old(home / "notes/deploy", "#!/bin/sh\necho numbat\n").chmod(0)
        walk = Walk(Source(id="default", root=home / "notes"), IngestSettings())
        assert list(walk.files()) == []
        assert (list(walk.unreadable), walk.skips.total) == (["deploy"], 0)


def test_a_folder_whose_ignore_file_cannot_be_read_stays_as_it_is_known_and_is_named() -> None:
    """Nobody knows what the file keeps out: nothing new is read, and nothing is forgotten."""
    with _ordinary_user() as home:
        settings = make_settings(home)
        write_old(home / "notes/closed/a.md", note("a"))
        write_old(home / "notes/b.md", note("b"))
        ignore = write_old(home / "notes/closed/.gitignore", "private.md\n")
        run(settings)
        write_old(home / "notes/closed/private.md", note("private"))
        ignore.chmod(0)
        report = run(settings)
        assert (report.new, report.removed, report.unchanged, report.errors) == (0, 0, 1, 1)
        (failed,) = [item for item in report.items or () if item.kind == "error"]
        assert failed.doc_path == "closed" and ".gitignore" in str(failed.error)
        ignore.chmod(0o600)
        assert (run(settings).new, run(settings).errors) == (0, 0)


def test_a_source_whose_own_ignore_file_cannot_be_read_is_not_indexed() -> None:
    with _ordinary_user() as home:
        settings = make_settings(home)
        write_old(home / "notes/a.md", note("a"))
        write_old(home / "notes/.kebabignore", "private.md\n").chmod(0)
        with pytest.raises(IngestFatal, match="kebabignore"):
            run(settings)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_what_is_no_file_is_no_ignore_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/deep/a.md", note("a"))
    make(tmp_path / "notes/deep/.gitignore")
    assert (run(settings).new, run(settings).errors) == (1, 0)


def test_files_that_the_settings_leave_out_have_a_field_of_their_own(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    for name in ("a.md", "b.txt", "drafts/c.md"):
        write_old(tmp_path / "notes" / name, note(name))
    config = settings.config
    workspace = replace(config.workspace, include=("*.md",), exclude=("drafts/",))
    report = run(replace(settings, config=replace(config, workspace=workspace)))
    assert (report.new, report.skipped, report.skipped_excluded) == (1, 2, 2)


def test_a_file_that_cannot_be_parsed_costs_that_file_only_and_is_not_tried_twice(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    write_old(tmp_path / "notes/bad.pdf", b"%PDF-1.4\nthis is not a pdf at all")
    events, report = events_of(settings)
    assert (report.new, report.errors) == (1, 1)
    assert [event.doc_path for event in events if event.kind == "asset_failed"] == ["bad.pdf"]
    events, report = events_of(settings)
    assert report.errors == 1
    assert [event.doc_path for event in events if event.kind == "asset_started"] == []
    with closing(opened(settings)) as store:
        assert [failure.path for failure in store.failures()] == ["bad.pdf"]
        (tmp_path / "notes/bad.pdf").unlink()
        run(settings)
        assert store.failures() == []


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parser's reason to fail for `slow.md`, while there is one."""
    parse, reasons = ParserPool.parse_bytes, []

    def parse_bytes(pool: ParserPool, data: bytes, doc_path: str) -> ParsedDocument:
        if reasons and doc_path == "slow.md":
            raise ParseFailed(reasons[0], f"{doc_path} was not parsed within {pool.limits.max_wall_s:g} s")  # type: ignore[arg-type]
        return parse(pool, data, doc_path)

    monkeypatch.setattr(ParserPool, "parse_bytes", parse_bytes)
    return reasons


def _said(settings: Settings, **options: object) -> tuple[bool, str]:
    """Whether the slow file was tried, and what the report says of it."""
    events, report = events_of(settings, **options)
    tried = any(event.kind == "asset_started" and event.doc_path == "slow.md" for event in events)
    return tried, next((str(item.error) for item in report.items or () if item.kind == "error"), "")


@pytest.mark.parametrize("reason", ["timeout", "crashed"])
def test_a_file_whose_parser_was_late_or_died_is_tried_by_the_next_ingests(
    tmp_path: Path, busy: list[str], reason: str
) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/slow.md", note("slow"))
    busy.append(reason)
    tried, said = _said(settings)
    assert tried and "attempt 1 of 3, the next ingest tries it again" in said
    busy.clear()
    assert _said(settings) == (True, "")
    assert found_paths(settings, unique_word("slow")) == ["slow.md"]
    with closing(opened(settings)) as store:
        assert store.failures() == []


def test_a_file_that_is_never_parsed_in_time_is_left_after_three_attempts_until_the_limits_change(
    tmp_path: Path, busy: list[str]
) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/slow.md", note("slow"))
    busy.append("timeout")
    assert [_said(settings)[0] for _ in range(4)] == [True, True, True, False]
    assert "3 attempts failed" in _said(settings)[1] and "parse_timeout_s" in _said(settings)[1]
    assert _said(settings, force=True)[0]
    patient = make_settings(tmp_path, {"KEBAB_INGEST_PARSE_TIMEOUT_S": "90"})
    tried, said = _said(patient)
    assert tried and "within 90 s; attempt 1 of 3" in said


def test_a_file_that_needed_too_much_memory_is_tried_again_when_it_may_have_more(
    tmp_path: Path, busy: list[str]
) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/slow.md", note("slow"))
    busy.append("memory")
    assert [_said(settings)[0] for _ in range(2)] == [True, False]
    assert _said(make_settings(tmp_path, {"KEBAB_INGEST_PARSE_MEMORY_BYTES": str(2 << 30)}))[0]


def test_secrets_and_keys_under_other_names_are_counted_and_never_read_into_the_store(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    write_old(tmp_path / "notes/.env", "PASSWORD=hunter2")
    write_old(tmp_path / "notes/.ssh/config.txt", "hunter2")
    write_old(tmp_path / "notes/harmless.txt", "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n")
    report = run(settings)
    assert (report.new, report.skipped_secret) == (1, 3)
    assert not isinstance(report.skip_examples, type(None))
    with closing(opened(settings)) as store:
        assert [record.path for record in store.list_documents()] == ["a.md"]
        assert "hunter2" not in "".join(row.text + row.title_text for row in store.changes_since(0).added)
    if not settings.config.store.url:
        assert not [path for path in settings.data.data.glob("kebab.sqlite*") if b"hunter2" in path.read_bytes()]


def test_the_events_begin_with_the_scan_and_end_with_one_terminal_event(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    for number in range(5):
        write_old(tmp_path / f"notes/{number}.md", note(str(number)))
    events, report = events_of(settings)
    assert events[0].kind == "scan_started"
    assert [event.kind for event in events if event.kind in TERMINAL_KINDS] == ["completed"]
    assert events[-1].report == report
    assert [event.done for event in events if event.kind == "asset_finished"] == [1, 2, 3, 4, 5]
    assert {event.total for event in events if event.kind == "asset_finished"} == {5}


def test_a_cancelled_ingest_keeps_what_it_wrote_and_the_next_one_goes_on(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {"KEBAB_INGEST_BATCH_FILES": "1"})
    for number in range(40):
        write_old(tmp_path / f"notes/{number:02}.md", note(str(number)))
    cancelled = threading.Event()
    kinds: list[str] = []

    def listen(event: IngestProgressV1) -> None:
        kinds.append(event.kind)
        if event.kind == "asset_finished" and event.done == 3:
            cancelled.set()

    report = run(settings, listener=listen, cancelled=cancelled)
    assert report.aborted
    assert kinds[-1] == "aborted"
    assert 3 <= report.new < 40
    assert check_consistent(settings) == report.new
    with closing(opened(settings)) as store:
        assert store.journal.ingest_runs()[0].status == "aborted"
    rest = run(settings)
    assert rest.new == 40 - report.new
    assert check_consistent(settings) == 40


def test_two_ingests_at_once_are_one_and_a_refusal_that_names_the_holder(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    with open_writer(settings):
        with pytest.raises(StoreLocked) as caught:
            run(settings)
        assert caught.value.details == {"pid": os.getpid()}
    results: list[object] = []

    def work() -> None:
        results.append(run(settings, wait_s=60.0))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    assert check_consistent(settings) == 1


def test_read_only_settings_refuse_an_ingest(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, is_readonly=True)
    with pytest.raises(ReadonlyMode):
        run(settings)
    assert not settings.data.data.exists()


def test_a_named_source_has_paths_with_its_id_and_its_own_trust(tmp_path: Path) -> None:
    write_old(tmp_path / "work/x.md", note("x"))
    config = tmp_path / "config.toml"
    config.write_text(
        f'config_version = 1\n[[sources]]\nid = "work"\nroot = "{tmp_path}/work"\n'
        'trust_level = "secondary"\ntype = "paper"\n'
    )
    settings = make_settings(tmp_path, {"KEBAB_CONFIG": str(config)})
    write_old(tmp_path / "notes/work/x.md", note("y"))  # a folder of the default source with the name of the other
    report = run(settings)
    assert (report.new, report.errors) == (1, 1)
    with closing(opened(settings)) as store:
        record = store.list_documents(DocumentFilter(path_glob="work/x.md"))[0]
        assert record.source_id in ("default", "work")
        assert [one.path for one in store.list_documents(DocumentFilter(source_ids=("nowhere",)))] == []


def test_a_root_that_no_configuration_names_is_remembered(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {"KEBAB_WORKSPACE_ROOT": ""})
    with pytest.raises(InvalidArgument):
        run(settings)
    write_old(tmp_path / "My Books/one.md", note("one"))
    write_old(tmp_path / "My Books/in/two.md", note("two"))
    assert run(settings, tmp_path / "My Books").new == 2
    assert found_paths(settings, unique_word("one")) == ["my-books/one.md"]
    write_old(tmp_path / "My Books/in/three.md", note("three"))
    (tmp_path / "My Books/one.md").unlink()
    report = run(settings, tmp_path / "My Books/in")  # a part: what is outside it is left alone
    assert (report.new, report.removed, report.unchanged) == (1, 0, 1)
    assert run(settings).removed == 1
    assert check_consistent(settings) == 2


def test_a_source_inside_another_one_is_indexed_once(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'config_version = 1\n[[sources]]\nid = "inner"\nroot = "{tmp_path}/notes/deep/inner"\n')
    settings = make_settings(tmp_path, {"KEBAB_CONFIG": str(config)})
    write_old(tmp_path / "notes/deep/inner/a.md", note("a"))
    write_old(tmp_path / "notes/b.md", note("b"))
    run(settings)
    with closing(opened(settings)) as store:
        assert [one.path for one in store.list_documents()] == ["b.md", "inner/a.md"]


def test_new_chunking_settings_make_every_document_anew(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    run(settings)
    changed = make_settings(tmp_path, {"KEBAB_CHUNKING_TARGET_TOKENS": "200"})
    assert run(changed).updated == 1
    assert run(changed).unchanged == 1
    check_consistent(changed)


def test_kebabs_own_data_inside_a_root_is_not_indexed(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {"DARI_HOME": str(tmp_path / "notes/home")})
    write_old(tmp_path / "notes/a.md", note("a"))
    run(settings)
    write_old(settings.data.data / "stray.md", "# stray\n")
    assert run(settings).new == 0


def test_lines_of_a_remembered_folder_are_fetched_from_its_file(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {"KEBAB_WORKSPACE_ROOT": ""})
    write_old(tmp_path / "books/one.md", "---\ntitle: First\n---\n\n# One\n\ntext\n")
    run(settings, tmp_path / "books")
    with closing(KnowledgeService(settings)) as service:
        assert service.fetch(doc_id="books/one.md", line_start=2, line_end=2).text == "title: First"
