"""What is measured of the pages, and the targets of the project for it."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from playwright.sync_api import Browser, Error

from bench.console.browser import Frames, Site, first_paint_ms, frames, frames_of_all, visitor, weigh
from bench.console.contenders import CONTENDERS, EMPTY, INSPECTOR, MITMWEB, OURS, Contender
from bench.console.sites import SITES, Running, all_bytes, settle
from bench.errors import BenchError
from bench.processes import Scratch
from bench.results import Measurement, Target

ALL_KB = 90.0
FIRST_PAINT_MS = 300.0
LONG_PERCENT = 5.0
LINKS = "nav a[href]"
CALM_S = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    paints: int
    seconds: float
    """Of drawing, in each round."""
    scratch: Scratch
    browser: Browser


def weight(plan: Plan) -> Iterator[Measurement[Contender]]:
    """What a first visit loads; of ours also every page of the navigation, and all there is in one language."""
    tenth = (Target(MITMWEB, "≤", 0.1), Target(INSPECTOR, "≤", 0.1))
    served = Measurement("the first page, as served", "kB", CONTENDERS, tenth)
    zipped = Measurement("the first page, gzipped", "kB", CONTENDERS, tenth)
    pages = Measurement("every page of the navigation, as served", "kB", (OURS,), (), limit=ALL_KB)
    whole = Measurement("all files in one language, as served", "kB", (OURS,), (), limit=ALL_KB)
    for contender in _present():
        with SITES[contender.name](plan.browser, plan.scratch) as running:
            first = weigh(plan.browser, running.site)
            served.add(contender, first.served_bytes / 1000)
            zipped.add(contender, first.gzipped_bytes / 1000)
            if contender is OURS:
                pages.add(OURS, weigh(plan.browser, running.site, LINKS).served_bytes / 1000)
                whole.add(OURS, all_bytes(running.site) / 1000)
    yield from (served, zipped, pages, whole)


def paint(plan: Plan) -> Iterator[Measurement[Contender]]:
    third = (Target(MITMWEB, "≤", 1 / 3), Target(INSPECTOR, "≤", 1 / 3))
    first = Measurement("first paint, empty cache", "ms", CONTENDERS, third, limit=FIRST_PAINT_MS)
    with ExitStack() as stack:
        running = [stack.enter_context(SITES[one.name](plan.browser, plan.scratch)) for one in _present()]
        for number in range(plan.paints + 1):
            for one in running:
                took_ms = first_paint_ms(plan.browser, one.site)
                if number:  # the first fills caches of the servers
                    first.add(one.contender, took_ms)
    yield first


def busy(plan: Plan) -> Iterator[Measurement[Contender]]:
    """One contender at a time, each with the machine for itself; the empty page before ours."""
    name = "frames under load"
    ahead = (Target(EMPTY, "≥", 0.85), Target(MITMWEB, "≥", 1.0), Target(INSPECTOR, "≥", 1.0))
    rate = Measurement(name, "frames/s", (OURS, EMPTY, MITMWEB, INSPECTOR), ahead)
    long = Measurement(f"{name}: above 50 ms", "%", CONTENDERS, (), limit=LONG_PERCENT)
    cpu = Measurement("server CPU for one viewer of 100 flows/s", "%", CONTENDERS, ())
    for _ in range(plan.rounds):
        rate.add(EMPTY, _empty(plan).per_s)
    for contender in _present():
        try:
            with SITES[contender.name](plan.browser, plan.scratch, is_busy=True) as running:
                _watch(plan, running, rate, long)
                _view(plan, running, cpu)
        except (BenchError, Error) as failed:
            if contender is OURS:
                raise
            print(f"bench: NO NUMBERS OF {contender.title} under load: {failed}", file=sys.stderr)
    yield from (rate, long, cpu)


def _empty(plan: Plan) -> Frames:
    with visitor(plan.browser, Site("about:blank")) as context:
        page = context.new_page()
        page.goto("about:blank")
        return frames(page, plan.seconds)


def _watch(
    plan: Plan,
    running: Running,
    rate: Measurement[Contender],
    long: Measurement[Contender],
) -> None:
    """The slowest of the pages that are open at the same time."""
    with ExitStack() as stack:
        # A page behind another one of its window draws twice a second, whatever it is.
        pages = [stack.enter_context(visitor(plan.browser, running.site)).new_page() for _ in running.busy_urls]
        for page, url in zip(pages, running.busy_urls, strict=True):
            page.goto(url, wait_until="commit")  # 50,000 flows may take a page minutes
        stack.enter_context(running.load())
        for page in pages:
            settle(page, running.contender)
        for _ in range(plan.rounds):
            worst = min(frames_of_all(pages, plan.seconds), key=lambda each: each.per_s)
            rate.add(running.contender, worst.per_s)
            long.add(running.contender, worst.long_percent)


def _view(plan: Plan, running: Running, cpu: Measurement[Contender]) -> None:
    """The server's CPU with one page open, less that with none. The load is steady: a pane that prints as fast as it
    can takes whatever a page leaves."""
    with running.steady_load():
        before = _cpu_percent(running, plan.seconds)
        with visitor(plan.browser, running.site) as context:
            page = context.new_page()
            page.goto(running.busy_urls[0], wait_until="commit")
            settle(page, running.contender)
            watched = [_cpu_percent(running, plan.seconds) for _ in range(plan.rounds)]
        time.sleep(CALM_S)
        alone = (before + _cpu_percent(running, plan.seconds)) / 2
    for one in watched:
        cpu.add(running.contender, max(0.0, one - alone))


def _cpu_percent(running: Running, seconds: float) -> float:
    before_s, began_s = running.cpu_s(), time.monotonic()
    time.sleep(seconds)
    return (running.cpu_s() - before_s) / (time.monotonic() - began_s) * 100


def _present() -> list[Contender]:
    return [one for one in CONTENDERS if not one.missing]


MEASURES: dict[str, Callable[[Plan], Iterator[Measurement[Contender]]]] = {
    "weight": weight,
    "paint": paint,
    "busy": busy,
}
