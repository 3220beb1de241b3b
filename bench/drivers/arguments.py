"""The command line that all client drivers share; no import beyond the standard library."""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

ECHO_TEXT = "The quick brown fox jumps over the lazy dog"
WARM_UP_CALLS = 50


@dataclass(frozen=True, slots=True)
class Arguments:
    seconds: float
    in_flight: int
    url: str
    token: str
    command: list[str]


def parse() -> Arguments:
    parser = argparse.ArgumentParser(description="calls echo for a while and prints how often")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--in-flight", type=int, default=1, help="calls that wait at the same time")
    parser.add_argument("--url", default="", help="a server over HTTP")
    parser.add_argument("--token", default="", help="its bearer token")
    parser.add_argument("command", nargs="*", help="a server over stdio")
    given = parser.parse_args()
    return Arguments(given.seconds, given.in_flight, given.url, given.token, given.command)


async def count(given: Arguments, echo: Callable[[], Awaitable[str]]) -> None:
    """Print how many calls `echo` made, after one whose answer is checked and some that warm up."""
    answer = await echo()
    if ECHO_TEXT not in answer:
        raise SystemExit(f"the server echoed {answer!r}")
    for _ in range(WARM_UP_CALLS):
        await echo()
    calls = 0
    started = time.perf_counter()

    async def work() -> None:
        nonlocal calls
        while time.perf_counter() < started + given.seconds:
            await echo()
            calls += 1

    await asyncio.gather(*(work() for _ in range(given.in_flight)))
    print(json.dumps({"calls": calls, "seconds": time.perf_counter() - started}))
