"""Chromium, driven by Playwright: what a page weighs, when it is first painted, how evenly it draws."""

import gzip
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Request, StorageState, TimeoutError, sync_playwright

from bench.console.contenders import CHROMIUM
from bench.errors import BenchError

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
SIZE = {"width": 1280, "height": 800}
LONG_FRAME_MS = 50.0
TIMEOUT_MS = 60_000
SETTLE_MS = 3000
# What a page consists of; what it asks for afterwards is data.
PARTS = ("document", "script", "stylesheet", "image", "font", "manifest", "other")
# Counting begins on each page at once, and what was counted is asked for afterwards.
START = """(ms) => {
    const times = [];
    window.benchFrames = null;
    const next = (now) => {
        times.push(now);
        if (now - times[0] < ms) requestAnimationFrame(next); else window.benchFrames = times;
    };
    requestAnimationFrame(next);
    return true;
}"""
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


@dataclass(frozen=True, slots=True)
class Site:
    """A page of a contender, and what lets a browser in."""

    url: str
    login: StorageState | None = None


@dataclass(frozen=True, slots=True)
class Weight:
    served_bytes: int
    gzipped_bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class Frames:
    per_s: float
    long_percent: float
    """The share of frames that took longer than 50 ms."""


@contextmanager
def chromium() -> Iterator[Browser]:
    if not CHROMIUM:
        raise BenchError("chromium is not on PATH", "apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visitor(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    """Somebody who has never been there: nothing is in the cache."""
    context = browser.new_context(viewport=SIZE, locale="en-US", storage_state=site.login)
    context.set_default_timeout(TIMEOUT_MS)
    try:
        yield context
    finally:
        context.close()


def weigh(browser: Browser, site: Site, links: str = "") -> Weight:
    """What came over the wire for the page; with `links`, also for every page that these lead to."""
    with visitor(browser, site) as context:
        page = context.new_page()
        finished: dict[str, Request] = {}
        page.on("requestfinished", lambda request: finished.setdefault(request.url, request))
        page.goto(site.url)
        page.wait_for_timeout(SETTLE_MS)  # a page that asks for news again and again is never idle
        # Only without a reload is each file asked for once: the links are followed as a person does.
        for link in page.locator(links).all() if links else ():
            link.click()
            page.wait_for_timeout(SETTLE_MS)
        parts = [one for one in finished.values() if one.resource_type in PARTS]
        served = sum(one.sizes()["responseBodySize"] for one in parts)
        bodies = [response.body() for one in parts if (response := one.response()) is not None and response.ok]
        return Weight(served, sum(len(gzip.compress(body, 9)) for body in bodies), len(parts))


def first_paint_ms(browser: Browser, site: Site) -> float:
    """From the start of the navigation to the first text or picture, with an empty cache."""
    with visitor(browser, site) as context:
        page = context.new_page()
        page.goto(site.url)
        deadline = time.monotonic() + TIMEOUT_MS / 1000
        while not (painted_ms := float(page.evaluate(PAINT))):
            if time.monotonic() > deadline:
                raise BenchError(f"{site.url} painted nothing in {TIMEOUT_MS / 1000:g} s")
            page.wait_for_timeout(20)
        return painted_ms


def frames(page: Page, seconds: float) -> Frames:
    """How often the page could draw."""
    return frames_of_all([page], seconds)[0]


def frames_of_all(pages: Sequence[Page], seconds: float) -> list[Frames]:
    """The same of several pages at the same time."""
    for page in pages:
        _ask(page, START, seconds * 1000)
    return [_frames(page, seconds) for page in pages]


def _frames(page: Page, seconds: float) -> Frames:
    times = [float(each) for each in _ask(page, "() => window.benchFrames")]
    gaps = [after - before for before, after in pairwise(times)]
    if not gaps:
        raise BenchError(f"{page.url} drew nothing in {seconds:g} s")
    long = sum(gap > LONG_FRAME_MS for gap in gaps)
    return Frames(len(gaps) / (times[-1] - times[0]) * 1000, 100 * long / len(gaps))


def _ask(page: Page, script: str, argument: float | None = None) -> Any:
    """What the script returns once it is true. A page that is too busy to answer is given up after a minute."""
    try:
        return page.wait_for_function(script, arg=argument, polling=250, timeout=TIMEOUT_MS).json_value()
    except TimeoutError:
        raise BenchError(f"{page.url} gave no answer in {TIMEOUT_MS / 1000:g} s") from None
