"""The sandbox of panes that agents open (`sandbox = "workspace"` in crux.toml).

The kernel lets such a pane write to its working folder and to a temporary folder of its own, read everything but our
own folders (tokens, sockets, state, configuration), and connect to no Unix socket. A working folder in which writing
would reach beyond the workspace (the home, its dot folders, the system) is only read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dari.errors import Unavailable
from dari.paths import own_paths
from dari.process.children import read_launch_status
from dari.process.program import find_program
from dari.sandbox.builder import SandboxedCommand, build_command
from dari.sandbox.capabilities import SandboxCapabilities, probe_capabilities
from dari.sandbox.confinement import Confinement, PathRule
from dari.sandbox.launcher import READY
from dari.terminal.panes.shell_integration import Launch

SIGNAL_SCOPE_ABI = 6
"""From here on Landlock does alone what the namespaces of bubblewrap would do, and the program keeps its pid."""
_SYSTEM = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
)


class WorkspaceSandbox:
    """`protected`: folders and files of ours besides the usual ones."""

    def __init__(self, protected: Sequence[Path] = (), machine: SandboxCapabilities | None = None) -> None:
        self._protected = tuple(protected)
        self._machine = machine

    def prepare(self, launch: Launch, cwd: str, tty: str) -> SandboxedCommand:
        """The command that starts the pane's program confined; Unavailable, with the reason, where that cannot be."""
        machine = probe_capabilities() if self._machine is None else self._machine
        folder = Path(os.path.realpath(cwd))
        writable = [PathRule.of(folder, "rw")] if is_workspace(folder) else []
        if control := launch.env.get("CRUX_CONTROL"):
            writable.append(PathRule.of(control, "rw"))
        confinement = Confinement(
            mode="enforce",
            paths=tuple(writable),
            reads_all=True,
            devices=(Path("/dev/tty"), Path(tty)),
            uses_bubblewrap=machine.landlock_abi < SIGNAL_SCOPE_ABI,
        )
        program = find_program(launch.argv[0], launch.env, folder)
        try:
            return build_command(
                program,
                launch.argv[1:],
                launch.env,
                folder,
                confinement,
                protected=(*self._protected, *own_paths()),
                machine=machine,
            )
        except Unavailable as error:
            raise Unavailable(
                f"the pane was not opened, since it cannot be confined: {error.message}",
                'use a kernel with Landlock or install bubblewrap; a person may set sandbox = "off" in crux.toml',
            ) from error

    async def await_launch(self, prepared: SandboxedCommand) -> None:
        """Return when the program runs confined; Unavailable with the reason when it was not started."""
        if prepared.status < 0:
            return
        status = await read_launch_status(prepared.status)
        if status != READY:
            what = status.removeprefix(READY).partition(" ")[2] or "the sandbox ended before the program began"
            raise Unavailable(
                f"the pane was not opened: {what}", "dari remote doctor shows what this machine can confine"
            )

    def find_program_pid(self, prepared: SandboxedCommand, pid: int) -> int:
        """The process of the program itself. Below bubblewrap that is the child of the namespace's first process."""
        if not prepared.is_wrapped:
            return pid
        for _ in range(2):
            try:
                pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
            except (OSError, IndexError):
                break  # it has ended already
        return pid


def is_workspace(folder: Path) -> bool:
    """Whether an agent may write there: below no dot folder of the home, and neither the home, above it nor the
    system, where files lie that a person's own shell and programs read."""
    home = Path(os.path.realpath(os.path.expanduser("~")))
    if home.is_relative_to(folder):
        return False
    if folder.is_relative_to(home):
        return not folder.relative_to(home).parts[0].startswith(".")
    return not any(folder.is_relative_to(each) for each in _SYSTEM)
