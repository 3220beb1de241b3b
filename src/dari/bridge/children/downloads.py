"""Programs that fetch a server before they run it: npx, uvx and their kind. A first start may take them minutes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from msgspec import Struct

MAX_DOWNLOAD_S = 600.0
"""The longest that a start with a download may take as a whole."""

# Program → the words after it that make it fetch and run a package; an empty tuple: always.
_FETCHERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "npx": ((),),
    "npm": (("exec",), ("x",)),
    "pnpm": (("dlx",), ("exec",)),
    "pnpx": ((),),
    "yarn": (("dlx",),),
    "bunx": ((),),
    "bun": (("x",), ("run",)),
    "uvx": ((),),
    "uv": (("tool", "run"), ("run",), ("x",)),
    "pipx": (("run",),),
    "deno": (("run",),),
    "docker": (("run",), ("container", "run"), ("compose", "run")),
    "podman": (("run",), ("container", "run")),
    "nerdctl": (("run",),),
    "go": (("run",),),
    "cargo": (("run",),),
    "dnx": ((),),
    "jbang": ((),),
}
_ENDINGS = (".exe", ".cmd", ".bat", ".ps1")
# Options of these programs that are followed by a value, which does not name a package.
_VALUED = frozenset(
    (
        *("-p", "--package", "-c", "--call", "--from", "--with", "--with-requirements", "--python", "--spec"),
        *("-e", "--env", "--env-file", "-v", "--volume", "--mount", "--name", "--network", "--platform"),
        *("-w", "--workdir", "-u", "--user", "--index", "--default-index", "--registry"),
        *("--cache", "--add-host", "--entrypoint", "--memory", "-m", "--cpus", "--pip-args", "--prefix"),
        *("--userconfig", "--directory", "--project"),
    )
)
_NAMING = frozenset({"-p", "--package", "--from", "--spec"})


class PackageDownload(Struct, frozen=True):
    """A command that may have to fetch what it runs."""

    program: str
    package: str
    """As far as the arguments tell; empty when they do not."""

    def __str__(self) -> str:
        return f"{self.program} may be downloading {self.package or 'what it runs'}"


def download_of(command: Sequence[str]) -> PackageDownload | None:
    """How a command fetches its server; None when it does not."""
    # `cmd /c npx …` is how profiles for Windows are written.
    if len(command) > 2 and _name(command[0]) == "cmd" and command[1].lower() == "/c":
        command = command[2:]
    # `env A=b npx …` is a way to set a variable.
    if command and _name(command[0]) == "env":
        rest = list(command[1:])
        while rest and ("=" in rest[0] or rest[0].startswith("-")):
            rest.pop(0)
        command = rest
    if not command:
        return None
    program = _name(command[0])
    words = list(command[1:])
    plain = [word for word in words if not word.startswith("-")]
    for form in _FETCHERS.get(program, ()):
        if tuple(plain[: len(form)]) == form:
            return PackageDownload(" ".join((program, *form)), _package(words, len(form)))
    return None


def _name(program: str) -> str:
    name = os.path.basename(program.replace("\\", "/")).lower()
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name


def _package(words: Sequence[str], skipped: int) -> str:
    """The first word that is neither a sub-command nor an option, or what an option names as the package."""
    after = iter(words)
    for word in after:
        name, equals, value = word.partition("=")
        if name in _NAMING:
            return _without_login(value if equals else next(after, ""))
        if word.startswith("-"):
            if word in _VALUED:
                next(after, None)
            continue
        if skipped:
            skipped -= 1
            continue
        if "://" in word and not word.startswith("git+"):
            continue  # the value of an option that is not known here
        return _without_login(word)
    return ""


def _without_login(package: str) -> str:
    return re.sub(r"//[^/@]*@", "//", package)
