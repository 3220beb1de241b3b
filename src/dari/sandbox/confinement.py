"""The confinement of a child process: paths, network and sockets it may use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from msgspec import Struct

from dari.errors import InvalidInput

SandboxMode = Literal["auto", "enforce", "off"]
NetworkAccess = Literal["none", "loopback", "all"]
PathAccess = Literal["ro", "rw"]


class PathRule(Struct, frozen=True):
    """A file or a folder with everything below it. Absolute, without `..` and without symlinks."""

    path: Path
    access: PathAccess = "ro"

    @classmethod
    def of(cls, path: str | Path, access: PathAccess = "ro", cwd: Path | None = None) -> PathRule:
        """What the profile wrote, resolved: `~`, a path relative to `cwd`, `..` and every symlink on the way."""
        if access not in ("ro", "rw"):
            raise InvalidInput(f"the access mode of {path} must be 'ro' or 'rw', got {access!r}", 'use "ro" or "rw"')
        return cls(resolve_path(path, cwd), access)


class Confinement(Struct, frozen=True):
    mode: SandboxMode = "auto"
    """auto: as much as this machine can, with a warning for the rest; enforce: all of it or no start; off: nothing."""
    paths: tuple[PathRule, ...] | None = None
    """None leaves the file system as it is; an empty tuple allows what the program needs to run and no more."""
    network: NetworkAccess = "all"
    unix_sockets: bool = False
    """Sockets of this machine (D-Bus, Docker, ssh-agent, our own daemons): closed unless a profile opens them."""
    is_private_tmp: bool = True
    """A temporary folder of its own, as TMPDIR, removed at the end. Only where `paths` is given."""
    uses_bubblewrap: bool = True
    """Add namespaces where bubblewrap is installed and the profile confines paths."""
    reads_all: bool = False
    """Everything but our own folders may be read. `paths` then says what may be written."""
    devices: tuple[Path, ...] = ()
    """Device files to open besides /dev/null and its kin: the terminal of a pane."""

    @property
    def is_off(self) -> bool:
        return self.mode == "off"

    def permits(self, path: str | Path, *, writing: bool = False, cwd: Path | None = None) -> bool:
        """Whether a path that a caller names lies within what is allowed. The kernel enforces; this tells early."""
        if self.is_off or self.paths is None:
            return True
        real = resolve_path(path, cwd)
        return any(
            real.is_relative_to(allowed.path) and (allowed.access == "rw" or not writing) for allowed in self.paths
        )

    def roots(self) -> list[str]:
        """What `roots/list` is answered with, as URIs: never the roots of the calling client, since a server
        that believes those would leave its own list."""
        return [allowed.path.as_uri() for allowed in self.paths or ()]


UNCONFINED = Confinement(mode="off")


def resolve_path(path: str | Path, cwd: Path | None = None) -> Path:
    """The real path, as the kernel would walk it; parts that do not exist yet stay as they are."""
    text = os.fspath(path)
    if not text or "\0" in text:
        raise InvalidInput(f"a path must be non-empty and without NUL, got {text!r}", "name a file or a folder")
    return Path(os.path.realpath(os.path.join(cwd or Path.cwd(), os.path.expanduser(text))))
