"""Commands that become more than one process, as real servers do; each prints `ready` when all of it is there."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Mapping

from dari.process.child import ChildSpec, StopTimeouts
from dari.process.children import Children
from dari.process.reaper_main import find_tagged

PYTHON = sys.executable
STAY = "import time; print('ready', flush=True); time.sleep(600)"
# Neither the end of its stdin nor SIGTERM impresses it.
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + STAY.removeprefix("import time; ")

# name → (command, how many processes it is)
HOUSEHOLDS: dict[str, tuple[tuple[str, ...], int]] = {
    "one process": ((PYTHON, "-c", STAY), 1),
    "an npx-like launcher": (("sh", "-c", f'"{PYTHON}" -c "{STAY}"; :'), 2),
    "a setsid grandchild": (("sh", "-c", "read it; setsid sleep 600 & echo ready; exec sleep 600"), 2),
    "a grandchild with an empty environment": (
        ("sh", "-c", "read it; env -i setsid sleep 600 & echo ready; exec sleep 600"),
        2,
    ),
    "a grandchild that lost its parent": (
        ("sh", "-c", "read it; (env -i setsid sleep 600 >/dev/null 2>&1 </dev/null &); echo ready; exec sleep 600"),
        2,
    ),
    "ignores EOF and SIGTERM": ((PYTHON, "-c", STUBBORN), 1),
    "a stubborn server behind a launcher": (("sh", "-c", f'trap "" TERM; "{PYTHON}" -c "{STUBBORN}"; :'), 2),
}
IMPATIENT = StopTimeouts(after_eof_s=0.05, after_term_s=0.05)


def household(name: str, patience: StopTimeouts = IMPATIENT) -> ChildSpec:
    return ChildSpec(name, HOUSEHOLDS[name][0], patience=patience)


def wait_for_line(descriptor: int, within_s: float = 30.0) -> bytes:
    """One line of a pipe, byte by byte: no reader's buffer keeps the next."""
    line = b""
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([descriptor], [], [], within_s)
        assert readable, f"nothing within {within_s:g} s after {line!r}"
        byte = os.read(descriptor, 1)
        assert byte, f"the pipe ended after {line!r}"
        line += byte
    return line


def wait_for_end(pid: int, within_s: float = 30.0) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        readable, _, _ = select.select([descriptor], [], [], within_s)
        assert readable, f"process {pid} has not ended within {within_s:g} s"
    finally:
        os.close(descriptor)


def left_of(marks: Mapping[str, int]) -> list[int]:
    return find_tagged(marks)


async def main() -> None:
    """A daemon: starts the household that argv names, tells what it started, and waits to be killed."""
    import asyncio

    children = Children()
    child = await children.start(household(sys.argv[1]))
    os.write(child.stdin.fileno(), b"begin\n")
    assert await asyncio.to_thread(wait_for_line, child.stdout.fileno()) == b"ready\n"
    print(",".join(map(str, children.reaper_pids)), child.tag.token, child.tag.brand, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    if "--uvloop" in sys.argv:
        import uvloop

        uvloop.run(main())
    else:
        import asyncio

        asyncio.run(main())
