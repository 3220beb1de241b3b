"""`crux-mcp-bridge`: stdin and stdout of an MCP client on the socket of the terminal, byte for byte.

Nothing but the standard library is loaded while the daemon runs, so that a client has its server in a few tens of
milliseconds. Without a daemon one is started, as `crux` does it.
"""

import os
import sys
from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket  # `socket` wraps it in 15 ms of enums
from select import POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, poll

READ_BYTES = 1 << 16
MAX_PIPE_WRITE_BYTES = 4096  # what a pipe that is ready takes without making us wait
_GONE = POLLERR | POLLHUP | POLLNVAL
MAX_WAITING_BYTES = 1 << 20
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

MAX_SAFE_PATH_BYTES = 100
"""Longer paths may be too long for a socket."""


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
    path = os.path.abspath(os.path.expanduser(path or os.environ.get("CRUX_SOCKET", "") or usual_socket()))
    try:
        line = _connected(path, starts)
    except OSError as error:
        return _complain(*_why(error, path))
    except Exception as error:
        if not hasattr(error, "hint"):
            raise
        return _complain(str(error), error.hint)
    try:
        return relay(line)
    except KeyboardInterrupt:
        return 0
    finally:
        line.close()


def _why(error: OSError, path: str) -> tuple[str, str]:
    """What to say: a daemon that cannot be started for want of room is not mended by starting it."""
    absent = (f"nobody answers on {path}: {error.strerror}", "start the daemon: cruxd")
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)) and len(os.fsencode(path)) < MAX_SAFE_PATH_BYTES:
        return absent
    from pathlib import Path

    from dari.errors import DariError
    from dari.os_errors import DISK_FULL_ERRNOS, from_os_error
    from dari.paths import socket_address

    try:
        socket_address(Path(path))
    except DariError as too_long:
        return too_long.message, too_long.hint
    refused = from_os_error(error) if error.errno in DISK_FULL_ERRNOS or error.filename is not None else None
    if refused is not None:
        return refused.message, refused.hint
    return absent


def usual_socket() -> str:
    """What `dari.terminal.daemon.CruxPaths().mcp_socket` is."""
    home = os.environ.get("DARI_HOME", "")
    return os.path.join(os.path.expanduser(home), "crux", "mcp.sock") if home else "~/.crux/mcp.sock"


def _connected(path: str, starts: bool) -> socket:
    line = socket(AF_UNIX, SOCK_STREAM)
    try:
        line.connect(path)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        line.close()
        if not starts:
            raise
        _start(path)
        line = socket(AF_UNIX, SOCK_STREAM)
        line.connect(path)
    return line


def _start(path: str) -> None:
    from pathlib import Path

    from dari.daemon.launch import ensure_started_sync
    from dari.terminal.daemon import CruxPaths

    place = CruxPaths(Path(path), CruxPaths.of_environment().config)
    ensure_started_sync(place.command(), place.mcp_socket, place.files.start_lock, place.log_path, timeout_s=30)


def relay(line: socket, source: int = 0, sink: int = 1) -> int:
    """Until the daemon ends the connection, or nobody reads our output; what stdin's end leaves open is answered."""
    line.setblocking(False)
    connection = line.fileno()
    up = down = b""
    has_input = is_open = True
    sink_watch = poll()
    sink_watch.register(sink, POLLOUT)
    while is_open or down:
        watch = poll()
        watch.register(sink, POLLOUT if down else 0)
        if has_input and len(up) < MAX_WAITING_BYTES:
            watch.register(source, POLLIN)
        if is_open:
            watch.register(connection, (POLLIN if len(down) < MAX_WAITING_BYTES else 0) | (POLLOUT if up else 0))
        ready = dict(watch.poll())
        if ready.get(sink, 0) & _GONE:
            return 0
        try:
            if source in ready:
                data = os.read(source, READ_BYTES)
                up += data
                has_input = bool(data)
            # What came goes on at once: another look at everything costs more than the call itself.
            if is_open and up:
                up = _sent(line, up)
            if is_open and not has_input and not up:
                _end_writing(line)
            if is_open and ready.get(connection, 0) & (POLLIN | _GONE):
                data = line.recv(READ_BYTES)
                down += data
                is_open = bool(data)
            if down and sink_watch.poll(0):
                down = down[os.write(sink, down[:MAX_PIPE_WRITE_BYTES]) :]
        except BlockingIOError:
            continue
        except BrokenPipeError:
            return 0
        except ConnectionResetError:
            up, is_open = b"", False
    return _complain("the terminal's daemon ended", "call again: it is started anew") if has_input else 0


def _sent(line: socket, data: bytes) -> bytes:
    """What is left to send: nothing to a daemon that is gone, whose last words are still to be read."""
    try:
        return data[line.send(data) :]
    except BlockingIOError:
        return data
    except (BrokenPipeError, ConnectionResetError):
        return b""


def _end_writing(line: socket) -> None:
    try:
        line.shutdown(SHUT_WR)
    except OSError:
        pass  # the daemon was faster


def _complain(message: str, hint: str) -> int:
    sys.stderr.write(f"error: {message}\nhint: {hint}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
