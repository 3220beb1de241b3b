"""bubblewrap: the same rules as namespaces. What is not allowed is not mounted, and the end of the
namespace's first process is the end of every process in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# Mounted anew inside; Landlock needs rules for them from there.
FRESH = ("/proc", "/dev", "/tmp")
ROOT = Path("/")
_MADE = ("/proc", "/dev")


def bubblewrap_command(
    bubblewrap: str,
    *,
    readable: Iterable[Path],
    writable: Iterable[Path],
    hidden: Iterable[Path],
    has_network: bool,
    cwd: Path,
) -> list[str]:
    """The words to put before a command."""
    command = [bubblewrap, "--unshare-pid", "--unshare-ipc", "--die-with-parent"]
    if not has_network:
        command.append("--unshare-net")
    wanted = {**dict.fromkeys(readable, False), **dict.fromkeys(writable, True)}
    bound: dict[Path, bool] = {}
    if ROOT in wanted:  # only the network and the processes are to be confined
        bound[ROOT] = wanted[ROOT]
        command += [
            "--bind" if wanted[ROOT] else "--ro-bind",
            "/",
            "/",
            *(["--dev-bind", "/dev", "/dev"] if wanted[ROOT] else ["--dev", "/dev"]),
            "--proc",
            "/proc",
        ]
    else:
        command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    # Outer folders first: a mount over an inner one would hide it.
    for path, may_write in sorted(wanted.items(), key=lambda item: len(item[0].parts)):
        if any(map(path.is_relative_to, _MADE)) or _covers(bound, path, may_write):
            continue
        command += ["--bind" if may_write else "--ro-bind", str(path), str(path)]
        bound[path] = may_write
    for path in sorted(hidden):
        if _covers(bound, path, False):
            command += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    if not _covers(bound, cwd, False):
        command += ["--dir", str(cwd)]
    return [*command, "--chdir", str(cwd), "--"]


def _covers(bound: dict[Path, bool], path: Path, may_write: bool) -> bool:
    """Whether the nearest folder that is bound already gives as much."""
    for folder in (path, *path.parents):
        if folder in bound:
            return bound[folder] or not may_write
    return False
