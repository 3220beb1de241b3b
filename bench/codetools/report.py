"""Two tables: the promises with their ratios, and every number of everyone who was measured."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bench import report
from bench.codetools.contenders import CONTENDERS
from bench.codetools.measures import CALLS, Plan
from bench.machine import describe
from bench.programs import Contender
from bench.results import Measurement


def text(plan: Plan, measurements: Sequence[Measurement[Contender]]) -> str:
    versions = [f"{one.title}: {one.version()}." for one in CONTENDERS if not one.missing]
    first = (
        f"{datetime.now(UTC):%Y-%m-%d}; {describe()}; median of {plan.rounds} rounds of {CALLS} calls, "
        f"{plan.starts} starts."
    )
    circumstances = "\n".join(f"- {line}" for line in (first, *versions))
    return "\n\n".join((circumstances, report.promises(measurements), report.numbers(measurements)))
