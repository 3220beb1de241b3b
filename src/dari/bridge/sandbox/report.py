"""An honest answer to: what is enforced on this machine?"""

from __future__ import annotations

from dataclasses import dataclass

from dari.bridge.sandbox.confinement import Confinement
from dari.bridge.sandbox.findings import Finding, judge
from dari.bridge.sandbox.machine import Machine, this_machine

_STRICTEST = Confinement(mode="enforce", paths=(), network="none")


@dataclass(frozen=True, slots=True)
class Report:
    machine: Machine
    findings: tuple[Finding, ...]

    @property
    def can_enforce(self) -> bool:
        return all(finding.is_enforced for finding in self.findings if finding.is_wanted)

    def lines(self) -> list[str]:
        """For people, one aspect a line."""
        return [_line(finding) for finding in self.findings]


def report(confinement: Confinement = _STRICTEST, machine: Machine | None = None) -> Report:
    """For one profile, or for the strictest one there can be."""
    machine = this_machine() if machine is None else machine
    findings = judge(confinement, machine)
    if machine.system == "linux" and confinement is _STRICTEST:
        loopback = judge(Confinement(mode="enforce", network="loopback"), machine)
        network = next(finding for finding in loopback if finding.aspect == "network")
        findings.append(Finding("loopback only", network.by, network.note, is_wanted=False))
    return Report(machine, tuple(findings))


def _line(finding: Finding) -> str:
    verdict = f"enforced by {finding.by}" if finding.is_enforced else "NOT enforced"
    return f"{finding.aspect}: {verdict}" + (f" ({finding.note})" if finding.note else "")
