"""Two tables: the promises with their ratios, and every number of every proxy."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bench import report
from bench.machine import describe
from bench.proxy.contenders import CONTENDERS, MITM, Contender
from bench.proxy.measures import Plan
from bench.proxy.origin import nginx_version
from bench.results import Measurement


def circumstances(plan: Plan) -> str:
    """Date, machine and versions of this run."""
    versions = [f"{one.title}: {one.version()}." for one in CONTENDERS if not one.missing]
    first = (
        f"{datetime.now(UTC):%Y-%m-%d}; {describe()}; nginx {nginx_version()}; "
        f"median of {plan.rounds} rounds of {plan.seconds:g} s, {plan.cold_starts} cold starts."
    )
    return "\n".join(f"- {line}" for line in (first, *versions))


def promises(measurements: Sequence[Measurement[Contender]]) -> str:
    rows = [row for one in measurements for row in _promises_of(one)]
    return "\n".join([report.HEADER, *rows])


def numbers(measurements: Sequence[Measurement[Contender]]) -> str:
    """One row per measure, one column per proxy; a variant of a peer has a row of its own."""
    columns = [contender.title for contender in CONTENDERS]
    rows = [f"| measure | {' | '.join(columns)} |", "|---|" + "--:|" * len(columns)]
    for one in measurements:
        rows.append(row(one))
        for variant in one.contenders:
            if variant not in CONTENDERS:
                value = report.number(one.median(variant), one.unit)
                rows.append(f"| … {variant.title} | {' | '.join(value if c is MITM else '' for c in CONTENDERS)} |")
    return "\n".join(rows)


def row(measurement: Measurement[Contender]) -> str:
    measured = {one.name for one in measurement.contenders}
    cells = (
        report.number(measurement.median(one), measurement.unit) if one.name in measured else "–" for one in CONTENDERS
    )
    return f"| {measurement.name} | {' | '.join(cells)} |"


def missed(measurements: Sequence[Measurement[Contender]]) -> list[str]:
    """Every promise that does not hold, in words."""
    return [
        *(
            f"{verdict.measure} against {verdict.peer.title} ({verdict.target})"
            for one in measurements
            for verdict in one.verdicts()
            if verdict.missed
        ),
        *(f"{one.name} (≤ {one.limit:g} {one.unit})" for one in measurements if one.is_over_limit),
    ]


def count(measurements: Sequence[Measurement[Contender]]) -> int:
    """How many promises there are."""
    return sum(len(one.targets) + (one.limit is not None) for one in measurements)


def _promises_of(one: Measurement[Contender]) -> list[str]:
    rows = [report.row(verdict) for verdict in one.verdicts() if verdict.target is not None]
    if one.limit is not None:
        ours = report.number(one.median(one.ours), one.unit)
        mark = "missed" if one.is_over_limit else "met"
        rows.append(f"| {one.name} | {ours} | – | | | ≤ {one.limit:g} {one.unit} | {mark} |")
    return rows
