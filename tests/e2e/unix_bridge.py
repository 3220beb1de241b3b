"""Joins stdin and stdout to a Unix socket, for clients that can only start a command."""

from __future__ import annotations

import os
import socket
import sys
import threading


def main(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)

        def upwards() -> None:
            while data := os.read(0, 65536):
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

        threading.Thread(target=upwards, daemon=True).start()
        while data := server.recv(65536):
            os.write(1, data)


if __name__ == "__main__":
    main(sys.argv[1])
