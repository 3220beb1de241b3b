"""What every store promises (`dari.knowledge.store.store`)."""

from __future__ import annotations

import random
import string
import threading
from collections.abc import Callable

import pytest

from dari.errors import Conflict
from dari.knowledge.document import Location
from dari.knowledge.store.records import AnswerRecord, DocumentFilter, EvalRunRecord, FileFailure, utc_text
from dari.knowledge.store.store import Store
from tests.support.knowledge_documents import document, passages, put, short_hash

Reopen = Callable[[], Store]


def test_a_document_comes_back_as_it_was_put(store: Store) -> None:
    result = put(store, "a/b.md", "first", "second", tags=("x", "y"), lang="ko", title="제목", byte_len=11)
    found = store.document_by_path("a/b.md")
    assert found is not None
    assert found == store.documents([result.doc_no])[result.doc_no] == store.document_by_id(found.doc_id)
    assert (found.title, found.tags, found.lang, found.chunk_count, found.block_count) == (
        "제목",
        ("x", "y"),
        "ko",
        2,
        2,
    )
    chunks = store.chunks_of(found.doc_no)
    assert [chunk.text for chunk in chunks] == ["first", "second"]
    assert chunks[1].location == Location("line", line_start=11, line_end=19, section="Heading")
    assert store.chunk_by_id(chunks[1].chunk_id) == chunks[1] == store.chunks([chunks[1].chunk_no])[chunks[1].chunk_no]
    assert [block.text for block in store.blocks_of(found.doc_no)] == ["first", "second"]
    assert [chunk.text for chunk in store.chunks_of(found.doc_no, 1, 1)] == ["second"]


def test_what_does_not_exist_is_none_or_left_out(store: Store) -> None:
    assert store.document_by_path("x") is None
    assert store.document_by_id("x") is None
    assert store.chunk_by_id("x") is None
    assert store.chunks([1, 2]) == {}
    assert store.documents([1]) == {}
    assert store.blocks_of(1) == ()
    assert store.revision() == 0


def test_each_transaction_that_changes_documents_raises_the_revision_by_one(store: Store) -> None:
    with store.write() as transaction:
        transaction.put_document(document("a.md"), passages("a.md", ["a"]))
        transaction.put_document(document("b.md"), passages("b.md", ["b"]))
        assert transaction.revision == 1
    assert store.revision() == 1
    with store.write() as transaction:
        transaction.set_kv("colour", "red")
    assert store.revision() == 1
    assert store.kv("colour") == "red"
    assert store.kv("shape", "round") == "round"


def test_an_exception_inside_a_transaction_leaves_nothing_of_it(store: Store) -> None:
    put(store, "a.md", "a")
    with pytest.raises(KeyError), store.write() as transaction:
        transaction.put_document(document("b.md"), passages("b.md", ["b"]))
        raise KeyError
    assert store.document_by_path("b.md") is None
    assert store.revision() == 1


def test_a_second_store_on_the_same_data_sees_what_was_committed(reopen: Reopen) -> None:
    put(reopen(), "a.md", "a")
    assert reopen().document_by_path("a.md") is not None


def test_a_chunk_whose_text_is_as_before_keeps_its_number(store: Store) -> None:
    first = put(store, "a.md", "one", "two", "three", asset_id="v1")
    numbers = {row.text: row.chunk_no for row in first.added}
    second = put(store, "a.md", "zero", "two", "three!", asset_id="v2")
    assert {row.text for row in second.added} == {"zero", "three!"}
    assert set(second.deleted) == {numbers["one"], numbers["three"]}
    after = {chunk.text: chunk.chunk_no for chunk in store.chunks_of(first.doc_no)}
    assert after["two"] == numbers["two"]
    assert min(after["zero"], after["three!"]) > max(numbers.values())  # numbers are never given twice


def test_a_new_title_or_heading_is_indexed_again_under_the_same_number(store: Store) -> None:
    first = put(store, "a.md", "one", title="Old")
    second = put(store, "a.md", "one", title="New")
    assert [row.chunk_no for row in second.added] == [row.chunk_no for row in first.added]
    assert "New" in second.added[0].title_text
    third = put(store, "a.md", "one", title="New", heading="Other")
    assert "Other" in third.added[0].title_text
    assert put(store, "a.md", "one", title="New", heading="Other").added == ()


def test_equal_passages_of_one_document_are_two_chunks(store: Store) -> None:
    put(store, "a.md", "same", "same")
    result = put(store, "a.md", "same", "same", "same")
    assert len(result.added) == 1
    assert [chunk.ordinal for chunk in store.chunks_of(result.doc_no)] == [0, 1, 2]


def test_a_path_belongs_to_one_source(store: Store) -> None:
    put(store, "work/a.md", "a")
    with pytest.raises(Conflict), store.write() as transaction:
        transaction.put_document(document("work/a.md", source_id="work"), [])


def test_a_rename_keeps_numbers_and_texts_and_is_indexed_again(store: Store) -> None:
    before = put(store, "old.md", "one", "two")
    record = document("new.md", doc_id="d" * 32, chunk_count=2)
    ids = [short_hash("new", str(number)) for number in range(2)]
    with store.write() as transaction:
        after = transaction.rename_document(before.doc_no, record, ids)
    assert [row.chunk_no for row in after.added] == [row.chunk_no for row in before.added]
    assert "new.md" in after.added[0].title_text
    assert store.document_by_path("old.md") is None
    assert [chunk.chunk_id for chunk in store.chunks_of(before.doc_no)] == ids
    with pytest.raises(Conflict), store.write() as transaction:
        transaction.rename_document(before.doc_no, record, ids[:1])


def test_a_deleted_document_leaves_no_chunk(store: Store) -> None:
    result = put(store, "a.md", "one", "two", tags=("t",))
    with store.write() as transaction:
        gone = transaction.delete_document(result.doc_no)
    assert set(gone.deleted) == {row.chunk_no for row in result.added}
    assert store.document_by_path("a.md") is None
    assert store.chunk_nos_of(DocumentFilter()) == []
    assert store.chunk_nos_of(DocumentFilter(tags=("t",))) == []


def test_changes_since_a_revision_bring_an_index_up_to_date(store: Store) -> None:
    first = put(store, "a.md", "one", "two")
    put(store, "b.md", "three")
    with store.write() as transaction:
        transaction.delete_document(first.doc_no)
    changes = store.changes_since(1)
    assert changes.revision == 3
    assert set(changes.deleted) == {row.chunk_no for row in first.added}
    assert [(row.text, row.title_text) for row in changes.added] == [("three", "b.md\nHeading\nb.md")]
    everything = store.changes_since(0)
    assert [row.text for row in everything.added] == ["three"]
    assert list(store.changes_since(3).added) == []


def test_changes_are_of_one_state_though_a_writer_goes_on(store: Store) -> None:
    put(store, "a.md", "one", "two")
    changes = store.changes_since(0)
    put(store, "b.md", "three")
    assert [row.text for row in changes.added] == ["one", "two"]
    assert changes.revision == 1


def test_documents_are_listed_by_path_in_pages(store: Store) -> None:
    for name in ("c.md", "a.md", "b.md"):
        put(store, name, name)
    assert [one.path for one in store.list_documents(limit=2)] == ["a.md", "b.md"]
    assert [one.path for one in store.list_documents(after="b.md")] == ["c.md"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (DocumentFilter(), "abcd"),
        (DocumentFilter(tags=("red",)), "ab"),
        (DocumentFilter(tags=("red", "big")), "b"),
        (DocumentFilter(langs=("ko", "ja")), "c"),
        (DocumentFilter(media=("code",)), "d"),
        (DocumentFilter(trust_min="secondary"), "abd"),
        (DocumentFilter(trust_min="primary"), "ad"),
        (DocumentFilter(repos=("r",), code_langs=("python",)), "d"),
        (DocumentFilter(source_types=("paper",)), "b"),
        (DocumentFilter(source_ids=("work",)), "d"),
        (DocumentFilter(path_glob="notes/*.md"), "a"),
        (DocumentFilter(path_glob="notes/**"), "abc"),
        (DocumentFilter(path_glob="*.md"), "abc"),
        (DocumentFilter(path_glob="**/deep/?.md"), "bc"),
        (DocumentFilter(path_glob="notes/[ab].md"), "a"),
        (DocumentFilter(path_glob="no(tes"), ""),
        (DocumentFilter(ingested_after="2026-01-02T00:00:00.000Z"), "bcd"),
        (DocumentFilter(langs=("ko",), tags=("red",)), ""),
    ],
)
def test_a_filter_names_documents_and_their_chunks(store: Store, where: DocumentFilter, expected: str) -> None:
    put(store, "notes/a.md", "a", tags=("red",), indexed_at="2026-01-01T00:00:00.000Z")
    put(store, "notes/deep/b.md", "b", tags=("red", "big"), trust_level="secondary", source_type="paper")
    put(store, "notes/deep/c.md", "c", lang="ko", trust_level="generated")
    put(store, "work/d.py", "d", media="code", code_lang="python", repo="r", source_id="work")
    assert "".join(chunk.text for chunk in store.chunks(store.chunk_nos_of(where)).values()) == expected
    assert sorted(store.documents(store.doc_nos_of(where))) == sorted(one.doc_no for one in store.list_documents(where))


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("[z-a]", ""),
        ("[!z-a]", "]a^b-\\[0"),
        ("[!]a]", "^b-\\[0"),
        ("[]a]", "]a"),
        ("[!^a]", "]b-\\[0"),
        ("[^a]", "a^"),
        ("[a-]", "a-"),
        ("[--0]", "-0"),
        ("[z-aa]", "a"),
        ("[\\[]", "\\["),
        ("[![]", "]a^b-\\0"),
        ("[[:alpha:]]", ""),
        ("[a", ""),
        ("xx[+-9]yy", ""),
    ],
)
def test_brackets_of_a_glob_mean_the_same_in_every_store(store: Store, glob: str, expected: str) -> None:
    for name in "]a^b-\\[0":
        put(store, name, name)
    put(store, "xx/yy", "x")  # a range that spans `/` does not match it
    found = store.documents(store.doc_nos_of(DocumentFilter(path_glob=glob))).values()
    assert sorted(one.path for one in found) == sorted(expected)


def test_a_glob_with_a_repeated_star_does_not_take_for_ever(store: Store) -> None:
    put(store, "a" * 200 + ".md", "a")
    assert store.doc_nos_of(DocumentFilter(path_glob="*a" * 30 + "/x")) == []


def test_files_are_known_by_size_time_hash_and_versions(store: Store) -> None:
    put(store, "a/x.md", "x", byte_len=5, mtime_ns=77, policy_hash="p")
    put(store, "a0.md", "x")
    state = store.file_state("a/x.md")
    assert state is not None
    assert (state.byte_len, state.mtime_ns, state.versions) == (5, 77, ("md-v1", "md-heading-v2", "p"))
    assert [one.path for one in store.file_states("default")] == ["a/x.md", "a0.md"]
    assert [one.path for one in store.file_states("default", "a")] == ["a/x.md"]
    assert [one.path for one in store.file_states("default", "a0.md")] == ["a0.md"]
    with store.write() as transaction:
        transaction.touch_document(state.doc_no, 78, "2026-01-01T00:00:00.000Z")
    touched = store.file_state("a/x.md")
    assert touched is not None
    assert touched.mtime_ns == 78
    assert store.source_ids() == {"default"}
    assert len(store.asset_ids()) == 2


def test_failures_are_kept_until_they_are_deleted(store: Store) -> None:
    failure = FileFailure(path="bad.pdf", source_id="default", byte_len=1, mtime_ns=2, reason="too deep", is_ocr=True)
    with store.write() as transaction:
        transaction.put_failure(failure)
        transaction.put_failure(FileFailure(path="b.md", source_id="default", byte_len=1, mtime_ns=2, reason="x"))
    found = store.failure("bad.pdf")
    assert found is not None
    assert found.reason == "too deep"
    assert [one.path for one in store.failures()] == ["b.md", "bad.pdf"]
    assert [one.path for one in store.failures(only_ocr=True)] == ["bad.pdf"]
    with store.write() as transaction:
        transaction.delete_failure("bad.pdf")
    assert store.failure("bad.pdf") is None


def test_vectors_are_pending_until_their_rows_count(store: Store) -> None:
    result = put(store, "a.md", "one", "two", "three")
    first, second, third = (row.chunk_no for row in result.added)
    assert store.vector_state("m") is None
    assert [one.chunk_no for one in store.pending_chunks("m", 2)] == [third, second]
    with store.write() as transaction:
        transaction.put_vectors("m", 8, [third, second, 999], 3)
    assert [one.chunk_no for one in store.pending_chunks("m", 9)] == [first]
    assert store.pending_chunks("m", 9, before=first) == []
    assert store.embedded_chunks("m") == [second, third]
    state = store.vector_state("m")
    assert state is not None
    assert (state.dim, state.committed_rows, state.embedded_chunks, state.pending_chunks) == (8, 3, 2, 1)
    assert [one.chunk_no for one in store.pending_chunks("other", 9)] == [third, second, first]
    assert store.revision() == 1


def test_a_pending_chunk_names_one_with_the_same_text_that_has_a_vector(store: Store) -> None:
    known = put(store, "a.md", "same").added[0].chunk_no
    with store.write() as transaction:
        transaction.put_vectors("m", 8, [known], 1)
    copy = put(store, "b.md", "same", "other")
    found = {one.text: one.same_as for one in store.pending_chunks("m", 9)}
    assert found == {"same": known, "other": 0}
    with store.write() as transaction:
        transaction.delete_document(copy.doc_no)
        transaction.delete_vectors("m")
    assert store.vector_models() == []
    assert [one.chunk_no for one in store.pending_chunks("m", 9)] == [known]


def test_statistics_count_documents_by_kind(store: Store) -> None:
    put(store, "a.md", "a", "b", lang="ko", indexed_at="2026-01-01T00:00:00.000Z")
    put(store, "b.py", "c", media="code", code_lang="python", repo="r")
    stats = store.stats(stale_before="2026-02-01T00:00:00.000Z")
    assert (stats.doc_count, stats.chunk_count, stats.asset_count, stats.stale_doc_count) == (2, 3, 2, 1)
    assert stats.media_breakdown == {"code": 1, "markdown": 1}
    assert stats.code_lang_chunk_breakdown == {"python": 1}
    assert stats.repo_breakdown == {"r": 1}
    assert stats.last_ingest_at is None
    assert stats.store_bytes > 0


def test_a_conversation_goes_on_in_another_process(reopen: Reopen) -> None:
    journal = reopen().journal
    journal.put_turn("s", "who?", "who?", "{}")
    second = reopen().journal.put_turn("s", "and when?", "when was who?", "{}")
    assert second.ordinal == 1
    assert [turn.question for turn in journal.turns("s")] == ["who?", "and when?"]
    assert [turn.question for turn in journal.turns("s", limit=1)] == ["and when?"]
    session = journal.session("s")
    assert session is not None
    assert session.turn_count == 2
    assert journal.delete_session("s")
    assert journal.turns("s") == []
    assert not journal.delete_session("s")


def test_answers_and_evaluations_are_kept_newest_first(store: Store) -> None:
    for name in ("a", "b"):
        store.journal.put_answer(AnswerRecord(trace_id=name, question="q", answer="{}", grounded=True, created_at="t"))
        store.journal.put_eval_run(EvalRunRecord(run_id=name, dataset="d", settings="{}", report="{}", created_at="t"))
    assert [one.trace_id for one in store.journal.answers()] == ["b", "a"]
    assert [one.run_id for one in store.journal.eval_runs(limit=1)] == ["b"]
    assert store.journal.eval_run("a") is not None
    assert store.journal.eval_run("c") is None
    assert store.revision() == 0


def test_an_ingest_run_is_running_until_it_ends(store: Store) -> None:
    first = store.journal.begin_run("all")
    second = store.journal.begin_run("all")
    store.journal.end_run(first, "completed", '{"new":1}')
    runs = store.journal.ingest_runs()
    assert [(run.run_no, run.status, run.report) for run in runs] == [
        (second, "running", ""),
        (first, "completed", '{"new":1}'),
    ]
    assert store.stats().last_ingest_at == runs[1].finished_at


def test_threads_read_side_by_side_while_a_writer_writes(store: Store) -> None:
    wrong: list[str] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            for record in store.list_documents():
                if len(chunks := store.chunks_of(record.doc_no)) not in (0, 3):
                    wrong.append(f"{record.path} has {len(chunks)} chunks")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(30):
        put(store, f"{number}.md", f"a{number}", f"b{number}", f"c{number}")
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert store.revision() == 30


def test_a_tag_of_any_length_is_shown_and_the_others_are_searched_for(store: Store) -> None:
    long = "".join(random.Random(1).choices(string.ascii_letters, k=20_000))
    put(store, "a.md", "a", tags=(long, "short"))
    assert store.list_documents(DocumentFilter(tags=("short",)))[0].tags == (long, "short")


def test_a_time_beyond_the_calendar_is_its_last_or_first_moment() -> None:
    assert utc_text(1e12) == "9999-12-31T23:59:59.999Z"
    assert utc_text(-1e12) == "0001-01-01T00:00:00.000Z"
