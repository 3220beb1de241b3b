"""macOS: a profile for `sandbox-exec`. Deprecated by Apple, still what browsers and package builders use."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dari.sandbox.confinement import Confinement

READABLE = (
    *("/bin", "/sbin", "/usr", "/System", "/Library/Apple", "/Library/Frameworks", "/opt/homebrew", "/opt/local"),
    *("/private/etc/hosts", "/private/etc/resolv.conf", "/private/etc/ssl", "/private/etc/localtime"),
    *("/private/etc/passwd", "/private/etc/group", "/private/var/db/timezone", "/private/var/db/dyld"),
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def seatbelt_profile(confinement: Confinement, installation: Iterable[Path], hidden: Iterable[Path] = ()) -> str:
    """The rules in Apple's language; the last one that matches decides."""
    lines = ["(version 1)", "(allow default)"]
    if confinement.paths is not None:
        lines += [*([] if confinement.reads_all else ["(deny file-read-data)"]), "(deny file-write*)"]
        places = [*map(Path, READABLE), *installation, *(allowed.path for allowed in confinement.paths)]
        lines += [f"(allow file-read-data (subpath {_quoted(path)}))" for path in dict.fromkeys(places)]
        writable = [allowed.path for allowed in confinement.paths if allowed.access == "rw"]
        lines += [f"(allow file-write* (subpath {_quoted(path)}))" for path in writable]
        devices = [*map(Path, DEVICES), *confinement.devices]
        lines += [f"(allow file-read-data file-write-data (literal {_quoted(path)}))" for path in devices]
    # After what is allowed: the last rule decides, and our own folders are nobody's.
    lines += [f"(deny file-read* file-write* (subpath {_quoted(path)}))" for path in hidden]
    if confinement.network != "all":
        lines.append("(deny network*)")
    if confinement.network == "loopback":
        lines += ['(allow network* (local ip "localhost:*"))', '(allow network-outbound (remote ip "localhost:*"))']
    if not confinement.unix_sockets:
        lines.append("(deny network-outbound (remote unix-socket))")
    elif confinement.network != "all":
        lines.append("(allow network-outbound (remote unix-socket))")
    # Signals stay within the sandbox, so that a child cannot end its guardian.
    lines += ["(deny signal)", "(allow signal (target same-sandbox))"]
    return "\n".join(lines) + "\n"


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
