"""The table, on the screen and between the markers of `bench/README.md`."""

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.contenders import CONTENDERS, Contender, present
from bench.errors import BenchError
from bench.machine import ROOT, describe, wrk_version
from bench.results import C, Measurement, Verdict

README = ROOT / "bench" / "README.md"
HEADER = """\
| measure | Dari | peer | its number | ratio (lowest–highest round) | target | |
|---|--:|---|--:|--:|--:|---|"""


def table(measurements: Sequence[Measurement[C]]) -> str:
    return "\n".join([HEADER, *(rows(measurement) for measurement in measurements)])


def rows(measurement: Measurement[C]) -> str:
    return "\n".join([*(row(verdict) for verdict in measurement.verdicts()), *_limit_of(measurement)])


def promises(measurements: Sequence[Measurement[C]]) -> str:
    rows = [row for one in measurements for row in _promises_of(one)]
    return "\n".join([HEADER, *rows])


def numbers(measurements: Sequence[Measurement[C]]) -> str:
    """Every number of everyone; who was not measured in a row is not in it."""
    return "\n".join(["| measure | Dari | peers |", "|---|--:|---|", *map(number_row, measurements)])


def number_row(measurement: Measurement[C]) -> str:
    ours, *peers = measurement.contenders
    theirs = (f"{peer.title} {number(measurement.median(peer), measurement.unit)}" for peer in peers)
    return f"| {measurement.name} | {number(measurement.median(ours), measurement.unit)} | {', '.join(theirs)} |"


def missed(measurements: Sequence[Measurement[C]]) -> list[str]:
    """Every promise that does not hold, in words."""
    return [
        *(
            f"{verdict.measure} against {verdict.peer.title} ({verdict.target})"
            for one in measurements
            for verdict in one.verdicts()
            if verdict.missed
        ),
        *(f"{one.name} (≤ {one.limit:g} {one.unit})" for one in measurements if one.is_over_limit),
    ]


def count(measurements: Sequence[Measurement[C]]) -> int:
    """How many promises there are."""
    return sum(len(one.targets) + (one.limit is not None) for one in measurements)


def _promises_of(one: Measurement[C]) -> list[str]:
    return [*(row(verdict) for verdict in one.verdicts() if verdict.target is not None), *_limit_of(one)]


def _limit_of(one: Measurement[C]) -> list[str]:
    if one.limit is None:
        return []
    ours = number(one.median(one.ours), one.unit)
    mark = "missed" if one.is_over_limit else "met"
    return [f"| {one.name} | {ours} | – | | | ≤ {one.limit:g} {one.unit} | {mark} |"]


def circumstances(rounds: int, seconds: int, cold_starts: int) -> str:
    """Date, machine and versions of this run."""
    lines = [
        f"{datetime.now(UTC):%Y-%m-%d}; {describe()}; wrk {wrk_version()}; "
        f"median of {rounds} rounds of {seconds} s, {cold_starts} cold starts.",
        *(f"{contender.title}: {_versions(contender)}." for contender in present(CONTENDERS)),
    ]
    return "\n".join(f"- {line}" for line in lines)


def write(part: str, text: str, path: Path = README) -> None:
    """Replace the table of one benchmark."""
    first, last = f"<!-- bench {part}: begin -->", f"<!-- bench {part}: end -->"
    before, begin, rest = path.read_text().partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise BenchError(f"{path} has no {first} … {last}", "put the two markers back")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def row(verdict: Verdict) -> str:
    if verdict.ratios is None:
        ratio = "missing"
    else:
        low, middle, high = verdict.ratios
        ratio = f"**{_short(middle)}×**" + (f" ({_short(low)}–{_short(high)})" if low != high else "")
    mark = "" if verdict.target is None else "missed" if verdict.missed else "met"
    cells = (
        *(verdict.measure, number(verdict.ours, verdict.unit), verdict.peer.title),
        *(number(verdict.theirs, verdict.unit), ratio, str(verdict.target or "–"), mark),
    )
    return "| " + " | ".join(cells) + " |"


def number(value: float | None, unit: str) -> str:
    return "missing" if value is None else f"{value:,.{0 if value >= 100 else 1}f} {unit}"


def _short(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"


def _versions(contender: Contender) -> str:
    script = "import sys, importlib.metadata as m; print(', '.join(n + ' ' + m.version(n) for n in sys.argv[1:]))"
    reply = subprocess.run(
        [str(contender.python), "-c", script, *contender.packages], capture_output=True, text=True, timeout=30
    )
    return reply.stdout.strip() or "versions unknown"
