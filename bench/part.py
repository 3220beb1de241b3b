"""One benchmark as a command: its options, its measures one after another, its tables, its exit code."""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from bench import report
from bench.errors import BenchError
from bench.machine import require_two_cores
from bench.results import Measurement, Named


class Installed(Named, Protocol):
    """Who is measured, if it is there."""

    @property
    def missing(self) -> str:
        """Why it cannot run, or an empty string."""
        ...


C = TypeVar("C", bound=Installed)
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Part(Generic[C, P]):
    name: str
    description: str
    measures: Mapping[str, Callable[[P], Iterator[Measurement[C]]]]
    contenders: Sequence[C]
    prepare: Callable[[], None]
    """Brings the peers onto the machine."""
    planned: Callable[[argparse.Namespace], AbstractContextManager[P]]
    """How much is measured, and what runs all the time beside it."""
    text: Callable[[P, Sequence[Measurement[C]]], str]
    """What is printed, and what goes into README.md."""
    row: Callable[[Measurement[C]], str]
    """What is shown of a measure once it is taken."""

    def run(self, parser: argparse.ArgumentParser, argv: Sequence[str] | None = None) -> int:
        """0 when all targets are met, 1 when one is missed, 2 when there are no numbers."""
        given = parser.parse_args(argv)
        names = [name for name in given.only.split(",") if name] or list(self.measures)
        # What was started is ended on the way out, so a TERM has to become a way out.
        signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(143))
        try:
            self._require_known(names)
            require_two_cores()
            self.prepare()
            if given.write:
                self._require_complete(names, given.quick)
            with self.planned(given) as plan:
                measurements = self._measure(names, plan)
                text = self.text(plan, measurements)
            if given.write:
                report.write(self.name, text)
        except BenchError as failed:
            print(f"bench: {failed}", file=sys.stderr)
            return 2
        missed, asked = report.missed(measurements), report.count(measurements)
        print(f"{text}\n\n{asked - len(missed)} of {asked} targets met")
        for one in missed:
            print(f"  missed: {one}")
        return 1 if missed else 0

    def parser(self, quick: str) -> argparse.ArgumentParser:
        """The options that all have; `quick` says what `--quick` does."""
        parser = argparse.ArgumentParser(prog=f"bench.{self.name}", description=self.description)
        parser.add_argument("--quick", action="store_true", help=quick)
        parser.add_argument("--only", default="", metavar="NAME,…", help=f"some of: {', '.join(self.measures)}")
        parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds, the median counts (default 3)")
        parser.add_argument("--write", action="store_true", help="put the tables into bench/README.md")
        return parser

    def _measure(self, names: Sequence[str], plan: P) -> list[Measurement[C]]:
        for contender in self.contenders:
            if contender.missing:
                print(f"bench: NO NUMBERS OF {contender.title}: {contender.missing}", file=sys.stderr)
        if os.getloadavg()[0] > 0.5:
            print("bench: the machine is busy with something else; the numbers will wander", file=sys.stderr)
        measurements = []
        for name in names:
            for measurement in self.measures[name](plan):
                measurements.append(measurement)
                print(self.row(measurement), file=sys.stderr, flush=True)
        return measurements

    def _require_known(self, names: Sequence[str]) -> None:
        if unknown := [name for name in names if name not in self.measures]:
            raise BenchError(f"no measure is called {', '.join(unknown)}", f"use {', '.join(self.measures)}")

    def _require_complete(self, names: Sequence[str], quick: bool) -> None:
        if quick or any(one.missing for one in self.contenders) or set(names) != set(self.measures):
            raise BenchError("only a complete run may be written into README.md", "leave out --only and --quick")
