"""Runs of an evaluation set through the real pipeline: indexed once, scored by document, compared, tuned."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace

from dari.errors import Conflict, InvalidInput, NotFound
from dari.knowledge.config import Settings, load_settings
from dari.knowledge.eval.asking import extractive_asker
from dari.knowledge.eval.compare import aggregate_runs, compare_runs, variants_of
from dari.knowledge.eval.dataset import EvalSet, load_set
from dari.knowledge.eval.index import IndexProgress, SetIndex, open_index
from dari.knowledge.eval.run import AskFunction, AskOutcome, load_run, run_set
from dari.knowledge.eval.tune import tune_weight
from dari.knowledge.index.lexical import INDEX_VERSION
from dari.knowledge.models.installed import use_folder
from tests.support.knowledge_corpus import corpus_of
from tests.support.tiny_models import own_folder, require_models

DOCUMENTS = {
    "ferry": ("The ferry", "The ferry to the island costs nine euros. Children ride free."),
    "backup": ("Backups", "The backup runs every night at two and is kept for thirty days."),
    "백업": ("백업", "백업은 매일 밤 두 시에 실행되고 30일 동안 보관됩니다."),
    "long": (
        "Long",
        "\n\n".join(f"Paragraph {n} speaks of weather and of nothing else. " * 12 for n in range(12)) + " The zebra.",
    ),
}
QUESTIONS: list[dict[str, Any]] = [
    {"_id": "q1", "text": "how much is the ferry to the island", "type": "plain", "lang": "en", "gold": "nine euros"},
    {"_id": "q2", "text": "백업은 언제 실행되나요", "type": "plain", "lang": "ko"},
    {"_id": "q3", "text": "where is the zebra", "type": "deep", "lang": "en"},
    {"_id": "q4", "text": "what does a ferry ticket cost", "type": "paraphrase", "lang": "en"},
    {"_id": "q9", "text": "who invented the telescope", "type": "absent", "lang": "en", "answerable": False},
]
RELEVANT = {"q1": "ferry", "q2": "백업", "q3": "long", "q4": "ferry"}


@pytest.fixture
def chosen(tmp_path: Path) -> EvalSet:
    return _set(tmp_path / "set", QUESTIONS, RELEVANT)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return _settings(tmp_path / "data")


def _settings(data: Path, **environ: str) -> Settings:
    return load_settings(None, {"HOME": str(data), "KEBAB_STORE_DATA_DIR": str(data), **environ})


def _set(folder: Path, questions: list[dict[str, Any]], relevant: dict[str, str], corpus: bool = True) -> EvalSet:
    folder.mkdir()
    if corpus:
        rows = [{"_id": name, "title": title, "text": text} for name, (title, text) in DOCUMENTS.items()]
        (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    (folder / "qrels.tsv").write_text("".join(f"{query}\t{doc}\t1\n" for query, doc in relevant.items()))
    return load_set(str(folder))


def test_a_run_names_what_made_it(chosen: EvalSet, settings: Settings) -> None:
    report = run_set(chosen, settings, "lexical")
    assert report.versions["index"] == INDEX_VERSION
    assert {"chunks", "fusion", "gate", "answer"} <= report.versions.keys()
    assert report.hint == ""


def test_a_hybrid_run_without_the_model_for_its_languages_names_that_model(chosen: EvalSet, settings: Settings) -> None:
    assert "kebab models install use-m" in run_set(chosen, settings, "hybrid").hint


def test_judgements_of_other_documents_are_refused(tmp_path: Path, settings: Settings) -> None:
    other = _set(tmp_path / "other", QUESTIONS, {"q1": "elsewhere", "q2": "nowhere"})
    with pytest.raises(InvalidInput, match="none of the 2 judged documents"):
        run_set(other, settings, "lexical")


def test_a_document_is_found_by_its_best_chunk_however_long_it_is(chosen: EvalSet, settings: Settings) -> None:
    report = run_set(chosen, settings, "lexical")
    found = {result.id: result.found for result in report.results}
    assert [found[name][0] for name in RELEVANT] == list(RELEVANT.values())
    assert all(len(set(documents)) == len(documents) for documents in found.values())
    assert (report.scores.questions, report.scores.ndcg_at_10.value, report.scores.empty_rate) == (4, 1.0, 0.0)
    assert {name: scores.questions for name, scores in report.by_type.items()} == {
        "deep": 1,
        "paraphrase": 1,
        "plain": 2,
    }
    assert sorted(report.by_lang) == ["en", "ko"]
    assert report.documents == 4


def test_a_corpus_may_have_odd_ids_titles_alone_equal_texts_and_a_nul(tmp_path: Path, settings: Settings) -> None:
    rows = [
        {"_id": "a/b c#1", "text": "The marmot whistles."},
        {"_id": "단독", "title": "Emperor penguin colony", "text": ""},
        {"_id": "one", "text": "The walrus sleeps."},
        {"_id": "two", "text": "The walrus sleeps."},
        {"_id": "nul", "text": "An otter\0 swims."},
        {"_id": "empty", "title": "", "text": " "},
    ]
    asked = {"marmot": ["a/b c#1"], "penguin": ["단독"], "walrus": ["one", "two"], "otter": ["nul"]}
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps({"_id": one, "text": one}) + "\n" for one in asked))
    (tmp_path / "qrels.tsv").write_text("".join(f"{one}\t{doc}\t1\n" for one, docs in asked.items() for doc in docs))
    report = run_set(load_set(str(tmp_path)), settings, "lexical")
    assert {one.id: sorted(one.found) for one in report.results} == asked


def test_hybrid_without_a_model_says_what_it_searched_with(chosen: EvalSet, settings: Settings) -> None:
    report = run_set(chosen, settings, "hybrid")
    assert (report.mode, report.searched_mode, report.model_key) == ("hybrid", "lexical", "")


def test_a_second_run_reuses_the_index_and_a_fresh_one_does_not(chosen: EvalSet, settings: Settings) -> None:
    seen: list[IndexProgress] = []
    run_set(chosen, settings, "lexical")
    (index,) = (settings.data.runs / "indexes").iterdir()
    made = (index / "kebab.sqlite").stat().st_ino
    run_set(chosen, settings, "lexical", on_index=seen.append)
    assert (index / "kebab.sqlite").stat().st_ino == made
    (index / "complete.json").unlink()  # as a kill leaves it
    assert run_set(chosen, settings, "lexical").scores.ndcg_at_10.value == 1.0
    run_set(chosen, settings, "lexical", fresh=True)


def test_runs_are_kept_and_found_by_id_beginning_or_last(chosen: EvalSet, settings: Settings) -> None:
    runs = settings.data.runs
    first = run_set(chosen, settings, "lexical")
    assert load_run("last", runs) == load_run(first.run_id, runs) == load_run(first.run_id[:-2], runs) == first
    assert load_run(str(runs / f"{first.run_id}.json"), runs) == first
    with pytest.raises(NotFound):
        load_run("none", runs)


def test_a_cancelled_run_ends_with_a_conflict(chosen: EvalSet, settings: Settings) -> None:
    cancel = Event()
    with pytest.raises(Conflict):
        run_set(chosen, settings, "lexical", on_question=lambda *_: cancel.set(), cancel=cancel)


def test_refusals_and_gold_strings_are_counted_where_ask_is_given(chosen: EvalSet, settings: Settings) -> None:
    def asker(index: SetIndex) -> AskFunction:
        return lambda text: AskOutcome(
            "telescope" in text or "zebra" in text, "It costs Nine Euros." if "ferry" in text else ""
        )

    refusal = run_set(chosen, settings, "lexical", asker=asker).refusal
    assert refusal is not None
    assert (refusal.refused, refusal.false_refusals, refusal.gold_in_answer) == (1.0, 0.25, 1.0)
    assert refusal.by_type == {"absent": 1.0, "deep": 1.0, "paraphrase": 0.0, "plain": 0.0}


def test_two_runs_are_compared_question_by_question(chosen: EvalSet, settings: Settings, tmp_path: Path) -> None:
    good = run_set(chosen, settings, "lexical")
    wrong = _set(tmp_path / "other", QUESTIONS, {**RELEVANT, "q1": "backup"})
    bad = run_set(wrong, settings, "lexical")
    comparison = compare_runs(bad, good)
    assert comparison.better == ("q1",) and comparison.worse == ()
    assert comparison.overall.ndcg_at_10.value > 0
    assert comparison.by_type["deep"].ndcg_at_10.value == 0
    with pytest.raises(InvalidInput):
        compare_runs(good, run_set(load_set("house"), settings, "lexical"))


def test_an_aggregate_counts_each_set_once(chosen: EvalSet, settings: Settings) -> None:
    reports = [run_set(chosen, settings, "lexical"), run_set(load_set("house"), settings, "lexical")]
    total = aggregate_runs(reports)
    expected = sum(report.scores.ndcg_at_10.value for report in reports) / 2
    assert total.macro_ndcg_at_10 == pytest.approx(expected, abs=1e-4)
    assert [row.set_name for row in total.runs] == ["set", "house"]
    with pytest.raises(InvalidInput):
        aggregate_runs([])


def test_variants_of_a_question_are_those_for_the_same_document(chosen: EvalSet, settings: Settings) -> None:
    report = run_set(chosen, settings, "lexical")
    variants = variants_of(report, chosen)
    assert (variants.groups, variants.questions, variants.found, variants.all_found.value) == (1, 2, 2, 1.0)
    lost = [result if result.id != "q4" else _lost(result) for result in report.results]
    import msgspec

    broken = variants_of(msgspec.structs.replace(report, results=tuple(lost)), chosen)
    assert [(group.group, group.found, group.worst) for group in broken.broken] == [("ferry", 1, "q4")]


def test_questions_about_ones_own_documents_need_no_corpus(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    base = corpus_of(data, {f"{name}.md": text for name, (_, text) in DOCUMENTS.items()})
    base.lexical.close()
    paths = {query: f"{doc}.md" for query, doc in RELEVANT.items()}
    own = _set(tmp_path / "own", QUESTIONS, paths, corpus=False)
    assert run_set(own, _settings(data), "lexical").scores.recall_at_10.value == 1.0
    strange = _set(tmp_path / "strange", QUESTIONS, RELEVANT, corpus=False)
    with pytest.raises(InvalidInput, match="ferry"):
        run_set(strange, _settings(data), "lexical")


def test_tuning_chooses_a_weight_and_measures_it_on_other_questions(tmp_path: Path, settings: Settings) -> None:
    """The model's vectors are of random weights, so the words alone are best."""
    use_folder(settings.data.data, own_folder(tmp_path / "own", lexical_weight=0.0))
    questions = [{**QUESTIONS[n % 4], "_id": f"{QUESTIONS[n % 4]['_id']}-{n}"} for n in range(24)]
    many = _set(tmp_path / "many", questions, {row["_id"]: RELEVANT[row["_id"][:2]] for row in questions})
    with open_index(many, settings) as index:
        report = tune_weight(many, settings, index)
    scores = {score.lexical_weight: score.ndcg_at_10 for score in report.weights}
    assert report.current_weight == 0.0 and report.best_weight > 0.3
    assert scores[report.best_weight] == max(scores.values()) > scores[0.0]
    assert report.is_sure and report.gain.low > 0


def test_tuning_refuses_few_questions(chosen: EvalSet, settings: Settings, tmp_path: Path) -> None:
    use_folder(settings.data.data, own_folder(tmp_path / "own"))
    with open_index(chosen, settings) as index, pytest.raises(InvalidInput, match="20"):
        tune_weight(chosen, settings, index)


@pytest.mark.timeout(300)
def test_on_the_house_set_hybrid_is_surely_better_than_either_half(tmp_path: Path) -> None:
    """Defaults only: the model is chosen by the languages of the documents."""
    models = require_models("use-m", "minilm")
    settings = _settings(tmp_path, KEBAB_EMBEDDING_MODELS_DIR=str(models))
    house = load_set("house")
    lexical, vector, hybrid = (run_set(house, settings, mode) for mode in ("lexical", "vector", "hybrid"))
    assert hybrid.model_key.startswith("use-m-")
    gain = compare_runs(lexical, hybrid)
    assert gain.by_type["paraphrase"].ndcg_at_10.low > 0
    assert gain.by_type["cross"].ndcg_at_10.low > 0
    assert gain.overall.ndcg_at_10.low > 0
    assert compare_runs(vector, hybrid).overall.ndcg_at_10.low > 0
    assert hybrid.scores.empty_rate < 0.01


@pytest.mark.timeout(300)
def test_on_the_house_set_absent_topics_are_refused_and_other_words_are_heard(tmp_path: Path) -> None:
    """Every absent topic, and every third of the other questions: an ask takes a tenth of a second of the processor."""
    models = require_models("use-m", "minilm")
    settings = _settings(tmp_path, KEBAB_EMBEDDING_MODELS_DIR=str(models))
    house = load_set("house")
    some = tuple(one for at, one in enumerate(house.questions) if one.type == "absent" or at % 3 == 0)
    report = run_set(replace(house, questions=some), settings, "hybrid", asker=extractive_asker(settings))
    assert report.refusal is not None
    refused, gold = report.refusal.by_type, report.refusal.gold_by_type
    assert refused["absent"] >= 0.95
    assert refused["plain"] <= 0.05 and refused["identifier"] <= 0.05
    assert refused["cross"] <= 0.3 and refused["paraphrase"] <= 0.6
    assert gold["plain"] >= 0.9 and gold["identifier"] >= 0.9
    assert gold["cross"] >= 0.3 and gold["paraphrase"] >= 0.25


def _lost(result: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(result, ndcg=0.0, recall=0.0, rr=0.0, found=())
