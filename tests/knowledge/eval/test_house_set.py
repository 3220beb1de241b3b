"""Our own evaluation set is whole: every question has its document, every gold string stands in it."""

import csv
import json
from collections import Counter
from importlib import resources
from typing import Any

_SET = resources.files("dari.knowledge.eval") / "data" / "house"


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_SET / name).read_text(encoding="utf-8").splitlines()]


def _qrels() -> dict[str, str]:
    lines = (_SET / "qrels.tsv").read_text(encoding="utf-8").splitlines()
    return {row["query-id"]: row["corpus-id"] for row in csv.DictReader(lines, delimiter="\t")}


def test_every_answerable_question_names_a_document_that_holds_its_gold_string() -> None:
    texts = {row["_id"]: row["text"] for row in _rows("corpus.jsonl")}
    relevant = _qrels()
    answerable = [row for row in _rows("queries.jsonl") if row["answerable"]]
    assert [row["_id"] for row in answerable if row["gold"] not in texts[relevant[row["_id"]]]] == []


def test_a_question_without_an_answer_has_no_relevant_document() -> None:
    relevant = _qrels()
    assert [row["_id"] for row in _rows("queries.jsonl") if not row["answerable"] and row["_id"] in relevant] == []


def test_a_cross_question_is_in_the_other_language() -> None:
    languages = {row["_id"]: row["lang"] for row in _rows("corpus.jsonl")}
    relevant = _qrels()
    cross = [row for row in _rows("queries.jsonl") if row["type"] == "cross"]
    assert [row["_id"] for row in cross if row["lang"] == languages[relevant[row["_id"]]]] == []


def test_the_set_is_as_large_as_its_readme_says() -> None:
    counts = Counter(row["type"] for row in _rows("queries.jsonl"))
    table = {
        cells[1].strip(): int(cells[2])
        for cells in (line.split("|") for line in (_SET / "README.md").read_text(encoding="utf-8").splitlines())
        if len(cells) > 3 and cells[2].strip().isdigit()
    }
    assert dict(counts) == table
    assert len(_rows("corpus.jsonl")) == 122
