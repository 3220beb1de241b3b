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


def text(plan: Plan, measurements: Sequence[Measurement[Contender]]) -> str:
    return "\n\n".join((circumstances(plan), report.promises(measurements), numbers(measurements)))
