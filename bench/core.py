"""Our server and client beside their peers, in one run; exit 1 when a target is missed."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench import report
from bench.contenders import CONTENDERS, Contender, install_peers
from bench.machine import LOAD_CORE, on_core, require_wrk
from bench.measures import MEASURES, Plan
from bench.part import Part
from bench.processes import Scratch
from bench.results import Measurement


def main() -> int:
    part = Part("core", __doc__, MEASURES, CONTENDERS, _prepare, _planned, _text, report.rows)
    parser = part.parser("2 rounds of 1 s: shows that it runs, not who is faster")
    parser.add_argument("--seconds", type=int, default=3, help="length of each load (default 3)")
    return part.run(parser)


def _prepare() -> None:
    require_wrk()
    install_peers()


@contextmanager
def _planned(given: argparse.Namespace) -> Iterator[Plan]:
    scratch = Scratch()
    try:
        with on_core(LOAD_CORE):
            yield Plan(2, 1, 3, scratch) if given.quick else Plan(given.rounds, given.seconds, 9, scratch)
    finally:
        scratch.close()


def _text(plan: Plan, measurements: Sequence[Measurement[Contender]]) -> str:
    circumstances = report.circumstances(plan.rounds, plan.seconds, plan.cold_starts)
    return f"{circumstances}\n\n{report.table(measurements)}"


if __name__ == "__main__":
    raise SystemExit(main())
