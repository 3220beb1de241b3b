"""How long a supervised child takes from start to its first reply, with walls around it and without.

`python -m bench.bridge.sandbox_starts <count>` prints `{"plain": [ms, …], "landlock": […], "bubblewrap": […]}`; the
last is missing where bubblewrap is. They take turns; the walls are allowed paths and no network, with `enforce`.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from bench.bridge.upstreams import FAST_ECHO
from bench.messages import encode, initialize
from dari.process.child import ChildSpec
from dari.process.children import Children
from dari.sandbox.capabilities import probe_capabilities
from dari.sandbox.confinement import UNCONFINED, Confinement, PathRule

REPLY_TIMEOUT_S = 10.0


def confinements() -> dict[str, Confinement]:
    paths = (PathRule.of(FAST_ECHO),)
    landlock = Confinement("enforce", paths, "none", uses_bubblewrap=False)
    kinds = {"plain": UNCONFINED, "landlock": landlock}
    if probe_capabilities().bubblewrap:
        kinds["bubblewrap"] = Confinement("enforce", paths, "none")
    return kinds


async def start_ms(children: Children, confinement: Confinement) -> float:
    spec = ChildSpec("echo", (sys.executable, "-IS", str(FAST_ECHO)), confinement=confinement, cwd=Path("/"))
    started = time.perf_counter()
    child = await children.start(spec)
    try:
        os.write(child.stdin.fileno(), encode(initialize()) + b"\n")
        reply = await asyncio.wait_for(_read(child.stdout.fileno()), REPLY_TIMEOUT_S)
        took_ms = (time.perf_counter() - started) * 1000
    finally:
        await child.stop()
    if b"protocolVersion" not in reply:
        raise SystemExit(f"the server answered {reply[:400]!r}")
    return took_ms


async def _read(file: int) -> bytes:
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    loop.add_reader(file, is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(file)
    return os.read(file, 65_536)


async def main(count: int) -> None:
    kinds = confinements()
    took: dict[str, list[float]] = {name: [] for name in kinds}
    async with Children() as children:
        for number in range(count + 1):
            for name, confinement in kinds.items():
                ms = await start_ms(children, confinement)
                if number:  # the first fills the page cache
                    took[name].append(ms)
    print(json.dumps(took))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
