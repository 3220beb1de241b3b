"""Our proxy beside mitmdump, proxy.py and mockttp, in one run; exit 1 when a target is missed."""

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench import report as tables
from bench.errors import BenchError
from bench.machine import LOAD_CORE, on_core, require_two_cores
from bench.processes import Scratch
from bench.proxy import certificates, load, origin, report
from bench.proxy.contenders import CONTENDERS, Contender, Surroundings, install_peers
from bench.proxy.measures import MEASURES, Plan
from bench.results import Measurement


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    names = [name for name in given.only.split(",") if name] or list(MEASURES)
    # The proxies are ended on the way out, so a TERM has to become a way out.
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(143))
    try:
        _require_known(names)
        require_two_cores()
        load.program()
        install_peers()
        if given.write:
            _require_complete(names, given.quick)
        with on_core(LOAD_CORE), _plan(given) as plan:
            measurements = _measure(names, plan)
            text = "\n\n".join(
                (report.circumstances(plan), tables.promises(measurements), report.numbers(measurements))
            )
        if given.write:
            tables.write("proxy", text)
    except BenchError as failed:
        print(f"bench: {failed}", file=sys.stderr)
        return 2
    missed = tables.missed(measurements)
    asked = tables.count(measurements)
    print(f"{text}\n\n{asked - len(missed)} of {asked} targets met", *(f"  missed: {one}" for one in missed), sep="\n")
    return 1 if missed else 0


@contextmanager
def _plan(given: argparse.Namespace) -> Iterator[Plan]:
    """The origin runs, certificates are made; all of it is gone afterwards."""
    scratch = Scratch()
    try:
        home = scratch.path
        pair = certificates.make(home, "origin", is_authority=False)
        with origin.running(home, pair) as running:
            authority = certificates.make(home, "authority", is_authority=True)
            around = Surroundings(home, running, authority, certificates.make_key(home / "leaf.key"))
            rounds, seconds, cold_starts = (2, 2.0, 3) if given.quick else (given.rounds, given.seconds, 9)
            yield Plan(rounds, seconds, cold_starts, scratch, around)
    finally:
        scratch.close()


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
    parser = argparse.ArgumentParser(prog="bench.proxy", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 rounds of 2 s: shows that it runs, not who is faster")
    parser.add_argument("--only", default="", metavar="NAME,…", help=f"some of: {', '.join(MEASURES)}")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds, the median counts (default 3)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each load (default 3)")
    parser.add_argument("--write", action="store_true", help="put the tables into bench/README.md")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
