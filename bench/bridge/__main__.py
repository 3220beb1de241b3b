"""Our bridge beside mcporter, mcpdo, mcp-proxy, FastMCP and supergateway; exit 1 when a target is missed."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from bench import report as tables
from bench.bridge import report
from bench.bridge.contenders import CONTENDERS, Contender, install_peers
from bench.bridge.household import household
from bench.bridge.measures import MEASURES
from bench.bridge.plan import Plan
from bench.errors import BenchError
from bench.machine import require_two_cores, require_wrk
from bench.processes import Scratch
from bench.results import Measurement


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    names = [name for name in given.only.split(",") if name] or list(MEASURES)
    # What was started is ended on the way out, so a TERM has to become a way out.
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(143))
    scratch = Scratch()
    plan = Plan(2, 1, 3, 3, scratch) if given.quick else Plan(given.rounds, given.seconds, given.commands, 15, scratch)
    try:
        _require_known(names)
        require_two_cores()
        require_wrk()
        install_peers()
        if given.write:
            _require_complete(names, given.quick)
        with household():
            measurements = _measure(names, plan)
        text = "\n\n".join((report.circumstances(plan), tables.promises(measurements), report.numbers(measurements)))
        if given.write:
            tables.write("bridge", text)
    except BenchError as failed:
        print(f"bench: {failed}", file=sys.stderr)
        return 2
    finally:
        scratch.close()
    missed = tables.missed(measurements)
    asked = tables.count(measurements)
    print(f"{text}\n\n{asked - len(missed)} of {asked} targets met", *(f"  missed: {one}" for one in missed), sep="\n")
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
            print(report.row(measurement), file=sys.stderr, flush=True)
    return measurements


def _require_known(names: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in MEASURES]:
        raise BenchError(f"no measure is called {', '.join(unknown)}", f"use {', '.join(MEASURES)}")


def _require_complete(names: Sequence[str], quick: bool) -> None:
    if quick or any(one.missing for one in CONTENDERS) or set(names) != set(MEASURES):
        raise BenchError("only a complete run may be written into README.md", "leave out --only and --quick")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.bridge", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 rounds of 1 s, 3 commands: shows that it runs")
    parser.add_argument("--only", default="", metavar="NAME,…", help=f"some of: {', '.join(MEASURES)}")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of load, the median counts (default 3)")
    parser.add_argument("--seconds", type=int, default=3, help="length of each load (default 3)")
    parser.add_argument("--commands", type=int, default=15, help="how often each command is typed (default 15)")
    parser.add_argument("--write", action="store_true", help="put the tables into bench/README.md")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
