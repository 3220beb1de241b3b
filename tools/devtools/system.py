"""Programs that come from the system's packages, not from PyPI or npm."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from devtools.workspace import attempt, say


def ensure_programs(*packages: str) -> list[str]:
    """Each package is named like its program; those that could not be installed."""
    return _ensure([package for package in packages if shutil.which(package) is None])


def ensure_files(packages: Mapping[str, str]) -> list[str]:
    """Debian's package for each file that is not there; those that could not be installed."""
    return _ensure(sorted({package for file, package in packages.items() if not Path(file).exists()}))


def _ensure(missing: list[str]) -> list[str]:
    if not missing or apt_install(*missing):
        return []
    say(f"not on this machine: {', '.join(missing)}\nhint: install with your system's package manager")
    return missing


def apt_install(*packages: str) -> bool:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    # In run level 1 a package starts no service of its own: nginx would take port 80.
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    say(f"apt-get install {' '.join(packages)}")
    failed = attempt(command, env)
    if failed is not None:  # no package list yet, or an old one
        attempt(["apt-get", "update"], env)
        failed = attempt(command, env)
    if failed is not None:
        say(failed)
    return failed is None
