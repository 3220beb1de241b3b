"""A client of the hub's socket, for our own code: blocking, standard library only, little of it loaded.

Commands use `dari.cli.remote.fast_client`; here is what it shares with other clients.
"""

import os
from _socket import socket

from dari.cli.hub import protocol
from dari.daemon import unix_socket
from dari.version import VERSION

HANDSHAKE_TIMEOUT_S = 60.0
"""For a client of MCP, for which the hub makes a server. One that was stopped, or hangs, still accepts connections."""


class CliSocketRefused(Exception):
    """The hub refused: `code` is the name of the error, such as `skew`, `token`, `child`, `hub`."""

    def __init__(self, payload: bytes) -> None:
        import json

        try:
            said = json.loads(payload)
            self.code, self.message, self.hint = str(said["code"]), str(said["message"]), str(said.get("hint", ""))
        except (ValueError, KeyError, TypeError):
            self.code, self.message, self.hint = "unreadable", f"the hub answered {payload[:80]!r}", ""
        super().__init__(self.message)


def connect(run_dir: str) -> socket | None:
    """A connection to the process that hosts the bridge; None when none does."""
    try:
        return unix_socket.connect(f"{run_dir}/{protocol.SOCKET_NAME}")
    except unix_socket.NOBODY_LISTENS:
        return None


def send_handshake(sock: socket, run_dir: str, purpose: str, **more: object) -> None:
    """The first line. One that is turned away at once may not read it all: what it says is there to be read."""
    try:
        sock.sendall(protocol.encode_handshake(purpose, protocol.read_token(run_dir), VERSION, **more))
    except (BrokenPipeError, ConnectionResetError):
        pass


def read_first_frame(sock: socket) -> tuple[bytes, bytes, bytes]:
    """Kind and payload of the first answer, and what came after it; ConnectionResetError when there was none."""
    heard = b""
    while True:
        if len(heard) >= protocol.HEADER_BYTES:
            end = protocol.HEADER_BYTES + int.from_bytes(heard[1 : protocol.HEADER_BYTES], "big")
            if len(heard) >= end:
                return heard[:1], heard[protocol.HEADER_BYTES : end], heard[end:]
        part = sock.recv(65536)
        if not part:
            raise ConnectionResetError("the daemon hung up")
        heard += part


def ask_to_finish(run_dir: str, timeout_s: float) -> int | None:
    """Ask the host to end and wait until it has; its pid, or None when no hub runs.

    Refused by a hub; TimeoutError when it does not end in time.
    """
    sock = connect(run_dir)
    if sock is None:
        return None
    try:
        sock.settimeout(timeout_s)
        try:
            send_handshake(sock, run_dir, "finish")
            kind, payload, _ = read_first_frame(sock)
        except (ConnectionResetError, FileNotFoundError):
            return None  # it was on its way out already
        if kind != protocol.BEGIN:
            raise CliSocketRefused(payload)
        try:
            while sock.recv(4096):
                pass
        except ConnectionResetError:
            pass
        pid = int(payload)
        if pid != os.getpid():
            _await_end(pid, timeout_s)
        return pid
    finally:
        sock.close()


def _await_end(pid: int, timeout_s: float) -> None:
    """A process hangs up a moment before it has ended."""
    try:
        process = os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, or gone already
        return
    from select import select

    try:
        select([process], [], [], timeout_s)
    finally:
        os.close(process)


def open_mcp(run_dir: str, options: dict[str, object], environ: dict[str, str], cwd: str) -> tuple[socket, bytes]:
    """A connection that speaks MCP lines from here on, and what the server said already.

    Refused with a reason; FileNotFoundError when no hub runs, TimeoutError when it hangs.
    """
    sock = connect(run_dir)
    if sock is None:
        raise FileNotFoundError(f"no hub listens on {run_dir}/{protocol.SOCKET_NAME}")
    try:
        sock.settimeout(HANDSHAKE_TIMEOUT_S)
        send_handshake(sock, run_dir, "mcp", options=options, env=environ, cwd=cwd, pid=os.getpid())
        kind, payload, rest = read_first_frame(sock)
        if kind != protocol.BEGIN:
            raise CliSocketRefused(payload)
        sock.settimeout(None)
    except BaseException:
        sock.close()
        raise
    return sock, rest
