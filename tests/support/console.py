"""The console in a real Chromium: pages that fail a test by themselves, axe-core, keys, both themes and languages.

page = await person.open("/traffic")        a page of somebody who is logged in
await axe(page)                             what a screen reader or a weak eye could not use
await tab_to(page, "button", "Save")        the keyboard alone
await axe_in_every_look(page)               the same in dark and light, English and Korean
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    StorageState,
    async_playwright,
    expect,
)

from tests.support.console_hub import ConsoleHub
from tests.support.requirements import missing
from tests.support.wire import ROOT

PAGES = ("/", "/servers", "/tools", "/traffic", "/terminals", "/knowledge", "/approvals", "/audit", "/settings")
Theme = Literal["light", "dark"]
Language = Literal["en", "ko"]
THEMES: tuple[Theme, ...] = ("light", "dark")
LANGUAGES: tuple[Language, ...] = ("en", "ko")
WIDE = (1280, 800)
PHONE = (380, 800)
TIMEOUT_MS = 20_000
MAX_TABS = 150
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
LOCALES: dict[Language, str] = {"en": "en-US", "ko": "ko-KR"}
# A message of Chromium's own stands on the console too; this one says which directive it was, and also what a
# report-only policy would have stopped.
REPORTS = """
document.addEventListener("securitypolicyviolation", (event) => {
    const place = `${event.sourceFile}:${event.lineNumber} ${event.sample}`;
    console.error(`CSP: ${event.violatedDirective} stopped ${event.blockedURI} ${place}`);
});
"""

# The page's own module, from the table `$` of modules in the script that the page began with.
SWITCH = """async (code) => {
    const main = await import(document.querySelector("script[type=module]").src);
    await main.$["lib/i18n.js"].setLanguage(code);
}"""

expect.set_options(timeout=TIMEOUT_MS)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """The machine's own; a loud skip where there is none, in CI a failure.

    The same browser without windows first: it draws only what is asked for, a third of the processor's time less.
    """
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        missing("THE CONSOLE WAS NOT TRIED IN A BROWSER: chromium is not there; apt-get install chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Problems:
    """What must not happen on a page: an error on its console, an exception, a request that failed, a CSP report."""

    seen: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def allow(self, pattern: str) -> None:
        """Problems that match this are what the test wants, before and after."""
        self.allowed.append(pattern)

    def left(self) -> list[str]:
        return [problem for problem in self.seen if not any(re.search(pattern, problem) for pattern in self.allowed)]

    def check(self) -> None:
        if left := self.left():
            pytest.fail("the page reported:\n" + "\n".join(left), pytrace=False)

    def watch(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.seen.append(f"exception: {error}"))
        page.on("requestfailed", self._on_failed)
        page.on("crash", lambda _: self.seen.append("the page crashed"))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert"):
            place = message.location
            self.seen.append(f"console: {message.text} ({place.get('url', '')}:{place.get('lineNumber', '')})")

    def _on_failed(self, request: Request) -> None:
        # What a page asked for when it was left or closed is nobody's failure.
        if request.failure != "net::ERR_ABORTED":
            self.seen.append(f"request: {request.method} {request.url}: {request.failure}")


NewPerson = Callable[..., Coroutine[Any, Any, "Person"]]
"""The fixture `new_person`: makes another one, with the options of `person_at`."""


class Person:
    """Somebody with a browser, logged in: each page of it is watched."""

    def __init__(self, hub: ConsoleHub, context: BrowserContext, problems: Problems) -> None:
        self.hub, self.context, self.problems = hub, context, problems

    async def open(self, path: str = "/") -> Page:
        """A new page, shown and connected."""
        page = await self.context.new_page()
        await self.go(page, path)
        return page

    async def go(self, page: Page, path: str) -> None:
        await page.goto(f"{self.hub.origin}{path}")
        await is_connected(page)


@asynccontextmanager
async def person_at(
    browser: Browser,
    hub: ConsoleHub,
    *,
    is_logged_in: bool = True,
    size: tuple[int, int] = WIDE,
    language: Language = "en",
    theme: Theme = "light",
) -> AsyncIterator[Person]:
    """A browser of its own: no cookie, no storage and no page of anybody else."""
    known = _logins.get(hub.link) if is_logged_in else None
    context = await browser.new_context(
        storage_state=known,
        viewport={"width": size[0], "height": size[1]},
        locale=LOCALES[language],
        timezone_id="UTC",
        color_scheme=theme,
        reduced_motion="reduce",
        accept_downloads=True,
    )
    context.set_default_timeout(TIMEOUT_MS)
    await context.add_init_script(REPORTS)
    problems = Problems()
    context.on("page", problems.watch)
    try:
        if is_logged_in and known is None:
            await log_in(context, hub)
        yield Person(hub, context, problems)
    finally:
        await context.close()


_logins: dict[str, StorageState] = {}
"""Of each link that was used, what the browser has from it: the link is good once, this for every browser of the
tests."""


async def log_in(context: BrowserContext, hub: ConsoleHub) -> None:
    page = await context.new_page()
    await page.goto(hub.link)
    await is_connected(page)
    _logins[hub.link] = await context.storage_state()
    await page.close()


async def is_connected(page: Page) -> None:
    """The page is drawn and its connection is open."""
    await expect(page.locator("html")).to_have_attribute("data-live", "open")
    await expect(page.locator("main")).to_have_attribute("data-state", "ready")


async def set_language(page: Page, language: Language) -> None:
    """As the button in the navigation does, at any width."""
    await page.evaluate(SWITCH, language)
    await expect(page.locator("html")).to_have_attribute("lang", language)


async def set_theme(page: Page, theme: Theme) -> None:
    """As the system says it, which the console follows unless the person chose one."""
    await page.emulate_media(color_scheme=theme)
    await expect(page.locator("html")).to_have_attribute("data-theme", theme)


def axe_source() -> str:
    """axe-core, which `./dev test` fetches from npm."""
    folder = Path(os.environ.get("DARI_NPM_DIR") or ROOT / ".dev" / "npm")
    path = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        missing(f"AXE-CORE WAS NOT RUN: {path} is not there; ./dev test installs it")
    return path.read_text()


AXE = """async ({ root, colours }) => {
    // The rules that a theme can break, and all the others.
    const drawn = ["color-contrast", "link-in-text-block"];
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const found = await axe.run(root ?? document, {
        preload: false,
        resultTypes: ["violations"],
        runOnly: colours === "only" ? { type: "rule", values: drawn } : tags,
        rules: colours === "without" ? Object.fromEntries(drawn.map((id) => [id, { enabled: false }])) : {},
    });
    const shorten = ({ target, html, failureSummary }) =>
        ({ target: target.join(" "), html: html.slice(0, 300), why: failureSummary });
    return found.violations.map(({ id, impact, help, nodes }) =>
        ({ id, impact, help, nodes: nodes.slice(0, 6).map(shorten) }));
}"""


async def axe(
    page: Page,
    root: str | None = None,
    ignore: tuple[str, ...] = (),
    colours: Literal["too", "only", "without"] = "too",
) -> None:
    """No violation on the page as it is now, or in the part that the selector `root` names."""
    if not await page.evaluate("typeof axe === 'object'"):
        await page.evaluate(axe_source())
    seen = await page.evaluate(AXE, {"root": root, "colours": colours})
    found = [each for each in seen if each["id"] not in ignore]
    if found:
        pytest.fail(f"axe-core on {urlsplit(page.url).path}:\n" + "\n".join(map(_violation, found)), pytrace=False)


async def axe_in_every_look(page: Page) -> None:
    """Both themes and both languages: a theme changes colours and nothing else, a language everything but them."""
    await set_language(page, "en")
    await set_theme(page, "light")
    await axe(page)
    await set_theme(page, "dark")
    await axe(page, colours="only")
    await set_language(page, "ko")
    await axe(page, colours="without")


def _violation(found: dict[str, Any]) -> str:
    lines = [f"{found['id']} ({found['impact']}): {found['help']}"]
    for node in found["nodes"]:
        why = " ".join(node["why"].split())
        lines += [f"    {node['target']}", f"        {node['html']}", f"        {why}"]
    return "\n".join(lines)


async def has_no_sideways_scroll(page: Page) -> None:
    """The page is no wider than its window; what is wide scrolls inside of itself."""
    wide = await page.evaluate(
        """() => {
            const limit = document.documentElement.clientWidth;
            if (document.documentElement.scrollWidth <= limit) return null;
            const isOver = (e) => e.getBoundingClientRect().right > limit + 1;
            const over = [...document.body.querySelectorAll("*")].filter(isOver);
            return `${document.documentElement.scrollWidth} px in ${limit}: ` +
                over.slice(0, 8).map((e) => `${e.tagName.toLowerCase()}.${e.className}`).join(", ");
        }"""
    )
    assert wide is None, f"{urlsplit(page.url).path} scrolls sideways: {wide}"


async def tab_to(
    page: Page, role: Any, name: str | re.Pattern[str], *, back: bool = False, exact: bool = False
) -> Locator:
    """Press Tab until this control has the focus; it must then be seen that it has."""
    wanted = page.get_by_role(role, name=name, exact=exact)
    await expect(wanted.first).to_be_visible()
    for _ in range(MAX_TABS):
        await page.keyboard.press("Shift+Tab" if back else "Tab")
        focused = page.locator(":focus")
        if await focused.count() and await focused.and_(wanted).count():
            await focus_is_visible(page)
            return focused
    raise AssertionError(f"{MAX_TABS} times Tab do not lead to the {role} {name!r}; focus: {await focus_text(page)}")


async def focus_is_visible(page: Page) -> None:
    """The control with the focus has an outline, a ring or a border that is drawn."""
    shown = await page.evaluate(
        """() => {
            const style = getComputedStyle(document.activeElement);
            const hasOutline = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
            return hasOutline || style.boxShadow !== "none";
        }"""
    )
    assert shown, f"the focus cannot be seen: {await focus_text(page)}"


async def focus_text(page: Page) -> str:
    return str(await page.evaluate("() => document.activeElement?.outerHTML.slice(0, 200) ?? 'none'"))


async def nameless_controls(page: Page) -> list[str]:
    """Controls that a screen reader would call by nothing but their kind."""
    tree = await page.locator("body").aria_snapshot()
    kinds = "button|link|textbox|searchbox|combobox|checkbox|radio|switch|slider|spinbutton|tab|menuitem|grid"
    return [line.strip() for line in tree.splitlines() if re.fullmatch(rf"\s*- ({kinds})( \[[^\]]*\])*:?", line)]
