"""Two tables: the promises with their ratios, and every number of everyone who was measured."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bench import report
from bench.machine import describe
from bench.results import Measurement
from bench.terminal.contenders import CONTENDERS, Contender
from bench.terminal.plan import Plan


def circumstances(plan: Plan) -> str:
    """Date, machine and versions of this run."""
    versions = [f"{one.title}: {one.version()}." for one in CONTENDERS if not one.missing]
    first = (
        f"{datetime.now(UTC):%Y-%m-%d}; {describe()}; median of {plan.rounds} rounds, "
        f"of {plan.calls} calls each, of {plan.starts} starts."
    )
    return "\n".join(f"- {line}" for line in (first, *versions))


def text(plan: Plan, measurements: Sequence[Measurement[Contender]]) -> str:
    return "\n\n".join((circumstances(plan), report.promises(measurements), report.numbers(measurements)))
