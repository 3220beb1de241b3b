"""Clients for the suite from one process that has imported what they need: sixty imports of the SDK take minutes.

`clients_waiting()` yields the command that the suite starts: a small program that hands its environment, its
descriptors and the URL to a fork of that process, which runs `tests.conformance.client` and says its exit code.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PART = 1 << 16
_CALLER = """
import os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
words = [sys.argv[-1], *(f"{name}={value}" for name, value in os.environ.items())]
socket.send_fds(line, [b" "], [0, 1, 2])
line.sendall("\\0".join(words).encode(errors="surrogateescape"))
line.shutdown(socket.SHUT_WR)
code = line.recv(1)
sys.exit(code[0] if code else 1)
"""


@contextmanager
def clients_waiting() -> Iterator[tuple[str, ...]]:
    """The command; what it starts ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="dari-"))  # a socket's path is short
    caller, door = folder / "caller.py", folder / "door"
    caller.write_text(_CALLER)
    words = [sys.executable, "-m", "tests.conformance.forking", str(door)]
    try:
        with subprocess.Popen(words, cwd=_ROOT, stdout=subprocess.PIPE, start_new_session=True) as process:
            try:
                assert process.stdout is not None
                if process.stdout.readline() != b"ready\n":
                    raise RuntimeError("the process for clients did not start")
                yield (sys.executable, "-IS", str(caller), str(door))
            finally:
                os.killpg(process.pid, signal.SIGKILL)
    finally:
        shutil.rmtree(folder)


def serve(path: str) -> None:
    """A client for each connection, for ever."""
    from tests.conformance import client

    client.preload()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen(256)
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a fork ended
        while True:
            line, _ = door.accept()
            if os.fork() == 0:
                door.close()
                _be_client(line)
            line.close()


def _be_client(line: socket.socket) -> None:
    from tests.conformance import client

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    code = 1
    try:
        _, descriptors, _, _ = socket.recv_fds(line, 1, 3)
        said = b"".join(iter(lambda: line.recv(_PART), b""))
        url, *variables = said.decode(errors="surrogateescape").split("\0")
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(variable.split("=", 1) for variable in variables)
        sys.argv = ["client", url]
        code = client.main()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        line.sendall(bytes((code,)))
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
