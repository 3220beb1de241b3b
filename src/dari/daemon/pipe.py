"""stdin and stdout of an MCP client on a daemon's socket, byte for byte. Loads `_socket` and `select` alone."""

import os
from _socket import SHUT_WR, socket
from select import POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, poll

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
