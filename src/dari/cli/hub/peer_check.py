"""Who may connect: processes of our own user that are not servers which we run ourselves.

A path in the file system is no wall for a connect(2): a sandboxed child that found the socket could drive us. The
kernel tells who connects, and `/proc` whose child that is.
"""

from __future__ import annotations

import os
import sys

from dari.daemon.ancestry import is_descendant
from dari.process.reaper_main import TAG_VARIABLE


def is_own_child(pid: int | None) -> bool:
    """A descendant, or one that bears the mark of a server that some bridge of ours started and that left its family.

    A pid that the kernel does not tell belongs to another namespace of processes, and only a sandbox has those.
    """
    if sys.platform != "linux":
        return False
    return pid is None or (pid != os.getpid() and is_descendant(pid, os.getpid())) or is_marked(pid)


def is_marked(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError:
        return False
    wanted = TAG_VARIABLE.encode() + b"="
    own = os.environ.get(TAG_VARIABLE, "").encode()
    for entry in environment.split(b"\0"):
        if entry.startswith(wanted):
            # A daemon may itself run below somebody's server; what runs beside it then bears the same marks.
            return entry[len(wanted) :] != own
    return False
