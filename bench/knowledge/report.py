"""Two tables: the promises with their ratios, and every number of everyone who was measured."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bench import report
from bench.knowledge.contenders import CONTENDERS, QMD
from bench.knowledge.corpus import QUERIES
from bench.knowledge.measures import FEW_QUERIES, LARGE, Plan
from bench.machine import describe
from bench.programs import Contender
from bench.results import Measurement


def text(plan: Plan, measurements: Sequence[Measurement[Contender]]) -> str:
    versions = [f"{one.title}: {one.version()}." for one in (*CONTENDERS, QMD) if not one.missing]
    queries = f"{QUERIES} queries each ({FEW_QUERIES} with {LARGE:,} passages and in PostgreSQL)"
    first = f"{datetime.now(UTC):%Y-%m-%d}; {describe()}; median of {plan.rounds} rounds of {queries}."
    circumstances = "\n".join(f"- {line}" for line in (first, *versions))
    return "\n\n".join((circumstances, report.promises(measurements), report.numbers(measurements)))
