"""`./dev conformance terminal [probes|differential|fuzz|suites]`: the terminal's engines against everybody else.

Without a part: the probes, 3,000 streams beside @xterm/headless, 30 s of fuzz, and the suites if their files are
given (`--dir`, or DARI_TERMINAL_SUITES). Failures of fuzz are kept in `.dev/conformance/terminal/`.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.terminal.conformance import fuzz
from tests.terminal.conformance.differences import KNOWN
from tests.terminal.conformance.differential import compare, minimise, still_differs
from tests.terminal.conformance.mutations import make_round
from tests.terminal.conformance.oracle import OracleMissing, oracle
from tests.terminal.conformance.suites import alacritty, esctest, libvterm, vt100, xtermjs
from tests.terminal.conformance.suites.suite import Result, baselines

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / ".dev" / "conformance" / "terminal"
PROBES = ("tests/terminal/engine", "tests/terminal/conformance/test_probes.py")
SUITES = (xtermjs.SUITE, alacritty.SUITE, vt100.SUITE, libvterm.SUITE, esctest.SUITE)
PARTS = ("probes", "differential", "fuzz", "suites")
SHOWN = 5


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev conformance terminal", description="The terminal's engines.")
    parser.add_argument("part", nargs="?", choices=PARTS, help="one of them (default: all that can run)")
    parser.add_argument("--seed", type=int, help="of the streams or rounds (default: a new one, printed)")
    parser.add_argument("--streams", type=int, default=3000, help="how many streams are compared (default: 3000)")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the fuzz goes on (default: 30)")
    parser.add_argument("--replay", type=Path, help="play one saved round of the fuzz")
    parser.add_argument("--engine", choices=("ghostty", "bittty"), default="ghostty", help="for fuzz and suites")
    parser.add_argument("--dir", type=Path, help="where the files of outside suites lie (or DARI_TERMINAL_SUITES)")
    parser.add_argument("--failures", action="store_true", help="tell every failing case of the suites")
    given = parser.parse_args(argv)
    if given.dir is None and os.environ.get("DARI_TERMINAL_SUITES"):
        given.dir = Path(os.environ["DARI_TERMINAL_SUITES"])
    if given.part == "suites" and given.dir is None:
        parser.error("say where their files lie: --dir PATH or DARI_TERMINAL_SUITES")
    if given.seed is None:
        given.seed = random.SystemRandom().randrange(1_000_000)
    with tempfile.TemporaryDirectory(prefix="dari-conformance-") as home:
        # Engines keep what they parsed of their library in Dari's home; a person's own is left alone.
        os.environ["DARI_HOME"] = home
        runs = {"probes": _probes, "differential": _differential, "fuzz": _fuzz, "suites": _suites}
        # A list, not a generator: a failing part must not keep the next one from running.
        passed = [runs[part](given) for part in ([given.part] if given.part else PARTS)]
    return 0 if all(passed) else 1


def _probes(_: argparse.Namespace) -> bool:
    started = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *PROBES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    last = (done.stdout.strip() or done.stderr.strip() or "nothing was said").splitlines()[-1].strip("= ")
    if done.returncode:
        print(done.stdout)
    print(f"probes        {_word(done.returncode == 0)} in {time.monotonic() - started:.0f} s: {last}", flush=True)
    return done.returncode == 0


def _differential(given: argparse.Namespace) -> bool:
    started = time.monotonic()
    try:
        with oracle() as xterm:
            stale = [known.name for known in KNOWN if not still_differs(xterm, known) & known.aspects]
            outcome = compare(xterm, range(given.seed, given.seed + given.streams))
            shown = [minimise(xterm, found) for found in outcome.new[:SHOWN]]
    except OracleMissing as error:
        print(f"differential  {error}", file=sys.stderr)
        return False
    is_good = not outcome.new and not stale
    print(
        f"differential  {_word(is_good)} in {time.monotonic() - started:.0f} s: {outcome.streams} streams beside "
        f"@xterm/headless, seeds from {given.seed}; {outcome.equal} show the same, "
        f"{outcome.streams - outcome.equal - len(outcome.new)} differ in a known way, {len(outcome.new)} in a new one"
    )
    for name, count in outcome.known.most_common():
        print(f"    {count:>5}  {name}")
    for name in stale:
        print(f"    no longer true: {name} (take it out of differences.py)")
    for found in shown:
        print(str(found))
    sys.stdout.flush()
    return is_good


def _fuzz(given: argparse.Namespace) -> bool:
    if given.replay:
        return not fuzz.fails_in_child(fuzz.load(given.replay), given.engine)
    started = time.monotonic()
    report = fuzz.fuzz(given.seed, seconds=given.seconds, prefer=given.engine)
    is_good = report.failed_at is None
    print(
        f"fuzz          {_word(is_good)} in {time.monotonic() - started:.0f} s: {report.rounds} rounds, "
        f"{report.size / 1e6:.1f} MB through {given.engine}, seed {given.seed}",
        flush=True,
    )
    if report.failed_at is not None:
        print(f"    round {report.failed_at}: {report.how[:500]}", flush=True)
        made = make_round(fuzz.round_seed(given.seed, report.failed_at))
        whole = fuzz.save(made, RESULTS, f"fuzz-{given.seed}-{report.failed_at}")
        short = fuzz.shorten(made, lambda attempt: fuzz.fails_in_child(attempt, given.engine))
        saved = fuzz.save(short, RESULTS, f"fuzz-{given.seed}-{report.failed_at}-short")
        print(f"    saved: {whole.relative_to(ROOT)}, shortened to {short.size} bytes: {saved.relative_to(ROOT)}")
        print(f"    again: ./dev conformance terminal fuzz --replay {saved.relative_to(ROOT)}")
    return is_good


def _suites(given: argparse.Namespace) -> bool:
    if given.dir is None:
        print("suites        not asked for: --dir PATH or DARI_TERMINAL_SUITES says where their files lie")
        return True
    known = baselines(given.engine)
    is_good, ran = True, 0
    for suite in SUITES:
        files = suite.find(given.dir)
        if not files:
            print(f"suites        {suite.name} is not below {given.dir}")
            continue
        ran += 1
        started = time.monotonic()
        result = Result(suite.name, tuple(suite.run(files, given.engine)))
        baseline = known.get(suite.name)
        news = result.news(baseline)
        is_good &= not news
        before = f"{baseline.least} of {baseline.of} with {baseline.files}" if baseline else "no baseline"
        print(
            f"suites        {_word(not news)} in {time.monotonic() - started:.0f} s: {suite.name} through "
            f"{given.engine}: {result.passed} of {result.asked} pass ({before}), "
            f"{len(result.names('skipped'))} are not asked"
        )
        for line in news:
            print(f"    {line}")
        for name in result.mended(baseline):
            print(f"    passes now: {name} (take it out of baselines.json)")
        if given.failures:
            for case in result.cases:
                if case.status == "failed":
                    print(f"    failed: {case.name}: {case.why}")
        sys.stdout.flush()
    return is_good and ran > 0


def _word(is_good: bool) -> str:
    return "passed" if is_good else "FAILED"


if __name__ == "__main__":
    raise SystemExit(main())
