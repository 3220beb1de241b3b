"""A hub with a console for each test file, a Chromium for each worker, a browser context for each test.

hub             `dari up` in a home of its own; `hub.agent()` is an MCP client, `hub.write_servers(…)` its configuration
person          somebody who is logged in: `page = await person.open("/traffic")`
console_page    their page, at Home
new_person      others beside: `second = await new_person(language="ko", size=PHONE)`
agent           an MCP client of the hub over HTTP, with a token

Any error on a console, exception, failed request or CSP report fails the test; `person.problems.allow(pattern)` names
one that it wants. Tests with a browser run in one loop: a browser belongs to the loop that started it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from playwright.async_api import Browser, Page

from tests.support.async_tests import run_async_test
from tests.support.console import NewPerson, Person, chromium, person_at
from tests.support.console_hub import Agent, ConsoleHub, new_home
from tests.support.scheduling import weight_of

HERE = Path(__file__).parent
LOOP = "browser_loop"
BROWSERS = 2
T = TypeVar("T")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that use a browser on two workers, a file on one of them: two at a time are what two cores can draw."""
    weights: Counter[Path] = Counter()
    for item in filter(_has_browser, items):
        weights[item.path] += weight_of(item)
    loads = [0] * BROWSERS
    places: dict[Path, int] = {}
    for path, weight in weights.most_common():
        places[path] = loads.index(min(loads))
        loads[places[path]] += weight
    for item in filter(_has_browser, items):
        item.add_marker(pytest.mark.xdist_group(f"console {places[item.path]}"))


def _has_browser(item: pytest.Item) -> bool:
    return LOOP in getattr(item, "fixturenames", ()) and HERE in item.path.parents  # most fail the first, cheaper look


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if LOOP not in pyfuncitem.funcargs or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    run_async_test(pyfuncitem, pyfuncitem.funcargs[LOOP])
    return True


def entered(loop: asyncio.AbstractEventLoop, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """What is inside of an async context manager, for a fixture."""
    yield loop.run_until_complete(manager.__aenter__())
    loop.run_until_complete(manager.__aexit__(None, None, None))


@pytest.fixture(scope="package")
def browser_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(end_tasks())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


async def end_tasks() -> None:
    """Those that a test left in the loop."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@pytest.fixture(scope="package")
def browser(browser_loop: asyncio.AbstractEventLoop) -> Iterator[Browser]:
    yield from entered(browser_loop, chromium())


@pytest.fixture(scope="module")
def hub(browser_loop: asyncio.AbstractEventLoop) -> Iterator[ConsoleHub]:
    """With no server of anybody and nothing recorded; what a test leaves there the next one of its file finds."""
    with new_home() as home:
        made = ConsoleHub(home)
        browser_loop.run_until_complete(made.start())
        yield made
        browser_loop.run_until_complete(made.stop())


@pytest.fixture
def new_person(browser_loop: asyncio.AbstractEventLoop, browser: Browser, hub: ConsoleHub) -> Iterator[NewPerson]:
    """A browser of their own each; options as `person_at` has them. `at=` names another hub."""
    stack = AsyncExitStack()
    persons: list[Person] = []

    async def make(at: ConsoleHub | None = None, **options: Any) -> Person:
        made = await stack.enter_async_context(person_at(browser, at or hub, **options))
        persons.append(made)
        return made

    yield make
    browser_loop.run_until_complete(stack.aclose())
    hub.check()
    for each in persons:
        each.problems.check()


@pytest.fixture
def person(browser_loop: asyncio.AbstractEventLoop, new_person: NewPerson) -> Person:
    return browser_loop.run_until_complete(new_person())


@pytest.fixture
def console_page(browser_loop: asyncio.AbstractEventLoop, person: Person) -> Page:
    return browser_loop.run_until_complete(person.open("/"))


@pytest.fixture
def agent(browser_loop: asyncio.AbstractEventLoop, hub: ConsoleHub) -> Iterator[Agent]:
    yield from entered(browser_loop, hub.agent())
