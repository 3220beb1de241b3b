"""The code tools beside ripgrep, ruff and other people's servers, in one run; exit 1 when a target is missed."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from bench.codetools import report
from bench.codetools.contenders import CONTENDERS, install_peers
from bench.codetools.measures import MEASURES, Plan
from bench.codetools.tree import make_tree
from bench.part import Part
from bench.processes import Scratch
from bench.report import number_row


def main() -> int:
    part = Part("codetools", __doc__, MEASURES, CONTENDERS, install_peers, _planned, report.text, number_row)
    return part.run(part.parser("2 rounds, 3 starts: shows that it runs, not who is faster"))


@contextmanager
def _planned(given: argparse.Namespace) -> Iterator[Plan]:
    scratch = Scratch()
    try:
        tree = make_tree(scratch.path / "tree")
        yield Plan(2, 3, scratch, tree) if given.quick else Plan(given.rounds, 9, scratch, tree)
    finally:
        scratch.close()


if __name__ == "__main__":
    raise SystemExit(main())
