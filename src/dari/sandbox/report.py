"""What of a confinement this machine enforces, aspect by aspect, for people and for `enforce`."""

from __future__ import annotations

from dataclasses import dataclass

from dari.errors import Unavailable
from dari.sandbox.capabilities import SandboxCapabilities, probe_capabilities
from dari.sandbox.confinement import Confinement


@dataclass(frozen=True, slots=True)
class Enforcement:
    aspect: str
    """reads, writes, tcp, udp, unix sockets, signals, escape."""
    by: str
    """What enforces it; empty when nothing does."""
    note: str = ""
    """Why nothing does, or what remains open all the same."""
    is_wanted: bool = True
    """Whether the profile asks for it; `enforce` refuses to start when such a one is not enforced."""

    @property
    def is_enforced(self) -> bool:
        return bool(self.by)


def assess(confinement: Confinement, machine: SandboxCapabilities) -> list[Enforcement]:
    if confinement.is_off:
        return []
    if machine.system == "linux":
        return _on_linux(confinement, machine)
    if machine.system == "darwin":
        return _on_macos(confinement, machine)
    return _on_windows(confinement)


def require_enforced(confinement: Confinement, findings: list[Enforcement]) -> list[str]:
    """The warnings for `auto`; under `enforce` they are an error."""
    missing = [finding for finding in findings if finding.is_wanted and not finding.is_enforced]
    if missing and confinement.mode == "enforce":
        what = "; ".join(f"{finding.aspect} ({finding.note})" for finding in missing)
        raise Unavailable(
            f"the sandbox cannot be enforced on this machine: {what}", "set sandbox to auto to run it with less"
        )
    return [f"{finding.aspect} not confined: {finding.note}" for finding in missing]


def uses_broker(confinement: Confinement, machine: SandboxCapabilities) -> bool:
    """Whether the kernel asks us where a socket is to lead. With unix sockets open it would have to lead those, too,
    in our name."""
    return confinement.network == "loopback" and machine.can_ask and not confinement.unix_sockets


def wraps_in_bubblewrap(confinement: Confinement, machine: SandboxCapabilities) -> bool:
    """Whether bubblewrap takes part: wherever it can, since only a mount hides our own folders from a child that may
    use the rest of the file system."""
    return bool(machine.bubblewrap) and confinement.uses_bubblewrap and not confinement.is_off


def _on_linux(confinement: Confinement, machine: SandboxCapabilities) -> list[Enforcement]:
    abi, wraps = machine.landlock_abi, wraps_in_bubblewrap(confinement, machine)
    confines = confinement.paths is not None
    filters = "seccomp" if machine.has_seccomp else ""
    names = [f"landlock {abi}"] * bool(abi and confines) + ["bubblewrap"] * (wraps and confines)
    no_paths = (
        "the profile names no allowedPaths" if not confines else f"no Landlock, bubblewrap {machine.bubblewrap_note}"
    )
    truncation = "" if abi >= 3 or wraps or not names else "Landlock below 3 lets a file outside be emptied by its path"
    no_filter = f"no seccomp filter for {machine.arch}"
    findings = [
        Enforcement("reads", " + ".join(names), "" if names else no_paths, confines),
        Enforcement(
            "writes", "" if truncation else " + ".join(names), truncation or ("" if names else no_paths), confines
        ),
    ]
    wants_net = confinement.network != "all"
    if confinement.network == "loopback":
        if uses_broker(confinement, machine):
            by, note = "seccomp, each address asked", "no UDP, and so no DNS"
        elif wraps and filters:
            by, note = "bubblewrap network namespace + seccomp", "its own loopback, not the machine's"
        else:
            by, note = "", f"the kernel cannot ask us about addresses; bubblewrap {machine.bubblewrap_note}"
        findings.append(Enforcement("network", by, note))
    else:
        note = "the profile allows it" if not wants_net else "" if filters else no_filter
        tcp = " + ".join([filters] * bool(filters) + [f"landlock {abi}"] * (abi >= 4)) if wants_net else ""
        findings.append(Enforcement("tcp", tcp, "" if tcp else note, wants_net))
        findings.append(Enforcement("udp", filters if wants_net else "", note, wants_net))
    if confinement.unix_sockets:
        findings.append(Enforcement("unix sockets", "", "the profile allows them, our own daemons' included", False))
    else:
        by = " + ".join([filters] * bool(filters) + [f"landlock {abi}"] * (abi >= 9 and confines))
        findings.append(Enforcement("unix sockets", by, "" if by else no_filter))
    signals = " + ".join([f"landlock {abi}"] * (abi >= 6) + ["pid namespace"] * wraps)
    findings.append(
        Enforcement("signals to others", signals, "" if signals else "needs Landlock 6 or bubblewrap", False)
    )
    has_domain = abi and (confines or abi >= 6 or (abi >= 4 and wants_net))
    memory = " + ".join(
        ["seccomp"] * bool(filters) + [f"landlock {abi}"] * bool(has_domain) + ["pid namespace"] * wraps
    )
    gap = "" if has_domain or wraps else "/proc/<pid>/mem of the same user stays open where Yama does not forbid it"
    findings.append(Enforcement("memory of others", "" if gap else memory, gap, False))
    escape = "pid namespace" if wraps else "guardian (environment and limit marks)"
    findings.append(Enforcement("nothing survives", escape, "", False))
    return findings


def _on_macos(confinement: Confinement, machine: SandboxCapabilities) -> list[Enforcement]:
    by = "sandbox-exec" if machine.sandbox_exec else ""
    lacks = "" if by else "no sandbox-exec on this Mac"
    confines, wants_net = confinement.paths is not None, confinement.network != "all"
    return [
        Enforcement("reads", by if confines else "", lacks, confines),
        Enforcement("writes", by if confines else "", lacks, confines),
        Enforcement("network", by if wants_net else "", lacks, wants_net),
        Enforcement("unix sockets", by if not confinement.unix_sockets else "", lacks, not confinement.unix_sockets),
        Enforcement("nothing survives", "guardian (process groups)", "a process that calls setsid can stay", False),
    ]


def _on_windows(confinement: Confinement) -> list[Enforcement]:
    note = "Windows has a job object for the processes, and nothing for paths and network"
    confines, wants_net = confinement.paths is not None, confinement.network != "all"
    return [
        Enforcement("reads", "", note, confines),
        Enforcement("writes", "", note, confines),
        Enforcement("network", "", note, wants_net),
        Enforcement("unix sockets", "", note, not confinement.unix_sockets),
        Enforcement("nothing survives", "job object", "", False),
    ]


_STRICTEST = Confinement(mode="enforce", paths=(), network="none")


@dataclass(frozen=True, slots=True)
class SandboxReport:
    machine: SandboxCapabilities
    findings: tuple[Enforcement, ...]

    def lines(self) -> list[str]:
        """For people, one aspect a line."""
        return [_line(finding) for finding in self.findings]


def build_report(confinement: Confinement = _STRICTEST, machine: SandboxCapabilities | None = None) -> SandboxReport:
    """For one profile, or for the strictest one there can be."""
    machine = probe_capabilities() if machine is None else machine
    findings = assess(confinement, machine)
    if machine.system == "linux" and confinement is _STRICTEST:
        loopback = assess(Confinement(mode="enforce", network="loopback"), machine)
        network = next(finding for finding in loopback if finding.aspect == "network")
        findings.append(Enforcement("loopback only", network.by, network.note, is_wanted=False))
    return SandboxReport(machine, tuple(findings))


def _line(finding: Enforcement) -> str:
    verdict = f"enforced by {finding.by}" if finding.is_enforced else "NOT enforced"
    return f"{finding.aspect}: {verdict}" + (f" ({finding.note})" if finding.note else "")
