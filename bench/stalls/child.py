"""`python -m bench.stalls.child NAME`: one input in a process of its own; prints what it did as JSON."""

import asyncio
import dataclasses
import json
import logging
import sys

from bench.stalls.heartbeat import Stall
from bench.stalls.inputs import INPUTS


def main() -> None:
    logging.disable(logging.CRITICAL)
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        factory = None
    with asyncio.Runner(loop_factory=factory) as runner:
        stall = runner.run(_run(sys.argv[1]))
    print(json.dumps(dataclasses.asdict(stall)))


async def _run(name: str) -> Stall:
    return await INPUTS[name][1]()


if __name__ == "__main__":
    main()
