"""A list of one server or of all: asked at once, a failure told with its server, never in the way of the others."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from dari.cli.remote.choosing import upstreams_of
from dari.cli.remote.deadlines import Deadline
from dari.cli.remote.failures import OK, exit_code, tell, with_server
from dari.cli.remote.tracing import traced
from dari.cli.remote.world import World
from dari.errors import DariError

if TYPE_CHECKING:
    from dari.bridge.upstream.upstream import Upstream

Item = TypeVar("Item")


class Gathered(Generic[Item]):
    """`found` in the order of the profiles; `code` is the exit code of the worst failure."""

    def __init__(self, found: list[tuple[Upstream, Sequence[Item]]], code: int) -> None:
        self.found = found
        self.code = code

    def rows(self) -> list[tuple[str, Item]]:
        return [(upstream.id, item) for upstream, items in self.found for item in items]


async def gather(
    arguments: argparse.Namespace,
    world: World,
    method: str,
    ask: Callable[[Upstream], Awaitable[Sequence[Item]]],
    note: Callable[[Upstream], str] = lambda _: "",
) -> Gathered[Item]:
    """Ask every chosen server. `note` is read before the question, for `--log`."""
    chosen = upstreams_of(arguments, world)
    limit_ms = arguments.timeout
    answers = await asyncio.gather(*(_asked(each, world, method, ask, note(each), limit_ms) for each in chosen))
    found = [(each, items) for each, items in zip(chosen, answers, strict=True) if not isinstance(items, int)]
    return Gathered(found, max((code for code in answers if isinstance(code, int)), default=OK))


async def _asked(
    upstream: Upstream,
    world: World,
    method: str,
    ask: Callable[[Upstream], Awaitable[Sequence[Item]]],
    note: str,
    limit_ms: int | None,
) -> Sequence[Item] | int:
    try:
        with traced(world, upstream, method) as trace:
            async with Deadline(limit_ms).over(method):
                items = await ask(upstream)
            trace.note(f"{len(items)} items{note}")
    except DariError as error:
        tell(with_server(error, upstream.id), world.terminal)
        return exit_code(error)
    return items
