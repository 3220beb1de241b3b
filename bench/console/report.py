"""Two tables: the promises with their ratios, and every number of every page."""

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime

from bench import report
from bench.console.contenders import CHROMIUM, CONTENDERS, Contender
from bench.console.measures import Plan
from bench.machine import describe
from bench.results import Measurement


def circumstances(plan: Plan) -> str:
    """Date, machine and versions of this run."""
    versions = [f"{one.title}: {one.version()}." for one in CONTENDERS if not one.missing]
    reply = subprocess.run([CHROMIUM, "--version"], capture_output=True, text=True, timeout=30)
    first = (
        f"{datetime.now(UTC):%Y-%m-%d}; {describe()}; {' '.join(reply.stdout.split()[:2])}, headless; "
        f"median of {plan.paints} first paints and {plan.rounds} rounds of {plan.seconds:g} s of frames."
    )
    return "\n".join(f"- {line}" for line in (first, *versions))


def text(plan: Plan, measurements: Sequence[Measurement[Contender]]) -> str:
    return "\n\n".join((circumstances(plan), report.promises(measurements), report.numbers(measurements)))
