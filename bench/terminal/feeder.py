"""Runs in a pane, ours or tmux's: prints what it is told over a socket, and says when the terminal has taken all of it.

A terminal answers "where is the cursor?" in its turn: once the answer is here, everything before it has been parsed.
Standard library only, so that any Python starts it fast.
"""

import json
import os
import socket
import subprocess
import sys
import termios
import time
from typing import Any

ANSWER_TIMEOUT = 600  # tenths of a second
IN, OUT = 0, 1


def main() -> None:
    _read_keys()
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(sys.argv[1])
        for word in line.makefile():
            told = json.loads(word)
            line.sendall(json.dumps(_print(told)).encode() + b"\n")


def _print(told: dict[str, Any]) -> dict[str, float]:
    if "text" in told:
        time.sleep(told["delay_s"])
        at = time.monotonic()
        os.write(OUT, told["text"].encode())
        return {"at": at}
    began = time.perf_counter()
    subprocess.run(["cat", *[told["file"]] * told["times"]], check=True)
    _await_terminal()
    return {"s": time.perf_counter() - began}


def _await_terminal() -> None:
    os.write(OUT, b"\x1b[6n")
    answer = b""
    while not answer.endswith(b"R"):
        got = os.read(IN, 64)
        if not got:
            raise TimeoutError("the terminal did not say where its cursor is")
        answer += got


def _read_keys() -> None:
    """Input as it comes and not shown; output as programs have it, with CR LF made by the kernel."""
    modes = termios.tcgetattr(IN)
    modes[3] &= ~(termios.ICANON | termios.ECHO)
    modes[6][termios.VMIN], modes[6][termios.VTIME] = 0, min(ANSWER_TIMEOUT, 255)
    termios.tcsetattr(IN, termios.TCSANOW, modes)


if __name__ == "__main__":
    main()
