"""`./dev conformance [server|client] [--revision R] [--gateway stdio|http] [--suite all]`: the suite, as a table.

Results of the last run are in `.dev/conformance/<leg>-<revision>/`, one folder a scenario.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.conformance.serving import Upstream, everything_serving, gateway_serving
from tests.conformance.suite import (
    REVISIONS,
    ROOT,
    Leg,
    Report,
    Scenario,
    SuiteMissing,
    expected_failures,
    run_everything,
    run_requirements,
)

RESULTS = ROOT / ".dev" / "conformance"
LEGS: tuple[Leg, ...] = ("server", "client")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev conformance", description="The official MCP conformance suite.")
    parser.add_argument("leg", nargs="?", choices=LEGS, help="what is tested (default: both)")
    parser.add_argument("--revision", choices=REVISIONS, help="one protocol revision (default: both)")
    parser.add_argument("--suite", choices=("all",), help="everything, extensions too, against the expected failures")
    parser.add_argument("--gateway", choices=("stdio", "http"), help="our gateway, with the server as its child or URL")
    given = parser.parse_args(argv)
    if given.suite and given.revision:
        parser.error("--suite all runs every scenario at its own revision; leave --revision out")
    if given.gateway and (given.suite or given.leg == "client"):
        parser.error("--gateway goes with the required scenarios of the server")
    legs: tuple[Leg, ...] = ("server",) if given.gateway else LEGS if given.leg is None else (given.leg,)
    revisions = REVISIONS if given.revision is None else (given.revision,)
    try:
        # Lists, not generators: a failing leg must not keep the next one from running.
        if given.suite:
            passed = [_run_suite(leg) for leg in legs]
        else:
            passed = [_run_revision(leg, revision, given.gateway) for leg in legs for revision in revisions]
    except (SuiteMissing, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if all(passed) else 1


def _run_revision(leg: Leg, revision: str, gateway: Upstream | None) -> bool:
    results = _emptied(f"{leg}-{revision}" + (f"-gateway-{gateway}" if gateway else ""))
    started = time.monotonic()
    with ExitStack() as stack:
        serving = None
        if gateway:
            serving = stack.enter_context(gateway_serving(results / "gateway", gateway))
        elif leg == "server":
            serving = stack.enter_context(everything_serving(results / "server.log"))
        report = run_requirements(leg, revision, results, serving.url if serving else "")
    trouble = serving.trouble() if serving else ""
    (results / "output.txt").write_text(report.output)
    if gateway:
        print(f"through the gateway, {gateway} upstream")
    print("\n".join(table(report, time.monotonic() - started)) + f"\n{trouble}", flush=True)
    return report.is_conformant and not trouble


def _run_suite(leg: Leg) -> bool:
    results = _emptied(f"{leg}-all")
    with ExitStack() as stack:
        serving = stack.enter_context(everything_serving(results / "server.log")) if leg == "server" else None
        done = run_everything(leg, results, serving.url if serving else "")
    trouble = serving.trouble() if serving else ""
    (results / "output.txt").write_text(done.stdout)
    _, marker, summary = done.stdout.rpartition("SUMMARY ===")
    print(f"{leg}, every scenario\n{(summary if marker else done.stdout).strip()}\n{trouble}", flush=True)
    return done.returncode == 0 and not trouble


def table(report: Report, took_s: float) -> list[str]:
    """One line for what counts, one for what does not, then what failed and why."""
    lines = [f"{report.leg} {report.revision}   {'passed' if report.is_conformant else 'FAILED'} in {took_s:.1f} s"]
    for title, scenarios in (("required", report.required), ("not scored", report.unscored)):
        passed = sum(scenario.has_passed for scenario in scenarios)
        counts = [sum(len(s.with_status(status)) for s in scenarios) for status in ("SUCCESS", "FAILURE", "WARNING")]
        checks = "{} checks passed, {} failed, {} warnings".format(*counts)
        lines.append(f"  {title:<11} {passed:>3} of {len(scenarios):>3} scenarios passed   {checks}")
    chosen = expected_failures(report.leg)
    expected = [s.name for s in report.unscored if s.name in chosen and not s.has_passed]
    lines += [line for s in report.required + report.unscored if s.name not in expected for line in complaints(s)]
    if expected:
        lines.append(f"    not built, as expected-failures.yml explains: {', '.join(expected)}")
    return lines


def complaints(scenario: Scenario) -> list[str]:
    """What is wrong with a scenario; warnings too, because the suite warns of what a SHOULD asks."""
    if scenario.has_passed and not scenario.with_status("WARNING"):
        return []
    kind = "required" if scenario.is_required else "not scored"
    lines = [f"    {'warning' if scenario.has_passed else 'FAILED'}  {scenario.name} ({kind})"]
    found = [*scenario.failures, *scenario.with_status("WARNING")]
    lines += [f"        {check.id}: {check.error_message or check.description}" for check in found]
    if not found:
        lines.append("        no check succeeded")
    if scenario.said and not scenario.has_passed:
        lines.append(f"        our client said: {scenario.said}")
    return lines


def _emptied(name: str) -> Path:
    folder = RESULTS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    raise SystemExit(main())
