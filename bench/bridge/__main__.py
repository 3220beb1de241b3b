"""Our bridge beside mcporter, mcpdo, mcp-proxy, FastMCP and supergateway; exit 1 when a target is missed."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from bench.bridge import report
from bench.bridge.contenders import CONTENDERS, install_peers
from bench.bridge.household import household
from bench.bridge.measures import MEASURES
from bench.bridge.plan import Plan
from bench.machine import require_wrk
from bench.part import Part
from bench.processes import Scratch
from bench.report import number_row


def main() -> int:
    part = Part("bridge", __doc__, MEASURES, CONTENDERS, _prepare, _planned, report.text, number_row)
    parser = part.parser("2 rounds of 1 s, 3 commands: shows that it runs")
    parser.add_argument("--seconds", type=int, default=3, help="length of each load (default 3)")
    parser.add_argument("--commands", type=int, default=15, help="how often each command is typed (default 15)")
    return part.run(parser)


def _prepare() -> None:
    require_wrk()
    install_peers()


@contextmanager
def _planned(given: argparse.Namespace) -> Iterator[Plan]:
    scratch = Scratch()
    try:
        with household():
            yield (
                Plan(2, 1, 3, 3, scratch)
                if given.quick
                else Plan(given.rounds, given.seconds, given.commands, 15, scratch)
            )
    finally:
        scratch.close()


if __name__ == "__main__":
    raise SystemExit(main())
