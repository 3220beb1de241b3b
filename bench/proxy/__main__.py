"""Our proxy beside mitmdump, proxy.py and mockttp, in one run; exit 1 when a target is missed."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from bench.machine import LOAD_CORE, on_core
from bench.part import Part
from bench.processes import Scratch
from bench.proxy import certificates, load, origin, report
from bench.proxy.contenders import CONTENDERS, Surroundings, install_peers
from bench.proxy.measures import MEASURES, Plan


def main() -> int:
    part = Part("proxy", __doc__, MEASURES, CONTENDERS, _prepare, _planned, report.text, report.row)
    parser = part.parser("2 rounds of 2 s: shows that it runs, not who is faster")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each load (default 3)")
    return part.run(parser)


def _prepare() -> None:
    load.program()
    install_peers()


@contextmanager
def _planned(given: argparse.Namespace) -> Iterator[Plan]:
    """The origin runs, certificates are made; all of it is gone afterwards."""
    scratch = Scratch()
    try:
        home = scratch.path
        with on_core(LOAD_CORE):
            pair = certificates.make(home, "origin", is_authority=False)
            with origin.running(home, pair) as running:
                authority = certificates.make(home, "authority", is_authority=True)
                around = Surroundings(home, running, authority, certificates.make_key(home / "leaf.key"))
                rounds, seconds, cold_starts = (2, 2.0, 3) if given.quick else (given.rounds, given.seconds, 9)
                yield Plan(rounds, seconds, cold_starts, scratch, around)
    finally:
        scratch.close()


if __name__ == "__main__":
    raise SystemExit(main())
