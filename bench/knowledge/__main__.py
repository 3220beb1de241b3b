"""The knowledge base beside SQLite FTS5, LanceDB and bm25s, in one run; exit 1 when a target is missed."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from bench.knowledge import report
from bench.knowledge.contenders import CONTENDERS, install_peers
from bench.knowledge.measures import MEASURES, Plan
from bench.part import Part
from bench.processes import Scratch
from bench.report import number_row


def main() -> int:
    part = Part("knowledge", __doc__, MEASURES, CONTENDERS, install_peers, _planned, report.text, number_row)
    return part.run(part.parser("2 rounds, without 500,000 passages: some minutes instead of half an hour"))


@contextmanager
def _planned(given: argparse.Namespace) -> Iterator[Plan]:
    scratch = Scratch()
    try:
        yield Plan(2, 3, scratch, is_quick=True) if given.quick else Plan(given.rounds, 9, scratch)
    finally:
        scratch.close()


if __name__ == "__main__":
    raise SystemExit(main())
