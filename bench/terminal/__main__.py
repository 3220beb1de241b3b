"""Our terminal beside tmux, pyte, libtmux-mcp and cairosvg, in one run; exit 1 when a target is missed."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from bench.bridge.household import household
from bench.part import Part
from bench.processes import Scratch
from bench.report import number_row
from bench.terminal import data, report
from bench.terminal.contenders import CONTENDERS, install_peers
from bench.terminal.measures import MEASURES
from bench.terminal.plan import Plan


def main() -> int:
    part = Part("terminal", __doc__, MEASURES, CONTENDERS, install_peers, _planned, report.text, number_row)
    parser = part.parser("2 rounds, few calls, little data: shows that it runs")
    parser.add_argument("--calls", type=int, default=100, help="calls of a kind in a round (default 100)")
    return part.run(parser)


@contextmanager
def _planned(given: argparse.Namespace) -> Iterator[Plan]:
    """Data is written; the engines in this process have a home in which nothing of the real one is found."""
    scratch = Scratch()
    home = scratch.path / "home"
    home.mkdir()
    os.environ |= {"HOME": str(home), "DARI_HOME": str(home / "dari")}
    try:
        with household():
            files = data.write_files(scratch.path)
            yield (
                Plan(2, 10, 2, 16, 64, scratch, files)
                if given.quick
                else Plan(given.rounds, given.calls, 5, 104, 1000, scratch, files)
            )
    finally:
        scratch.close()


if __name__ == "__main__":
    raise SystemExit(main())
