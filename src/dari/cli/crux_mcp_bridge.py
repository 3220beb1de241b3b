"""`crux-mcp-bridge`: stdin and stdout of an MCP client on the socket of the terminal, byte for byte.

Nothing but the standard library is loaded while the daemon runs, so that a client has its server in a few tens of
milliseconds. Without a daemon one is started, as `crux` does it.
"""

import sys

from dari.daemon.pipe import pipe_stdio
from dari.daemon.unix_socket import NOBODY_LISTENS, connect
from dari.terminal.paths import CruxPaths

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from _socket import socket

USAGE = """\
usage: crux-mcp-bridge [--socket PATH] [--no-start]

Relays MCP between stdin/stdout and the terminal's socket, and starts the daemon when it does not run.

  --socket PATH  default: $CRUX_SOCKET, else ~/.crux/mcp.sock
  --no-start     fail when no daemon runs

Claude Code:
  claude mcp add crux-terminal -- crux-mcp-bridge
Claude Desktop and Cursor, under "mcpServers":
  "crux-terminal": {"command": "crux-mcp-bridge", "args": ["--socket", "~/.crux/mcp.sock"]}

`crux attach` shows what the agent does. Guide: docs/guide/terminal.md
"""


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    path, starts = "", True
    while words:
        word, *words = words
        if word in ("-h", "--help"):
            sys.stdout.write(USAGE)
            return 0
        if word == "--version":
            from dari.version import VERSION

            sys.stdout.write(f"crux-mcp-bridge {VERSION}\n")
            return 0
        if word == "--no-start":
            starts = False
        elif word == "--socket" and words:
            path, *words = words
        elif word.startswith("--socket="):
            path = word.partition("=")[2]
        else:
            return _complain(f"{word!r} is not understood", "crux-mcp-bridge --help")
    paths = CruxPaths.of_environment(path or None)
    try:
        line = _connect(paths, starts)
    except OSError as error:
        return _complain(*_explain(error, paths.mcp_socket_text))
    except Exception as error:
        if not hasattr(error, "hint"):
            raise
        return _complain(str(error), error.hint)
    try:
        if pipe_stdio(line):
            return _complain("the terminal's daemon ended", "call again: it is started anew")
        return 0
    except KeyboardInterrupt:
        return 0
    finally:
        line.close()


def _explain(error: OSError, path: str) -> tuple[str, str]:
    """Message and hint. A daemon that cannot be started because the disk is full is not mended by starting it."""
    if not isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        from dari.os_errors import DISK_FULL_ERRNOS, from_os_error

        refused = from_os_error(error) if error.errno in DISK_FULL_ERRNOS or error.filename is not None else None
        if refused is not None:
            return refused.message, refused.hint
    return f"nobody answers on {path}: {error.strerror}", "start the daemon: cruxd"


def _connect(paths: CruxPaths, starts: bool) -> "socket":
    try:
        return connect(paths.mcp_socket_text)
    except NOBODY_LISTENS:
        if not starts:
            raise
    from dari.daemon.launch import ensure_started_sync

    ensure_started_sync(paths, paths.command(), socket=paths.mcp_socket_text)
    return connect(paths.mcp_socket_text)


def _complain(message: str, hint: str) -> int:
    sys.stderr.write(f"error: {message}\nhint: {hint}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
