"""Unix sockets by their path: connect, look who listens, bind. Loads `_socket` alone: `socket` costs 15 ms of enums."""

import os
import sys
from _socket import AF_UNIX, SOCK_STREAM, socket

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    import socket as socket_module
    from typing import Protocol

    AnyPath = str | os.PathLike[str]

    class HasFileno(Protocol):
        def fileno(self) -> int: ...


MAX_SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103
"""What `sun_path` holds, without its closing NUL."""
HANDSHAKE_PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Between attempts of a client that may start a daemon: one that was killed accepts connections while it goes away."""
NOBODY_LISTENS = (FileNotFoundError, ConnectionRefusedError, NotADirectoryError)
PROBE_TIMEOUT_S = 1.0
BUSY_POLL_S = 0.01


def socket_address(path: "AnyPath") -> str:
    """The path as an address to bind or connect to; InvalidInput when it is too long for the kernel."""
    size_bytes = len(os.fsencode(path))
    if size_bytes > MAX_SOCKET_PATH_BYTES:
        from dari.errors import InvalidInput

        raise InvalidInput(
            f"a socket path may have at most {MAX_SOCKET_PATH_BYTES} bytes, got {size_bytes}: {path}",
            "choose a shorter path, or set DARI_HOME to a shorter directory",
        )
    return os.fspath(path)


def connect(path: "AnyPath") -> socket:
    """A connected blocking socket; OSError, one of `NOBODY_LISTENS` when nobody does."""
    sock = socket(AF_UNIX, SOCK_STREAM)
    try:
        sock.connect(socket_address(path))
    except BaseException:
        sock.close()
        raise
    return sock


async def connect_unix(path: "AnyPath") -> "socket_module.socket":
    """A connected non-blocking socket; OSError without a listener. The caller bounds the wait."""
    import asyncio
    import socket

    address = socket_address(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        while True:
            try:
                sock.connect(address)
            except BlockingIOError:
                # The backlog is full. asyncio's own connect takes that for a success.
                await asyncio.sleep(BUSY_POLL_S)
            else:
                return sock
    except BaseException:
        sock.close()
        raise


def answers(path: "AnyPath") -> bool:
    """Whether a process accepts connections there."""
    sock = socket(AF_UNIX, SOCK_STREAM)
    try:
        sock.settimeout(PROBE_TIMEOUT_S)
        sock.connect(socket_address(path))
    except NOBODY_LISTENS:
        return False
    except OSError:
        return True  # it listens, but its backlog is full or we may not connect
    finally:
        sock.close()
    return True


def bind_private(path: "AnyPath") -> "socket_module.socket":
    """A bound socket whose file is 0600; a stale file is replaced, a live socket is a Conflict."""
    import socket

    address = socket_address(path)
    remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The mode of a socket file is set by bind() alone; a chmod after it would leave a window.
    mask = os.umask(0o177)
    try:
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    finally:
        os.umask(mask)
    return sock


def remove_stale(path: "AnyPath") -> None:
    """Remove the socket that a killed server left behind, and nothing else."""
    from dari.errors import Conflict

    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if mode & 0o170000 != 0o140000:
        raise Conflict(f"{path} exists and is not a socket", "move it away, or choose another socket path")
    if answers(path):
        raise Conflict(f"another server listens on {path}", "stop it first, or choose another socket path")
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def is_hung_up(sock: "HasFileno") -> bool:
    """Whether the other side closed both directions. One that only ended its writing still waits for replies."""
    import select

    if not hasattr(select, "poll"):
        return False
    poller = select.poll()
    poller.register(sock.fileno(), 0)
    gone = select.POLLHUP | select.POLLERR | select.POLLNVAL
    return any(events & gone for _, events in poller.poll(0))


def check_daemon_owner(sock: "socket | socket_module.socket", path: "AnyPath") -> None:
    """Denied unless the process that listens runs as our user: no other user gets a token."""
    if sys.platform == "linux":
        from _socket import SO_PEERCRED, SOL_SOCKET

        uid = int.from_bytes(sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)[4:8], sys.byteorder)
    else:
        from dari.daemon.peer import peer_credentials

        uid = peer_credentials(sock).uid
    if uid != os.geteuid():
        from dari.errors import Denied

        raise Denied(f"the daemon on {path} runs as uid {uid}", "tokens are for daemons of your own")
