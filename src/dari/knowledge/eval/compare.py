"""Two runs side by side, several sets in one line, and how a question's wording changes what is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from dari.errors import InvalidInput
from dari.knowledge.eval.dataset import EvalSet
from dari.knowledge.eval.metrics import Estimate, estimate, paired
from dari.knowledge.eval.run import QuestionResult, RunReport, load_run


class Difference(Struct, frozen=True, kw_only=True):
    """The second run minus the first, question by question."""

    questions: int
    ndcg_at_10: Estimate
    recall_at_10: Estimate
    mrr_at_10: Estimate


class Comparison(Struct, frozen=True, kw_only=True):
    """`kebab eval compare A B`: a gain is sure where `low` is above zero."""

    schema_version: str = "eval_comparison.v1"
    first: str
    second: str
    overall: Difference
    by_type: dict[str, Difference]
    by_lang: dict[str, Difference]
    better: tuple[str, ...]
    """Ids of the questions that gained most, the most first."""
    worse: tuple[str, ...]


class AggregateRow(Struct, frozen=True, kw_only=True):
    run_id: str
    set_name: str
    mode: str
    model_key: str
    questions: int
    ndcg_at_10: float
    recall_at_10: float
    mrr_at_10: float
    empty_rate: float


class Aggregate(Struct, frozen=True, kw_only=True):
    """`kebab eval aggregate`: each run, the mean over runs, and over all their questions."""

    schema_version: str = "eval_aggregate.v1"
    runs: tuple[AggregateRow, ...]
    macro_ndcg_at_10: float
    macro_recall_at_10: float
    macro_mrr_at_10: float
    pooled_ndcg_at_10: Estimate


class VariantGroup(Struct, frozen=True, kw_only=True):
    """Questions for the same document in other words."""

    group: str
    questions: int
    found: int
    worst: str
    """The id of the one that did worst."""


class VariantReport(Struct, frozen=True, kw_only=True):
    """`kebab eval variants`: does an answer depend on how it is asked for?"""

    schema_version: str = "eval_variants.v1"
    run_id: str
    groups: int
    questions: int
    found: int
    """Questions with a relevant document among the first ten."""
    all_found: Estimate
    """Share of groups in which every variant is."""
    worst_ndcg_at_10: Estimate
    """Mean over groups of the nDCG of the worst variant."""
    broken: tuple[VariantGroup, ...]
    """Groups in which some variants are found and others are not."""


MAX_LISTED = 10


def compare_runs(first: RunReport, second: RunReport) -> Comparison:
    """Paired by question. InvalidInput when the runs have no question in common."""
    before = {result.id: result for result in first.results if result.answerable}
    after = {result.id: result for result in second.results if result.answerable}
    shared = sorted(before.keys() & after.keys())
    if not shared or (first.corpus_hash and second.corpus_hash and first.corpus_hash != second.corpus_hash):
        raise InvalidInput(
            f"{first.run_id} and {second.run_id} are runs of different sets", "compare two runs of the same set"
        )
    gains = sorted(((after[name].ndcg - before[name].ndcg, name) for name in shared), reverse=True)

    def groups(attribute: str) -> dict[str, Difference]:
        names = sorted({getattr(before[name], attribute) for name in shared} - {""})
        return {
            group: _difference([one for one in shared if getattr(before[one], attribute) == group], before, after)
            for group in names
        }

    return Comparison(
        first=first.run_id,
        second=second.run_id,
        overall=_difference(shared, before, after),
        by_type=groups("type"),
        by_lang=groups("lang"),
        better=tuple(name for gain, name in gains[:MAX_LISTED] if gain > 0),
        worse=tuple(name for gain, name in reversed(gains[-MAX_LISTED:]) if gain < 0),
    )


def aggregate_runs(reports: Sequence[RunReport]) -> Aggregate:
    if not reports:
        raise InvalidInput("aggregate needs a run, and none is stored", "kebab eval run --set DIR makes one")
    rows = tuple(
        AggregateRow(
            run_id=report.run_id,
            set_name=report.set_name,
            mode=report.searched_mode,
            model_key=report.model_key,
            questions=report.scores.questions,
            ndcg_at_10=report.scores.ndcg_at_10.value,
            recall_at_10=report.scores.recall_at_10.value,
            mrr_at_10=report.scores.mrr_at_10.value,
            empty_rate=report.scores.empty_rate,
        )
        for report in reports
    )
    pooled = [result.ndcg for report in reports for result in report.results if result.answerable]
    return Aggregate(
        runs=rows,
        macro_ndcg_at_10=_mean([row.ndcg_at_10 for row in rows]),
        macro_recall_at_10=_mean([row.recall_at_10 for row in rows]),
        macro_mrr_at_10=_mean([row.mrr_at_10 for row in rows]),
        pooled_ndcg_at_10=estimate(pooled),
    )


def last_of_each_set(runs: Path) -> list[RunReport]:
    """The newest run of every set and mode, by the name of the set."""
    newest: dict[tuple[str, str], RunReport] = {}
    for path in sorted(runs.glob("*.json")):
        report = load_run(str(path), runs)
        newest[report.set_name, report.searched_mode] = report
    return [newest[key] for key in sorted(newest)]


def variants_of(report: RunReport, chosen: EvalSet) -> VariantReport:
    """Groups are those of the set (`group`), else questions with the same relevant documents."""
    results = {result.id: result for result in report.results}
    groups: dict[str, list[QuestionResult]] = {}
    for question in chosen.questions:
        if question.answerable and question.id in results:
            name = question.group or "+".join(sorted(question.relevant))
            groups.setdefault(name, []).append(results[question.id])
    several = {name: some for name, some in groups.items() if len(some) > 1}
    if not several:
        raise InvalidInput(f"{chosen.name} has no two questions for the same document", "give variants a common group")
    broken = [
        VariantGroup(
            group=name,
            questions=len(some),
            found=sum(result.rr > 0 for result in some),
            worst=min(some, key=lambda result: (result.ndcg, result.id)).id,
        )
        for name, some in several.items()
        if 0 < sum(result.rr > 0 for result in some) < len(some)
    ]
    return VariantReport(
        run_id=report.run_id,
        groups=len(several),
        questions=sum(map(len, several.values())),
        found=sum(result.rr > 0 for some in several.values() for result in some),
        all_found=estimate([float(all(result.rr > 0 for result in some)) for some in several.values()]),
        worst_ndcg_at_10=estimate([min(result.ndcg for result in some) for some in several.values()]),
        broken=tuple(broken),
    )


def _difference(
    names: Sequence[str], before: dict[str, QuestionResult], after: dict[str, QuestionResult]
) -> Difference:
    def gain(attribute: str) -> Estimate:
        first = {name: float(getattr(before[name], attribute)) for name in names}
        return paired(first, {name: float(getattr(after[name], attribute)) for name in names})

    return Difference(questions=len(names), ndcg_at_10=gain("ndcg"), recall_at_10=gain("recall"), mrr_at_10=gain("rr"))


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 5)
