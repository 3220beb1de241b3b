"""`crux-mcp-bridge`: stdin and stdout of an MCP client on the socket of the terminal, byte for byte.

Nothing but the standard library is loaded while the daemon runs, so that a client has its server in a few tens of
milliseconds. Without a daemon one is started, as `crux` does it.
"""

import faulthandler
import os
import sys
from _socket import SHUT_WR, socket
from select import POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, poll

from dari.cli.kit.errors import run_guarded
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
            return _complain(f"{word!r} is not understood", f"{hint}see: crux-mcp-bridge --help")
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


READ_BYTES = 1 << 16
MAX_PIPE_WRITE_BYTES = 4096  # what a pipe that is ready takes without making us wait
MAX_WAITING_BYTES = 1 << 20
_GONE = POLLERR | POLLHUP | POLLNVAL


def pipe_stdio(line: socket, source: int = 0, sink: int = 1) -> bool:
    """Relay until the daemon ends the connection or nobody reads our output; True when the daemon ended it first.

    After the end of stdin, what is still open is answered.
    """
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
            return False
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
            return False
        except ConnectionResetError:
            up, is_open = b"", False
    return has_input


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


if __name__ == "__main__":
    sys.exit(main())
