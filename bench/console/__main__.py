"""The console beside mitmweb and the MCP Inspector's page, in one Chromium; exit 1 when a target is missed."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from bench import report as tables
from bench.bridge.household import household
from bench.console import report
from bench.console.browser import chromium
from bench.console.contenders import CONTENDERS, install_peers
from bench.console.measures import MEASURES, Plan
from bench.part import Part
from bench.processes import Scratch


def main() -> int:
    part = Part("console", __doc__, MEASURES, CONTENDERS, install_peers, _planned, report.text, tables.number_row)
    parser = part.parser("2 rounds of 2 s and 3 first paints: shows that it runs, not who is faster")
    parser.add_argument("--seconds", type=float, default=8.0, help="of frames in each round (default 8)")
    return part.run(parser)


@contextmanager
def _planned(given: argparse.Namespace) -> Iterator[Plan]:
    scratch = Scratch()
    try:
        with household(), chromium() as browser:
            rounds, seconds, paints = (2, 2.0, 3) if given.quick else (given.rounds, given.seconds, 9)
            yield Plan(rounds, paints, seconds, scratch, browser)
    finally:
        scratch.close()


if __name__ == "__main__":
    raise SystemExit(main())
