"""Two tables: the promises with their ratios, and every number of everyone who was measured."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bench import report
from bench.bridge.contenders import CONTENDERS, Contender
from bench.bridge.plan import Plan
from bench.machine import describe, wrk_version
from bench.results import Measurement


def circumstances(plan: Plan) -> str:
    """Date, machine and versions of this run."""
    versions = [f"{one.title}: {one.version()}." for one in CONTENDERS if not one.missing]
    first = (
        f"{datetime.now(UTC):%Y-%m-%d}; {describe()}; wrk {wrk_version()}; median of {plan.rounds} rounds of "
        f"{plan.seconds} s, of {plan.commands} commands each, of {plan.starts} starts."
    )
    return "\n".join(f"- {line}" for line in (first, *versions))


def numbers(measurements: Sequence[Measurement[Contender]]) -> str:
    """One row per measure; who was not measured in it is not in it."""
    return "\n".join(["| measure | Dari | peers |", "|---|--:|---|", *map(row, measurements)])


def row(measurement: Measurement[Contender]) -> str:
    ours, *peers = measurement.contenders
    theirs = (f"{peer.title} {report.number(measurement.median(peer), measurement.unit)}" for peer in peers)
    return f"| {measurement.name} | {report.number(measurement.median(ours), measurement.unit)} | {', '.join(theirs)} |"
