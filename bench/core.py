"""Our server and client beside their peers, in one run; exit 1 when a target is missed."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from bench import report
from bench.contenders import CONTENDERS, OURS, Contender, install_peers
from bench.errors import BenchError
from bench.machine import LOAD_CORE, on_core, require_two_cores, require_wrk
from bench.measures import MEASURES, Plan
from bench.processes import Scratch
from bench.results import Measurement


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    names = [name for name in given.only.split(",") if name] or list(MEASURES)
    # The servers are ended on the way out, so a TERM has to become a way out.
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(143))
    scratch = Scratch()
    plan = Plan(2, 1, 3, scratch) if given.quick else Plan(given.rounds, given.seconds, 9, scratch)
    try:
        _require_known(names)
        if given.write:
            _require_complete(names, given.quick)
        require_two_cores()
        require_wrk()
        install_peers()
        with on_core(LOAD_CORE):
            measurements = _measure(names, plan)
        circumstances = report.circumstances(plan.rounds, plan.seconds, plan.cold_starts)
        text = f"{circumstances}\n\n{report.table(measurements)}"
        if given.write:
            report.write("core", text)
    except BenchError as failed:
        print(f"bench: {failed}", file=sys.stderr)
        return 2
    finally:
        scratch.close()
    print(f"{text}\n\n{report.verdict_line(measurements)}")
    missed = any(verdict.missed for measurement in measurements for verdict in measurement.verdicts())
    return 1 if missed else 0


def _measure(names: Sequence[str], plan: Plan) -> list[Measurement[Contender]]:
    for contender in CONTENDERS:
        if contender.missing:
            print(f"bench: NO NUMBERS OF {contender.title}: {contender.missing}", file=sys.stderr)
    if os.getloadavg()[0] > 0.5:
        print("bench: the machine is busy with something else; the numbers will wander", file=sys.stderr)
    measurements = []
    for name in names:
        for measurement in MEASURES[name](plan):
            measurements.append(measurement)
            print(report.rows(measurement), file=sys.stderr, flush=True)
    return measurements


def _require_known(names: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in MEASURES]:
        raise BenchError(f"no measure is called {', '.join(unknown)}", f"use {', '.join(MEASURES)}")


def _require_complete(names: Sequence[str], quick: bool) -> None:
    if quick or OURS.missing or OURS.client_missing or set(names) != set(MEASURES):
        raise BenchError("only a complete run may be written into README.md", "leave out --only and --quick")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.core", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 rounds of 1 s: shows that it runs, not who is faster")
    parser.add_argument("--only", default="", metavar="NAME,…", help=f"some of: {', '.join(MEASURES)}")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds, the median counts (default 3)")
    parser.add_argument("--seconds", type=int, default=3, help="length of each load (default 3)")
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
