"""`kebab eval …`: how well search finds what it should, with intervals."""

from __future__ import annotations

import argparse
import threading
from typing import TYPE_CHECKING, get_args

from dari.cli.kebab.context import OK, KebabContext, print_wire
from dari.cli.kebab.progress import ProgressBar, run_cancellable
from dari.cli.kit.parser import Command
from dari.cli.kit.table import format_pairs, print_table
from dari.knowledge.document import SearchMode

if TYPE_CHECKING:
    from dari.knowledge.eval.compare import Comparison, Difference
    from dari.knowledge.eval.index import IndexProgress
    from dari.knowledge.eval.metrics import Estimate
    from dari.knowledge.eval.run import RunReport, Scores

_SET_HELP = "a folder with corpus.jsonl, queries.jsonl and qrels (BEIR's form), or house: the set that is shipped"


def _add(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    run = words.add_parser("run", help="search every question of a set and score what is found")
    run.add_argument("--set", metavar="DIR", default="house", help=f"{_SET_HELP} (default: house)")
    run.add_argument("--mode", choices=get_args(SearchMode), default="hybrid")
    run.add_argument("--ask", action="store_true", help="also ask each question: refusals and gold strings")
    run.add_argument("--fresh", action="store_true", help="index the set anew, not as the last run left it")
    aggregate = words.add_parser("aggregate", help="several runs and their means")
    aggregate.add_argument("runs", nargs="*", metavar="RUN", help="ids of runs (default: the last one of each set)")
    compare = words.add_parser("compare", help="what a second run gains over a first, question by question")
    compare.add_argument("first", metavar="A", help="a run's id, the beginning of one, or a file")
    compare.add_argument("second", metavar="B")
    variants = words.add_parser("variants", help="whether the wording of a question decides what is found")
    variants.add_argument("--run", metavar="RUN", help="a run of the set (default: a new one)")
    variants.add_argument("--set", metavar="DIR", default="house", help=_SET_HELP)
    tune = words.add_parser("tune", help="choose the weight of words against meaning on your own questions")
    tune.add_argument("--set", metavar="DIR", required=True, help=_SET_HELP)
    tune.add_argument("--write", action="store_true", help="write the weight into the configuration")


async def _run(arguments: argparse.Namespace, context: KebabContext) -> int:
    steps = {"run": _run_set, "aggregate": _aggregate, "compare": _compare, "variants": _variants, "tune": _tune}
    await steps[arguments.what](arguments, context)
    return OK


async def _run_set(arguments: argparse.Namespace, context: KebabContext) -> None:
    report = await _measure(arguments.set, arguments.mode, context, arguments.fresh, arguments.ask)
    if context.as_json:
        print_wire(context, report)
        return
    _print_run(report, context)


async def _measure(given: str, mode: str, context: KebabContext, fresh: bool = False, asks: bool = False) -> RunReport:
    from dari.knowledge.eval.dataset import HOUSE, load_set
    from dari.knowledge.eval.run import run_set

    service = await context.open()
    service.require_writable("kebab eval run")
    settings = service.settings
    chosen = await context.call(load_set, given if given == HOUSE else str(context.resolve(given)))
    asker = None
    if asks:
        from dari.knowledge.eval.asking import extractive_asker

        asker = extractive_asker(settings)
    line = ProgressBar(context)

    def work(cancel: threading.Event) -> RunReport:
        return run_set(
            chosen,
            settings,
            mode,  # type: ignore[arg-type]  # argparse checks the choice
            on_index=lambda progress: _show_index(line, progress),
            on_question=lambda done, total: line.show(f"{chosen.name}: asking", done, total),
            cancel=cancel,
            asker=asker,
            fresh=fresh,
        )

    return await run_cancellable(work, context, line)


def _show_index(line: ProgressBar, progress: IndexProgress) -> None:
    made = progress.embedding
    if made is None:
        line.show(f"indexing: {progress.documents} documents")
    else:
        total = made.embedded + made.pending
        line.show(f"embedding, {made.texts_per_s:.1f} texts a second", made.embedded, total)


def _print_run(report: RunReport, context: KebabContext) -> None:
    model = report.model_key or "no model"
    if report.mode != report.searched_mode:
        context.note(f"searched {report.searched_mode}, not {report.mode}: no model is installed for these documents")
    if report.hint:
        context.note(report.hint)
    rows = [_row("all", report.scores)]
    rows += [_row(name, scores) for name, scores in (*report.by_type.items(), *report.by_lang.items())]
    head = ("questions", "", "nDCG@10", "95 %", "recall@10", "MRR@10", "empty")
    print_table(context.console, head, rows)
    facts: dict[str, object] = {
        "run": report.run_id,
        "set": f"{report.set_name}, {report.documents} documents",
        "searched": f"{report.searched_mode}, {model}, lexical weight {report.lexical_weight:g}",
        "made by": ", ".join(f"{part} {version}" for part, version in report.versions.items()),
        "time": f"p50 {report.p50_ms:.1f} ms, p95 {report.p95_ms:.1f} ms",
    }
    if report.texts_per_s:
        facts["embedded"] = f"{report.texts_per_s:.1f} texts a second, {report.embed_s:.1f} s"
    if (refusal := report.refusal) is not None:
        facts["refused"] = f"{refusal.refused:.1%} of what has no answer, {refusal.false_refusals:.1%} of what has one"
        by_type = ", ".join(f"{name} {share:.1%}" for name, share in refusal.gold_by_type.items())
        facts["gold string"] = f"in {refusal.gold_in_answer:.1%} of the answers" + (f": {by_type}" if by_type else "")
        facts["refused by type"] = ", ".join(f"{name} {share:.1%}" for name, share in refusal.by_type.items())
    context.output.text("", *format_pairs(facts))


def _row(name: str, scores: Scores) -> tuple[object, ...]:
    value = scores.ndcg_at_10
    return (
        name,
        scores.questions,
        f"{value.value:.3f}",
        f"{value.low:.3f} – {value.high:.3f}",
        f"{scores.recall_at_10.value:.3f}",
        f"{scores.mrr_at_10.value:.3f}",
        f"{scores.empty_rate:.1%}",
    )


async def _aggregate(arguments: argparse.Namespace, context: KebabContext) -> None:
    from dari.knowledge.eval.compare import aggregate_runs, last_of_each_set
    from dari.knowledge.eval.run import load_run

    runs = (await context.open()).settings.data.runs
    if arguments.runs:
        reports = [await context.call(load_run, given, runs) for given in arguments.runs]
    else:
        reports = await context.call(last_of_each_set, runs)
    total = aggregate_runs(reports)
    if context.as_json:
        print_wire(context, total)
        return
    rows = [
        (row.set_name, row.mode, row.model_key, row.questions, f"{row.ndcg_at_10:.3f}", f"{row.recall_at_10:.3f}")
        for row in total.runs
    ]
    mean = ("mean", "", "", "", f"{total.macro_ndcg_at_10:.3f}", f"{total.macro_recall_at_10:.3f}")
    print_table(context.console, ("set", "mode", "model", "questions", "nDCG@10", "recall@10"), [*rows, mean])


async def _compare(arguments: argparse.Namespace, context: KebabContext) -> None:
    from dari.knowledge.eval.compare import compare_runs
    from dari.knowledge.eval.run import load_run

    runs = (await context.open()).settings.data.runs
    first, second = [await context.call(load_run, given, runs) for given in (arguments.first, arguments.second)]
    found = compare_runs(first, second)
    if context.as_json:
        print_wire(context, found)
        return
    _print_comparison(found, context)


def _print_comparison(found: Comparison, context: KebabContext) -> None:
    groups: dict[str, Difference] = {"all": found.overall, **found.by_type, **found.by_lang}
    rows = [(name, one.questions, _gain(one.ndcg_at_10), _gain(one.recall_at_10)) for name, one in groups.items()]
    print_table(context.console, ("questions", "", "nDCG@10", "recall@10"), rows)
    context.output.text("", f"{found.second} minus {found.first}; * marks what is sure (95 %)")
    for name, ids in (("better", found.better), ("worse", found.worse)):
        if ids:
            context.output.text(f"{name}: {', '.join(ids)}")


def _gain(value: Estimate) -> str:
    is_sure = value.low > 0 or value.high < 0
    return f"{value.value:+.3f} [{value.low:+.3f}, {value.high:+.3f}]{' *' if is_sure else ''}"


async def _variants(arguments: argparse.Namespace, context: KebabContext) -> None:
    from dari.knowledge.eval.compare import variants_of
    from dari.knowledge.eval.dataset import HOUSE, load_set
    from dari.knowledge.eval.run import load_run

    given = arguments.set if arguments.set == HOUSE else str(context.resolve(arguments.set))
    chosen = await context.call(load_set, given)
    if arguments.run is None:
        report = await _measure(arguments.set, "hybrid", context)
    else:
        report = await context.call(load_run, arguments.run, (await context.open()).settings.data.runs)
    found = variants_of(report, chosen)
    if context.as_json:
        print_wire(context, found)
        return
    context.output.text(
        f"{found.found} of {found.questions} questions in {found.groups} groups find their document",
        f"every variant does in {found.all_found.value:.1%} of the groups "
        f"[{found.all_found.low:.1%}, {found.all_found.high:.1%}]",
        f"nDCG@10 of the worst variant: {found.worst_ndcg_at_10.value:.3f}",
    )
    if found.broken:
        rows = [(group.group, f"{group.found} of {group.questions}", group.worst) for group in found.broken]
        print_table(context.console, ("group", "found", "worst"), rows)


async def _tune(arguments: argparse.Namespace, context: KebabContext) -> None:
    from dari.knowledge.eval.dataset import HOUSE, load_set
    from dari.knowledge.eval.index import open_index
    from dari.knowledge.eval.tune import TuneReport, tune_weight, write_weight

    service = await context.open()
    service.require_writable("kebab eval tune")
    settings = service.settings
    chosen = await context.call(
        load_set, arguments.set if arguments.set == HOUSE else str(context.resolve(arguments.set))
    )
    line = ProgressBar(context)

    def work(cancel: threading.Event) -> TuneReport:
        def show(progress: IndexProgress) -> None:
            _show_index(line, progress)

        with open_index(chosen, settings, on_progress=show, cancel=cancel) as index:
            return tune_weight(
                chosen,
                settings,
                index,
                on_weight=lambda done, total: line.show(f"{chosen.name}: trying weights", done, total),
                cancel=cancel,
            )

    found = await run_cancellable(work, context, line)
    if arguments.write:
        await context.call(write_weight, settings.config_file, found.best_weight)
        context.note(f"embedding.lexical_weight = {found.best_weight:g} is in {settings.config_file}")
    if context.as_json:
        print_wire(context, found)
        return
    rows = [
        (
            "*" if score.lexical_weight == found.best_weight else "",
            f"{score.lexical_weight:g}",
            f"{score.ndcg_at_10:.3f}",
        )
        for score in found.weights
    ]
    print_table(context.console, ("", "lexical weight", "nDCG@10"), rows)
    context.output.text(
        "",
        f"now {found.current_weight:g}, best {found.best_weight:g}; gain on questions that did not choose it: "
        + _gain(found.gain),
    )
    if not arguments.write and found.best_weight != found.current_weight:
        context.note("add --write to keep it" + ("" if found.is_sure else "; the gain is not sure yet"))


COMMANDS = (
    Command(
        "eval",
        "measure how well search finds what it should",
        _add,
        _run,
        "A run is kept in the data folder, with each question's result; intervals are of 95 %, by bootstrap.",
        (
            ("eval run --set house", "the shipped set, Korean and English"),
            ("eval run --set ~/sets/scifact --mode lexical", "a set in BEIR's form"),
            ("eval compare A B", "what B gains over A"),
            ("eval tune --set ~/my-questions --write", "questions about your own documents: no corpus.jsonl is needed"),
        ),
    ),
)
