"""A service over the wire: the signature is the contract, and the stand-in behaves like the service."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import Struct

from dari.daemon.client import DaemonClient
from dari.daemon.paths import DaemonPaths
from dari.daemon.server import DaemonServer
from dari.daemon.stub import expose, exposed_methods, make_stub
from dari.errors import InvalidInput, NotFound, TimedOut


class Point(Struct, frozen=True):
    x: int
    y: int = 0


class Shapes:
    """A service with arguments of every sort."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.ended = asyncio.Event()

    @expose("shapes.move", "read")
    async def move(self, point: Point, by: int = 1, label: str | None = None) -> Point:
        return Point(point.x + by, 0 if label is None else len(label))

    @expose("shapes.none", "read")
    async def none(self) -> Point | None:
        return None

    @expose("shapes.fail", "read")
    async def fail(self, name: str) -> Point:
        raise NotFound(f"no {name}", "look again")

    @expose("shapes.wait", "read", ends_with_caller=True)
    async def wait(self, timeout_s: float = 5.0) -> Point:
        self.started.set()
        try:
            await asyncio.sleep(timeout_s)
        finally:
            self.ended.set()
        return Point(0)

    @expose("shapes.brood", "read")
    async def brood(self, timeout_s: float = 0.2) -> Point:
        await asyncio.sleep(timeout_s)
        return Point(1)

    @expose("shapes.decide", "read", ends_with_caller=True)
    async def decide(self, timeout_s: float | None = None) -> Point:
        await asyncio.sleep(0.2 if timeout_s is None else timeout_s)
        return Point(2)

    @expose("shapes.grind", "read", is_slow=True)
    async def grind(self) -> Point:
        await asyncio.sleep(0.2)
        return Point(3)

    async def hidden(self) -> Point:
        return Point(9)


@asynccontextmanager
async def served(
    run_dir: Path, shapes: Shapes, *, keep: bool = False, timeout_s: float = 30.0
) -> AsyncIterator[DaemonClient]:
    async with (
        DaemonServer(DaemonPaths("shapes", run_dir), exposed_methods(shapes)) as daemon,
        DaemonClient(daemon.paths, "mcp", keep=keep, timeout_s=timeout_s) as client,
    ):
        yield client


async def test_arguments_and_results_keep_their_types(run_dir: Path) -> None:
    async with served(run_dir, Shapes()) as client:
        far = make_stub(Shapes, client)
        assert await far.move(Point(1)) == Point(2)
        assert await far.move(Point(1), 5, label="abc") == Point(6, 3)
        assert await far.move(point=Point(1), by=2, label=None) == Point(3), "None does not travel"
        assert await far.none() is None
        assert not hasattr(far, "hidden")


async def test_errors_come_back_as_they_were_raised(run_dir: Path) -> None:
    async with served(run_dir, Shapes()) as client:
        with pytest.raises(NotFound) as caught:
            await make_stub(Shapes, client).fail("square")
        assert (caught.value.message, caught.value.hint) == ("no square", "look again")
        with pytest.raises(TypeError):
            await make_stub(Shapes, client).fail()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "params", [{}, {"point": {"x": "1"}}, {"point": {"x": 1}, "by": None}, {"point": {"x": 1}, "label": 3}]
)
async def test_a_wrong_or_null_argument_is_refused(run_dir: Path, params: dict[str, object]) -> None:
    async with served(run_dir, Shapes()) as client:
        with pytest.raises(InvalidInput):
            await client.call("shapes.move", params)


async def test_a_wait_has_a_connection_of_its_own_and_ends_with_its_caller(run_dir: Path) -> None:
    shapes = Shapes()
    async with served(run_dir, shapes, keep=True) as client:
        far = make_stub(Shapes, client)
        waiting = asyncio.ensure_future(far.wait(15.0))
        await shapes.started.wait()
        assert await far.move(Point(1)) == Point(2), "nothing queues behind the wait"
        waiting.cancel()
        await shapes.ended.wait()


@pytest.mark.parametrize("keep", [True, False])
async def test_the_callers_limit_is_longer_than_the_time_the_service_waits(run_dir: Path, keep: bool) -> None:
    async with served(run_dir, Shapes(), keep=keep, timeout_s=0.05) as client:
        far = make_stub(Shapes, client)
        assert await far.brood() == Point(1), "its default time travels with the call"
        assert await far.brood(0.1) == Point(1), "so does a time that is given"
        assert await far.decide() == Point(2), "the service decides, and the connection lives"
        assert await far.grind() == Point(3)
        called = await client.call("shapes.brood", {"timeout_s": 0.1}, 0.05, returns=Point, alone=True)
        assert called == Point(1), "also when it is called by its name"


async def test_a_call_that_waits_for_nothing_keeps_the_limit_of_its_client(run_dir: Path) -> None:
    async with served(run_dir, Shapes(), timeout_s=0.05) as client:
        with pytest.raises(TimedOut):
            await client.call("shapes.grind")


def test_what_is_left_out_is_not_served() -> None:
    names = {method.name for method in exposed_methods(Shapes(), without=("shapes.wait",))}
    assert names == {"shapes.move", "shapes.none", "shapes.fail", "shapes.brood", "shapes.decide", "shapes.grind"}


def test_the_decorator_leaves_the_method_as_it_is() -> None:
    assert list(inspect.signature(Shapes.move).parameters) == ["self", "point", "by", "label"]
