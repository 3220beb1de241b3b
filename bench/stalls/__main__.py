"""How long one hostile input holds up everybody else in the same process; exit 1 when a delay is above 250 ms."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from bench.errors import BenchError
from bench.machine import ROOT, describe
from bench.part import Part
from bench.programs import Contender, python_package
from bench.report import number
from bench.results import Measurement
from bench.stalls.heartbeat import ATTACK_LIMIT_S
from bench.stalls.inputs import INPUTS

LIMIT_MS = 250.0
PYTHON = ROOT / ".venv" / "bin" / "python"
OURS = Contender("dari", "Dari", PYTHON, python_package(PYTHON, "dari", "uvloop"))
_HEADER = """\
| input | longest delay of others | of it our work | memory grown | target | |
|---|--:|--:|--:|--:|---|"""


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int


def main() -> int:
    part = Part("stalls", __doc__, _measures(), (OURS,), lambda: None, _planned, _text, _row)
    return part.run(part.parser("1 round of each"))


def _measures() -> dict[str, Callable[[Plan], Iterator[Measurement[Contender]]]]:
    def of(name: str) -> Callable[[Plan], Iterator[Measurement[Contender]]]:
        def measure(plan: Plan) -> Iterator[Measurement[Contender]]:
            delay = Measurement(INPUTS[name][0], "ms", (OURS,), (), limit=LIMIT_MS)
            for _ in range(plan.rounds):
                stall = _taken(name)
                delay.add(OURS, stall["longest_ms"])
                delay.rounds.setdefault("busy", []).append(stall["busy_ms"])
                delay.rounds.setdefault("grown", []).append(stall["grown_mb"])
            yield delay

        return measure

    return {name: of(name) for name in INPUTS}


def _taken(name: str) -> dict[str, float]:
    """In a process of its own, so that no input pays for another's memory."""
    command = [str(PYTHON), "-m", "bench.stalls.child", name]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=ATTACK_LIMIT_S + 30)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{name} did not end", "run it alone: python -m bench.stalls.child " + name) from None
    if done.returncode:
        raise BenchError(f"{name} failed: {done.stderr.strip().splitlines()[-1:]}", " ".join(command[1:]))
    taken: dict[str, float] = json.loads(done.stdout)
    return taken


@contextmanager
def _planned(given: argparse.Namespace) -> Iterator[Plan]:
    yield Plan(1 if given.quick else given.rounds)


def _row(one: Measurement[Contender]) -> str:
    grown = sorted(one.rounds["grown"])[len(one.rounds["grown"]) // 2]
    busy = sorted(one.rounds["busy"])[len(one.rounds["busy"]) // 2]
    mark = "missed" if one.is_over_limit else "met"
    delay = number(one.median(OURS), "ms")
    return f"| {one.name} | {delay} | {number(busy, 'ms')} | {number(grown, 'MB')} | ≤ {LIMIT_MS:g} ms | {mark} |"


def _text(plan: Plan, measurements: Sequence[Measurement[Contender]]) -> str:
    first = f"- {datetime.now(UTC):%Y-%m-%d}; {describe()}; median of {plan.rounds} rounds."
    return "\n\n".join((first, "\n".join([_HEADER, *map(_row, measurements)])))


if __name__ == "__main__":
    sys.exit(main())
