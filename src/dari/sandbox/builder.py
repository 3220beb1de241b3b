"""Build the command line that starts a program confined, and the descriptors it inherits."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dari.errors import Denied
from dari.sandbox import bubblewrap, landlock, launcher, seatbelt, seccomp, system_paths
from dari.sandbox.capabilities import SandboxCapabilities, probe_capabilities
from dari.sandbox.confinement import Confinement
from dari.sandbox.report import Enforcement, assess, require_enforced, uses_broker, wraps_in_bubblewrap


@dataclass(slots=True)
class SandboxedCommand:
    """A command that is ready to start. `hand_over` after the start, `discard` when the child has ended."""

    command: list[str]
    environment: dict[str, str]
    findings: list[Enforcement] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    status: int = -1
    """The end to read: the launcher's complaint, or nothing once the program runs. -1: started directly."""
    is_wrapped: bool = False
    """Whether bubblewrap stands between us and the program."""
    inherited: list[int] = field(default_factory=list)
    scratch: Path | None = None
    broker_socket: socket.socket | None = None
    """Where the launcher hands over the descriptor of a filter that asks."""

    def hand_over(self) -> None:
        """The child has its descriptors; ours can go."""
        while self.inherited:
            os.close(self.inherited.pop())

    def discard(self) -> None:
        self.hand_over()
        if self.status >= 0:
            os.close(self.status)
            self.status = -1
        if self.broker_socket is not None:
            self.broker_socket.close()
            self.broker_socket = None
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.scratch = None


def build_command(
    program: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    confinement: Confinement,
    *,
    limits: Sequence[tuple[int, int]] = (),
    protected: Sequence[Path] = (),
    machine: SandboxCapabilities | None = None,
) -> SandboxedCommand:
    """`arguments` come after the program's name. Fails closed where the mode is `enforce`."""
    machine = probe_capabilities() if machine is None else machine
    findings = assess(confinement, machine)
    warnings = require_enforced(confinement, findings)
    protected = _present(protected)
    if not confinement.is_off:
        warnings += _guard(
            confinement,
            protected,
            can_hide=wraps_in_bubblewrap(confinement, machine) or _is_seatbelt(machine) or confinement.reads_all,
        )
        warnings += _unhidden(confinement, protected, machine)
    prepared = SandboxedCommand([str(program), *arguments], dict(environment), findings, warnings)
    try:
        if machine.system == "linux" and (limits or not confinement.is_off):
            _prepare_linux(prepared, program, arguments, cwd, confinement, limits, protected, machine)
        elif machine.system == "darwin" and machine.sandbox_exec and not confinement.is_off:
            installation = system_paths.installation_of(program, arguments, environment, cwd)
            rules = seatbelt.seatbelt_profile(confinement, installation, protected)
            prepared.command = [machine.sandbox_exec, "-p", rules, *prepared.command]
    except BaseException:
        prepared.discard()
        raise
    return prepared


def _ca_files(environment: Mapping[str, str]) -> list[Path]:
    """The certificates that the child's environment names: it has to be able to read them."""
    named = [Path(os.path.realpath(environment[name])) for name in system_paths.CA_FILES if environment.get(name)]
    return [path for path in named if path.exists() and path != Path("/") and not Path.home().is_relative_to(path)]


def _present(protected: Sequence[Path]) -> list[Path]:
    """What is there of our own, by its real path: there is nothing to mount over what is not."""
    found = dict.fromkeys(Path(os.path.realpath(path)) for path in protected)
    return [path for path in found if path.exists() and path != Path("/")]


def _is_seatbelt(machine: SandboxCapabilities) -> bool:
    return machine.system == "darwin" and bool(machine.sandbox_exec)


def _unhidden(confinement: Confinement, protected: Sequence[Path], machine: SandboxCapabilities) -> list[str]:
    """Where the file system is left as it is, our own folders have to be taken out of it."""
    can_hide = wraps_in_bubblewrap(confinement, machine) or machine.landlock_abi or _is_seatbelt(machine)
    if confinement.paths is not None or can_hide or not protected:
        return []
    message = "Dari's own folders, with its tokens, stay readable: there is neither bubblewrap nor Landlock"
    if confinement.mode == "enforce":
        raise Denied(message, "install bubblewrap, or name allowedPaths")
    return [message]


def _guard(confinement: Confinement, protected: Sequence[Path], *, can_hide: bool) -> list[str]:
    """Our own files (tokens, sockets, the audit log) lie outside of what a child may see."""
    warnings = []
    for ours in (Path(os.path.realpath(path)) for path in protected):
        for allowed in confinement.paths or ():
            is_inside = allowed.path.is_relative_to(ours)
            if not is_inside and (can_hide or not ours.is_relative_to(allowed.path)):
                continue
            message = (
                f"allowedPaths has {allowed.path}, which {'is within' if is_inside else 'holds'} {ours} of Dari's own"
            )
            if confinement.mode == "enforce":
                raise Denied(message, "allow the folders that the server needs, one by one, or install bubblewrap")
            warnings.append(message)
    return warnings


def _prepare_linux(
    prepared: SandboxedCommand,
    program: Path,
    arguments: Sequence[str],
    cwd: Path,
    confinement: Confinement,
    limits: Sequence[tuple[int, int]],
    protected: Sequence[Path],
    machine: SandboxCapabilities,
) -> None:
    orders = [f"limit {kind} {value}" for kind, value in limits]
    if "LC_CTYPE" not in prepared.environment:
        orders.append("unset LC_CTYPE")
    wrapping: list[str] = []
    if not confinement.is_off:
        if confinement.paths is not None and confinement.is_private_tmp:
            prepared.scratch = Path(tempfile.mkdtemp(prefix="dari-child-"))
            prepared.environment["TMPDIR"] = str(prepared.scratch)
        readable = [
            *system_paths.readable_paths(),
            *system_paths.installation_of(program, arguments, prepared.environment, cwd),
            *_ca_files(prepared.environment),
            *(allowed.path for allowed in confinement.paths or () if allowed.access == "ro"),
        ]
        if confinement.reads_all:
            readable = [bubblewrap.ROOT]
        writable = [allowed.path for allowed in confinement.paths or () if allowed.access == "rw"]
        writable += [prepared.scratch] if prepared.scratch is not None else []
        if wraps_in_bubblewrap(confinement, machine):
            prepared.is_wrapped = True
            confines = confinement.paths is not None
            wrapping = bubblewrap.bubblewrap_command(
                machine.bubblewrap,
                readable=[*readable, *_launcher_paths()] if confines else [],
                writable=writable if confines else [Path("/")],
                hidden=protected,
                has_network=confinement.network == "all" or uses_broker(confinement, machine),
                cwd=cwd,
            )
        orders += ["no-new-privileges", "capabilities"]
        orders += ["ready-to-hand-over"] * uses_broker(confinement, machine)
        orders += _landlock_orders(prepared, confinement, readable, writable, protected, machine)
        orders += _filter_orders(prepared, confinement, machine)
    prepared.status, status = os.pipe()
    reading = _pipe_with("\n".join(orders))
    prepared.inherited += [status, reading]
    python = [sys.executable, "-IS", str(_launcher()), str(status), str(reading)]
    prepared.command = [*wrapping, *python, str(program), str(program), *arguments]


def _filter_orders(prepared: SandboxedCommand, confinement: Confinement, machine: SandboxCapabilities) -> list[str]:
    if not machine.has_seccomp:
        return []
    asks = uses_broker(confinement, machine)
    code = seccomp.build_filter(
        confinement.network, unix_sockets=confinement.unix_sockets, machine=machine.arch, asks=asks
    )
    if not asks:
        return [f"seccomp {code.hex()}"]
    prepared.broker_socket, theirs = socket.socketpair()
    prepared.inherited.append(theirs.detach())
    return [f"seccomp-asking {seccomp.ARCHES[machine.arch].seccomp} {prepared.inherited[-1]} {code.hex()}"]


def _landlock_orders(
    prepared: SandboxedCommand,
    confinement: Confinement,
    readable: Sequence[Path],
    writable: Sequence[Path],
    protected: Sequence[Path],
    machine: SandboxCapabilities,
) -> list[str]:
    if not machine.landlock_abi:
        return []
    confines = confinement.paths is not None
    hides = not confines and not prepared.is_wrapped and bool(protected)
    rules = landlock.Ruleset(
        paths=confines or hides,
        tcp=confinement.network == "none",
        unix=not confinement.unix_sockets,
        version=machine.landlock_abi,
    )
    if rules.is_empty:
        return []
    prepared.inherited.append(rules.descriptor)
    orders = []
    if hides:
        landlock.allow_all_but(rules, protected, machine.landlock_abi)
    if confines:
        # Where no mount hides our own folders, all but them is granted.
        hidden = protected if confinement.reads_all and not prepared.is_wrapped else ()
        for path in readable:
            landlock.allow_all_but(rules, hidden, machine.landlock_abi, landlock.READ, path)
        for path in writable:
            landlock.allow_all_but(rules, hidden, machine.landlock_abi, landlock.WRITE, path)
        for device in (*map(Path, system_paths.DEVICES), *confinement.devices):
            if os.path.exists(device):
                rules.allow(device, landlock.DEVICE)
        if prepared.is_wrapped and not confinement.reads_all:
            known = landlock.handled_rights(machine.landlock_abi)
            rights = {"/proc": landlock.READ, "/dev": landlock.READ | landlock.DEVICE, "/tmp": landlock.WRITE}
            orders = [f"landlock-path {rules.descriptor} {rights[path] & known:d} {path}" for path in bubblewrap.FRESH]
        elif prepared.is_wrapped:
            known = landlock.handled_rights(machine.landlock_abi)
            rights = {"/proc": landlock.READ, "/dev": landlock.READ | landlock.DEVICE}
            orders = [f"landlock-path {rules.descriptor} {rights[path] & known:d} {path}" for path in rights]
    return [*orders, f"landlock {rules.descriptor}"]


def _launcher() -> Path:
    """Compiled, where Python has kept that: the source costs 3 ms more at every start."""
    compiled = launcher.__spec__.cached
    return Path(compiled if compiled and os.path.isfile(compiled) else launcher.__file__)


def _launcher_paths() -> list[Path]:
    """What the launcher itself needs inside the namespaces; Landlock takes it away again before the program runs."""
    python = system_paths.installation_of(Path(sys.executable), [], os.environ, Path("/"))
    return [*python, _launcher()]


def _pipe_with(text: str) -> int:
    """A descriptor that holds `text` and then its end. The orders of a child are a few kilobytes."""
    data = text.encode("utf-8", "surrogateescape")
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        if os.write(writing, data) != len(data):
            raise OSError("the orders do not fit into a pipe")
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return reading
