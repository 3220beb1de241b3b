"""Cold start: from the spawn of a server on stdio to the first byte line it answers."""

import select
import time

from bench.contenders import Contender
from bench.messages import encode, initialize
from bench.processes import START_TIMEOUT_S, Scratch, died, spawn, stop


def start_ms(contender: Contender, scratch: Scratch) -> float:
    request = encode(initialize()) + b"\n"
    command = contender.command("stdio", scratch.token_path)
    started = time.perf_counter()
    process = spawn(contender, command, scratch, pipes=True)
    try:
        if process.stdin is None or process.stdout is None:
            raise died(contender, scratch, "has no pipes")
        process.stdin.write(request)
        reply = b""
        while not reply.endswith(b"\n"):
            if not select.select([process.stdout], [], [], START_TIMEOUT_S)[0]:
                raise died(contender, scratch, f"did not answer initialize within {START_TIMEOUT_S} s")
            data = process.stdout.read(65_536)
            if not data:
                raise died(contender, scratch, "closed its output before it answered initialize")
            reply += data
        took_ms = (time.perf_counter() - started) * 1000
    finally:
        stop(process)
    if b'"protocolVersion"' not in reply:
        raise died(contender, scratch, f"answered initialize with {reply[:400]!r}")
    return took_ms
