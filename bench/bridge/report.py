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


def text(plan: Plan, measurements: Sequence[Measurement[Contender]]) -> str:
    return "\n\n".join((circumstances(plan), report.promises(measurements), report.numbers(measurements)))
