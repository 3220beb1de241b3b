"""Evaluation sets: BEIR's form as it is, ours with more fields, and what is wrong named by file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dari.errors import InvalidInput, NotFound
from dari.knowledge.eval.dataset import load_set


def _write(folder: Path, qrels: str, name: str = "qrels.tsv", queries: list[dict[str, object]] | None = None) -> str:
    rows = queries or [{"_id": "q1", "text": "one?", "metadata": {}}, {"_id": "q2", "text": "two?"}]
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "one", "metadata": {"url": "x"}}\n\n')
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(qrels)
    return str(folder)


@pytest.mark.parametrize(
    ("name", "qrels"),
    [
        ("qrels.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n"),
        ("qrels.tsv", "q1\td1\t2\n"),
        ("qrels.tsv", "q1 0 d1 2\r\n"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t2\n"),
        ("qrels.jsonl", '{"query-id": "q1", "corpus-id": "d1", "score": 2}\n'),
    ],
)
def test_judgements_are_read_in_every_common_form(tmp_path: Path, name: str, qrels: str) -> None:
    chosen = load_set(_write(tmp_path, qrels, name))
    assert [(question.id, question.relevant) for question in chosen.questions] == [("q1", {"d1": 2.0})]
    assert [(doc.id, doc.title, doc.text) for doc in chosen.corpus()] == [("d1", "T", "one")]


def test_ids_may_be_numbers_and_stand_in_id(tmp_path: Path) -> None:
    corpus = '\ufeff{"_id": 4983, "title": null, "text": "one"}\n{"id": "x", "text": null}\n'
    (tmp_path / "corpus.jsonl").write_text(corpus, "utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": 7, "text": "one?"}\n')
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n7\t4983\t1\n")
    chosen = load_set(str(tmp_path))
    assert [(question.id, question.relevant) for question in chosen.questions] == [("7", {"4983": 1.0})]
    assert [(doc.id, doc.title, doc.text) for doc in chosen.corpus()] == [("4983", "", "one"), ("x", "", "")]


def test_a_line_without_an_id_is_named(tmp_path: Path) -> None:
    folder = _write(tmp_path, "q1\td1\t1\n", queries=[{"_id": "q1", "text": "a"}, {"text": "b"}])
    with pytest.raises(InvalidInput, match=r"queries\.jsonl:2.*_id"):
        load_set(folder)


def test_a_question_without_an_answer_needs_no_judgement(tmp_path: Path) -> None:
    queries: list[dict[str, object]] = [
        {"_id": "q1", "text": "one?", "type": "plain", "lang": "en", "gold": "one"},
        {"_id": "q9", "text": "nine?", "answerable": False, "type": "absent"},
    ]
    chosen = load_set(_write(tmp_path, "q1\td1\t1\n", queries=queries))
    assert [(question.id, question.answerable) for question in chosen.questions] == [("q1", True), ("q9", False)]


def test_the_shipped_set_is_loaded_by_name() -> None:
    chosen = load_set("house")
    assert len(chosen.questions) == 386
    assert sum(1 for _ in chosen.corpus()) == 122


@pytest.mark.parametrize(
    ("qrels", "queries", "place"),
    [
        ("q1\td1\tmany\nq2\td1\tx\n", '{"_id":"q1","text":"a"}', "qrels.tsv:2"),
        ("q1\td1\t1", "{", "queries.jsonl:1"),
        ("q2\td1\t1", '{"_id":"q1","text":""}\n{"_id":"q2","text":" "}', "queries.jsonl:2"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, qrels: str, queries: str, place: str) -> None:
    folder = _write(tmp_path, qrels)
    (tmp_path / "queries.jsonl").write_text(queries)
    with pytest.raises(InvalidInput, match=place):
        load_set(folder)


@pytest.mark.parametrize(
    ("name", "qrels"),
    [
        ("qrels.tsv", "q1\td1\t1\nq2\n"),
        ("qrels.tsv", "q1\td1\t1\n\xff\n"),
        ("qrels.jsonl", '{"query-id": "q1", "corpus-id": "d1"}\n{"query-id": "q2", "doc": "d1"}\n'),
    ],
)
def test_a_judgement_without_a_document_is_named(tmp_path: Path, name: str, qrels: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}:2: a judgement needs a query-id and a corpus-id"):
        load_set(_write(tmp_path, qrels, name))


def test_a_set_that_cannot_be_scored_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        load_set(str(tmp_path / "none"))
    with pytest.raises(InvalidInput):
        load_set(_write(tmp_path, "other\td1\t1\n"))
    (tmp_path / "qrels.tsv").unlink()
    with pytest.raises(NotFound):
        load_set(str(tmp_path))
