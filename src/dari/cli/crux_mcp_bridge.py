"""`crux-mcp-bridge`: stdin and stdout of an MCP client on the socket of the terminal, by the pipe of `dari mcp`.

Little but the standard library is loaded while the daemon runs, so that a client has its server in a few tens of
milliseconds. Without a daemon one is started, as `crux` does it. When the daemon ends, calls that it had not answered
fail with the reason, and the next one starts it anew: the client keeps its server, the panes are gone.
"""

import faulthandler
import sys
from _socket import socket

from dari.cli.kit.errors import run_guarded
from dari.cli.mcp.hub import HubRefused
from dari.cli.mcp.pipe import Pipe
from dari.daemon.unix_socket import NOBODY_LISTENS, connect
from dari.terminal.paths import CruxPaths

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
FAILED = 2
_OPTIONS = ("--socket", "--no-start", "--help", "--version")


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    return run_guarded(lambda: _main(words), interrupted=0, failed=FAILED)


def _main(words: list[str]) -> int:
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
            from dari.cli.kit.hints import closest

            meant = closest(word.partition("=")[0], _OPTIONS)
            hint = f"did you mean {meant}? " if meant else ""
            return _complain(f"unknown option {word.partition('=')[0][:60]!r}", f"{hint}see: crux-mcp-bridge --help")
    faulthandler.enable(2)  # SIGSEGV and the like leave a stack, as in `dari.runtime`
    paths = CruxPaths.of_environment(path or None)
    try:
        line = _connect(paths, starts)
    except OSError as error:
        return _complain(*_explain(error, paths.mcp_socket_text))
    except Exception as error:
        if not hasattr(error, "hint"):
            raise
        return _complain(str(error), error.hint)
    Pipe(Cruxd(paths, line, may_start=starts), _log).run()
    return 0


def _explain(error: OSError, path: str) -> tuple[str, str]:
    """Message and hint. A daemon that cannot be started because the disk is full is not mended by starting it."""
    if not isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        from dari.os_errors import DISK_FULL_ERRNOS, from_os_error

        refused = from_os_error(error) if error.errno in DISK_FULL_ERRNOS or error.filename is not None else None
        if refused is not None:
            return refused.message, refused.hint
    return f"nobody answers on {path}: {error.strerror}", "start the daemon: cruxd"


def _connect(paths: CruxPaths, starts: bool) -> socket:
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
    return FAILED


class Cruxd:
    """The terminal's daemon as a pipe connects to it. `line` is the first connection."""

    name = "the terminal's daemon"
    restarts_at_once = False
    """`crux kill-server` ends it, too: the next request starts it anew."""
    introductions = None

    def __init__(self, paths: CruxPaths, line: socket, *, may_start: bool) -> None:
        self._paths = paths
        self._line: socket | None = line
        self._may_start = may_start

    def open(self, *, starts: bool, **_: object) -> tuple[socket, bytes] | None:
        first, self._line = self._line, None
        if first is not None:
            return first, b""
        try:
            return _connect(self._paths, starts and self._may_start), b""
        except NOBODY_LISTENS as error:
            if not starts:
                return None
            raise HubRefused(*_explain(error, self._paths.mcp_socket_text)) from None
        except OSError as error:
            raise HubRefused(*_explain(error, self._paths.mcp_socket_text)) from None
        except Exception as error:
            if not hasattr(error, "hint"):
                raise
            raise HubRefused(str(error), error.hint) from None


def _log(level: str, line: str) -> None:
    """A person reads this in the log of the client that started us."""
    event, _, detail = line.partition(" ")
    if event == "hub_lost":
        sys.stderr.write("warning: the terminal's daemon ended; the next call starts it anew\n")
    elif level == "error":
        sys.stderr.write(f"error: {detail or event}\n")


if __name__ == "__main__":
    sys.exit(main())
