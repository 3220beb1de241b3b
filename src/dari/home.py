"""The directories of an installation, as text. Only `os` and `sys` are imported: every warm command asks here.

`dari.paths` has the same directories as `Path`s.
"""

import os
import sys

_GROUP_OR_OTHERS_MAY_WRITE = 0o022


def home_dir() -> str:
    """Everything Dari keeps: $DARI_HOME, else a folder in the platform's data directory. It may not exist yet."""
    chosen = os.environ.get("DARI_HOME", "")
    if chosen:
        return absolute(os.path.expanduser(chosen))
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/dari")
    data = os.environ.get("XDG_DATA_HOME", "")
    return os.path.join(data if os.path.isabs(data) else os.path.expanduser("~/.local/share"), "dari")


def runtime_dir(name: str) -> str:
    """The folder of one daemon's sockets, locks and tokens; nothing is made.

    A `DARI_HOME` of its own gets daemons of its own, so it wins over `XDG_RUNTIME_DIR`.
    """
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        from dari.errors import InvalidInput

        raise InvalidInput(f"a daemon's name must be one plain word, got {name!r}", "use a name such as 'crabd'")
    session = os.environ.get("XDG_RUNTIME_DIR", "")
    if sys.platform == "linux" and not os.environ.get("DARI_HOME") and _is_own_directory(session):
        return f"{session.rstrip('/')}/dari/{name}"
    return f"{home_dir()}/run/{name}"


def crux_dir() -> str:
    """The folder of the terminal's daemon (design 002): ~/.crux, or `crux` in $DARI_HOME."""
    chosen = os.environ.get("DARI_HOME", "")
    return f"{absolute(os.path.expanduser(chosen))}/crux" if chosen else os.path.expanduser("~/.crux")


def crux_run_dir(mcp_socket: str) -> str:
    """The folder of the daemon behind this socket: the socket's own when it is one of ours, else one beside it."""
    folder, name = os.path.split(mcp_socket)
    if name == "mcp.sock" and os.path.basename(folder) in (".crux", "crux"):
        return folder
    return os.path.join(folder, f"{os.path.splitext(name)[0]}.crux")


def absolute(path: str) -> str:
    """From the root, without resolving `..` or links."""
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def _is_own_directory(directory: str) -> bool:
    """Whether the session's runtime directory can be trusted: absolute, ours, writable by nobody else."""
    if not os.path.isabs(directory):
        return False
    try:
        info = os.stat(directory)
    except OSError:
        return False
    is_directory = info.st_mode & 0o170000 == 0o040000
    is_ours = info.st_uid == os.geteuid() and not info.st_mode & _GROUP_OR_OTHERS_MAY_WRITE
    return is_directory and is_ours and os.access(directory, os.W_OK | os.X_OK)
