"""What every confined program may read: the system's programs and libraries, its own
installation, and a few files without which nothing resolves a name or tells the time.

The list is in docs/guide/sandbox.md; a test holds the two together.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/snap"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload"),
    *("/etc/ssl", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/pki", "/etc/crypto-policies"),
    *("/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services"),
    *("/etc/passwd", "/etc/group", "/etc/protocols", "/etc/localtime", "/etc/timezone", "/etc/os-release"),
    *("/etc/mime.types", "/etc/magic", "/etc/fonts", "/etc/locale.alias", "/etc/inputrc", "/etc/terminfo"),
    *("/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/uptime"),
    *("/proc/version", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/random", "/proc/sys/vm/overcommit_memory"),
    *("/sys/devices/system/cpu", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max"),
)
# Variables that name a file or a folder of certificates; a child that gets one may read it.
CA_FILES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT"),
    *("AWS_CA_BUNDLE", "GIT_SSL_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "DENO_CERT", "npm_config_cafile"),
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_PARTS_OF_A_PREFIX = ("bin", "lib", "lib64", "libexec", "share/pyenv")
_MAX_INTERPRETERS = 4
_INTERPRETERS = re.compile(r"(?:python|pypy|node|nodejs|bun|deno|tsx|ruby|perl|php|lua|bash|dash|sh|zsh)[\d.]*")
_PROJECT_FILES = ("package.json", "pyproject.toml", "setup.py", "deno.json", "Cargo.toml", "go.mod")


def readable_paths() -> list[Path]:
    """Those of the list that are here."""
    return [Path(path) for path in READABLE if os.path.exists(path)]


def installation_of(program: Path, arguments: Sequence[str], environment: Mapping[str, str], cwd: Path) -> list[Path]:
    """Where the program, the interpreter of its first line and the script it is given are installed.

    A folder that is somebody's home, or holds all of them, is never among them.
    """
    places: list[Path] = []
    for _ in range(_MAX_INTERPRETERS):
        places += _around(program)
        following = _interpreter(program, environment)
        if following is None:
            break
        program = following
    script = next((cwd / argument for argument in arguments if not argument.startswith("-")), None)
    # Only an interpreter's first word is code; that of another program is data, for the profile to allow.
    if script is not None and _INTERPRETERS.fullmatch(program.name) and os.path.isfile(script):
        places += _around_script(Path(os.path.realpath(script)))
    return list(dict.fromkeys(place for place in places if os.path.exists(place)))


def _around(program: Path) -> list[Path]:
    """The file by every name it has, its virtual environment, and the libraries of its prefix."""
    real = Path(os.path.realpath(program))
    places = [program, real]
    for folder in {program.parent, real.parent}:
        prefix = folder.parent
        if os.path.isfile(prefix / "pyvenv.cfg"):
            places += [prefix, *_base_of(prefix / "pyvenv.cfg")]
        elif folder.name in ("bin", "sbin", "libexec") and not _is_too_wide(prefix):
            places += [prefix / part for part in _PARTS_OF_A_PREFIX]
    if _is_text(real):
        places += _around_script(real)
    return places


def _around_script(script: Path) -> list[Path]:
    """A script with the project or the `node_modules` it belongs to."""
    parts = script.parts
    if "node_modules" in parts:
        return [script, Path(*parts[: parts.index("node_modules") + 1])]
    for folder in script.parents:
        if _is_too_wide(folder):
            break
        if any(os.path.isfile(folder / name) for name in _PROJECT_FILES):
            return [script, folder]
    return [script] if _is_too_wide(script.parent) else [script, script.parent]


def _base_of(configuration: Path) -> list[Path]:
    """The interpreter that a virtual environment was made with."""
    found = re.search(r"^home\s*=\s*(.+?)\s*$", configuration.read_text("utf-8", "replace"), re.MULTILINE)
    if found is None:
        return []
    folder = Path(os.path.realpath(found[1]))
    return [folder] if _is_too_wide(folder.parent) else [folder.parent / part for part in _PARTS_OF_A_PREFIX]


def _interpreter(program: Path, environment: Mapping[str, str]) -> Path | None:
    """What `#!` names; behind `env`, what PATH finds."""
    try:
        with program.open("rb") as file:
            line = file.readline(512)
    except OSError:
        return None
    if not line.startswith(b"#!"):
        return None
    words = os.fsdecode(line[2:]).split()
    if words and os.path.basename(words[0]) == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        found = shutil.which(names[0], path=environment.get("PATH", os.defpath)) if names else None
        return Path(found) if found else None
    return Path(words[0]) if words and os.path.exists(words[0]) else None


def _is_text(program: Path) -> bool:
    try:
        with program.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _is_too_wide(folder: Path) -> bool:
    """A home, what holds homes, the root: no installation, whatever lies in it."""
    home = Path(os.path.realpath(os.path.expanduser("~")))
    return (
        home.is_relative_to(folder)
        or folder.parent == folder
        or str(folder) in ("/tmp", "/var", "/var/tmp", "/opt", "/srv", "/mnt", "/run", "/home", "/etc")
    )
