"""Find the program of a command before anything is started, or raise the reason."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from dari.errors import Unavailable

# How the launchers that people name in profiles are had.
_HINTS = {
    "npx": "install Node.js, or name the full path of npx",
    "node": "install Node.js, or name the full path of node",
    "uvx": "install uv: pip install 'dari[uv]' (or uv itself), or name the full path of uvx",
    "uv": "install uv (pip install uv), or name its full path",
    "docker": "install Docker, or name the full path of docker",
    "python": "name python3, or the full path of an interpreter",
}
_BESIDE_US = ("uv", "uvx")


def find_program(name: str, environment: Mapping[str, str], cwd: Path | None = None) -> Path:
    """The absolute path that `name` stands for, as the child would look for it: its PATH, its directory.

    The last part is not resolved: a launcher looks at the name by which it was called (busybox, a venv's python).
    """
    here = Path.cwd() if cwd is None else cwd
    if not os.path.isdir(here):
        raise Unavailable(f"cannot run {name!r} in {here}: no such directory", "correct cwd, or create it")
    if os.sep in name or (os.altsep and os.altsep in name):
        return _checked(Path(os.path.normpath(here / name)), name)
    path = environment.get("PATH", os.defpath)
    # A relative entry of PATH is looked up where the child will be, not where we are.
    places = os.pathsep.join(os.path.join(here, place) for place in path.split(os.pathsep) if place)
    import shutil  # 3 ms that a server with HTTP does not need

    found = shutil.which(name, path=places)
    if found is None and name in _BESIDE_US:
        # `pip install 'dari[uv]'` puts it beside our own interpreter, where a child's PATH does not lead.
        found = shutil.which(name, path=os.path.dirname(sys.executable))
    if found is not None:
        return Path(found)
    for place in places.split(os.pathsep):
        if os.path.isfile(candidate := Path(place, name)):
            return _checked(candidate, name)
    hint = _HINTS.get(name, f"name its full path; the child's PATH is {path or '(empty)'}")
    raise Unavailable(f"cannot run {name!r}: not found on the child's PATH", hint)


def _checked(path: Path, name: str) -> Path:
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise Unavailable(f"cannot run {name!r}: {path} does not exist", "check the path of the command") from None
    except OSError as error:
        raise Unavailable(f"cannot run {name!r}: {path}: {error.strerror}", "check who may use its folders") from None
    if is_folder:
        raise Unavailable(f"cannot run {name!r}: {path} is a directory", "name the program inside it")
    if not os.access(path, os.X_OK):
        raise Unavailable(f"cannot run {name!r}: {path} is not executable", f"chmod +x {path}, or run its interpreter")
    return path
