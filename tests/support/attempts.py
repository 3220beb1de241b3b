"""A program that tries what its arguments name, and tells in one line of JSON what happened. Runs inside."""

import errno
import json
import os
import socket
import subprocess
import sys


def attempt(what: str, *values: str) -> str:
    match what:
        case "read":
            with open(values[0], "rb") as file:
                file.read(1)
        case "list":
            os.listdir(values[0])
        case "write":
            with open(values[0], "ab") as file:
                file.write(b"x")
        case "truncate":
            os.truncate(values[0], 0)
        case "remove":
            os.unlink(values[0])
        case "rename":
            os.rename(values[0], values[1])
        case "link":
            os.link(values[0], values[1])
        case "run":
            subprocess.run(values, check=True, capture_output=True)
        case "tcp":
            socket.create_connection((values[0], int(values[1])), 5).close()
        case "udp":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                udp.sendto(b"x", (values[0], int(values[1])))
        case "fast-open":
            with socket.socket() as tcp:
                tcp.sendto(b"x", socket.MSG_FASTOPEN, (values[0], int(values[1])))
        case "listen-on":
            with socket.socket() as tcp:
                tcp.bind((values[0], 0))
                tcp.listen()
        case "listen-unbound":
            with socket.socket() as tcp:
                tcp.listen()
        case "listen":
            with socket.socket() as tcp:
                tcp.bind(("127.0.0.1", 0))
                tcp.listen()
        case "unix":
            with socket.socket(socket.AF_UNIX) as unix:
                unix.connect(values[0] if values[0].startswith("/") else "\0" + values[0])
        case "pair":
            for end in socket.socketpair(socket.AF_UNIX, getattr(socket, values[0])):
                end.close()
        case "signal":
            os.kill(int(values[0]), 0)
        case "device":
            os.mknod(values[0], 0o600 | 0o060000, os.makedev(7, 0))
        case "syscall":
            import ctypes

            library = ctypes.CDLL(None, use_errno=True)
            if library.syscall(*(ctypes.c_long(int(value)) for value in values)) < 0:
                raise OSError(ctypes.get_errno(), "syscall")
        case "temporary":
            import tempfile

            with tempfile.NamedTemporaryFile() as file:
                file.write(b"x")
        case "environment":
            return "\n".join(sorted(os.environ))
        case "limit":
            import resource

            return str(resource.getrlimit(int(values[0]))[0])
    return "ok"


def main() -> None:
    outcome = {}
    for step in json.loads(sys.argv[1]):
        try:
            outcome[" ".join(step)] = attempt(*step)
        except OSError as error:
            outcome[" ".join(step)] = errno.errorcode.get(error.errno or 0, type(error).__name__)
        except subprocess.CalledProcessError as error:
            outcome[" ".join(step)] = f"exit {error.returncode}"
    print(json.dumps(outcome), flush=True)


main()
