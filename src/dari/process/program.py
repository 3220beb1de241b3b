"""What a child is started with: its program, found before anything is started, and an environment with next to
nothing of ours in it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from dari.errors import InvalidInput, Unavailable
from dari.sandbox.system_paths import CA_FILES

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


# What the official SDKs hand on, and LANG: without PATH neither `npx` nor `#!/usr/bin/env node` runs.
BASE_NAMES = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG")
# Windows starts no program without SYSTEMROOT; the others are where programs and profiles are looked for.
WINDOWS_BASE_NAMES = (
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
)

# How this machine reaches the network: a company's CA, its proxy. None of it is a right; a proxy's address may hold a
# password, which is masked in whatever we print (`network_secrets`).
PROXY_NAMES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)
NETWORK_NAMES = (*CA_FILES, *PROXY_NAMES, "NODE_USE_SYSTEM_CA", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "npm_config_proxy")


def network_secrets(environment: Mapping[str, str]) -> list[str]:
    """Passwords in the addresses of proxies, and the whole of `user:password`."""
    found = []
    for name in (*PROXY_NAMES, "npm_config_proxy"):
        login = environment.get(name, "").partition("://")[2].rpartition("@")[0]
        if ":" in login:
            found += [login, login.partition(":")[2]]
    return [one for one in found if one]


def build_environment(
    given: Mapping[str, str],
    inherited: Iterable[str] = (),
    source: Mapping[str, str] | None = None,
    platform: str = os.name,
) -> dict[str, str]:
    """Built from nothing: the base names, those that `inherited` names, and what is given, which wins.

    A value that starts with `()` is an exported shell function: code, not data, and never handed on.
    """
    source = os.environ if source is None else source
    names = (*(WINDOWS_BASE_NAMES if platform == "nt" else BASE_NAMES), *inherited)
    ours = {name: source[name] for name in names if name in source and not source[name].startswith("()")}
    for name, value in given.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise InvalidInput(f"{name!r} cannot be an environment variable", "no '=' in a name, no NUL in either")
    return {**ours, **given}
