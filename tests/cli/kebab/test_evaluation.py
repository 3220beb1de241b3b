"""`kebab eval`: runs, comparisons and tuning from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.kebab_command import kebab_home
from tests.support.tiny_models import own_folder


async def test_a_run_of_the_shipped_set_prints_scores_by_type_and_language(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        shown = await kebab("eval", "run", "--mode", "lexical", "--no-daemon")
        assert shown.code == 0, shown.err
        for word in ("nDCG@10", "paraphrase", "cross", "ko", "p50"):
            assert word in shown.out
        report = (await kebab("eval", "run", "--mode", "lexical", "--json", "--no-daemon")).json
        assert report["schema_version"] == "eval_run.v1"
        assert report["scores"]["questions"] == 336
        assert report["scores"]["empty_rate"] < 0.02
        assert len(report["results"]) == 386


async def test_ask_reports_refusals_and_gold_strings(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("eval", "run", "--mode", "lexical", "--ask", "--json", "--no-daemon")
        assert done.code == 0, done.err
        refusal = done.json["refusal"]
        assert refusal["refused"] > refusal["false_refusals"]
        assert refusal["by_type"]["absent"] > refusal["by_type"]["plain"]


async def test_two_runs_are_compared_and_aggregated(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        first, second = [
            (await kebab("eval", "run", "--mode", "lexical", "--json", "--no-daemon")).json["run_id"] for _ in "ab"
        ]
        compared = (await kebab("eval", "compare", first, second, "--json", "--no-daemon")).json
        assert compared["overall"]["ndcg_at_10"] == {"value": 0.0, "low": 0.0, "high": 0.0}
        assert "minus" in (await kebab("eval", "compare", first, second, "--no-daemon")).out
        total = (await kebab("eval", "aggregate", "--json", "--no-daemon")).json
        assert [row["run_id"] for row in total["runs"]] in ([first], [second])
        variants = (await kebab("eval", "variants", "--run", first, "--json", "--no-daemon")).json
        assert variants["groups"] > 50
        unknown = await kebab("eval", "compare", first, "nothing", "--json", "--no-daemon")
        assert (unknown.code, unknown.error["code"]) == (2, "not_found")


async def test_tuning_writes_the_weight_only_when_asked(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        folder = own_folder(tmp_path / "own", lexical_weight=0.0)
        assert (await kebab("models", "use", "--path", str(folder), "--no-daemon")).code == 0
        kebab.config.write_text(kebab.config.read_text().replace('model = "none"', 'model = "auto"'))
        questions = _questions(tmp_path / "mine")
        before = kebab.config.read_text()
        found = await kebab("eval", "tune", "--set", str(questions), "--json", "--no-daemon")
        assert found.code == 0, found.err
        assert kebab.config.read_text() == before
        await kebab("eval", "tune", "--set", str(questions), "--write", "--no-daemon")
        assert f"lexical_weight = {found.json['best_weight']:g}" in kebab.config.read_text()
        assert (await kebab("search", "ferry", "--no-daemon")).code in (0, 1)


async def test_a_run_is_refused_read_only_and_a_missing_set_is_named(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("eval", "run", "--readonly", "--json", "--no-daemon")
        assert (done.code, done.error["code"]) == (2, "readonly_mode")
        done = await kebab("eval", "run", "--set", "nowhere", "--json", "--no-daemon")
        assert (done.code, done.error["code"]) == (2, "not_found")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "config_version = 1\n\n[embedding]\nlexical_weight = 0.4\n"),
        (
            "[embedding]\n# why\nmodel = 'x'\n[search]\n",
            "[embedding]\nlexical_weight = 0.4\n# why\nmodel = 'x'\n[search]\n",
        ),
        ("[embedding]\nlexical_weight=0.9 # old\n", "[embedding]\nlexical_weight = 0.4\n"),
        ("[search]\nlexical = 1\n", "[search]\nlexical = 1\n\n[embedding]\nlexical_weight = 0.4\n"),
    ],
)
def test_the_rest_of_the_configuration_stays_as_it_is(tmp_path: Path, before: str, after: str) -> None:
    from dari.knowledge.eval.tune import write_weight

    path = tmp_path / "config.toml"
    if before:
        path.write_text(before)
    write_weight(path, 0.4)
    assert path.read_text() == after


def _questions(folder: Path) -> Path:
    folder.mkdir()
    rows = [{"_id": f"q{n}", "text": f"what about animal number {n}"} for n in range(24)]
    (folder / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "d{n}", "text": "animal number {n}"}}\n' for n in range(24))
    )
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels.tsv").write_text("".join(f"q{n}\td{n}\t1\n" for n in range(24)))
    return folder
