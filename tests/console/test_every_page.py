"""Every page of the navigation, full and empty, in both themes and both languages, wide and as a phone has it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.async_api import Page, expect

from tests.support.console import (
    LANGUAGES,
    PAGES,
    PHONE,
    NewPerson,
    Person,
    axe,
    axe_in_every_look,
    has_no_sideways_scroll,
    is_connected,
    nameless_controls,
    set_language,
)
from tests.support.console_demo import demonstration
from tests.support.console_hub import ConsoleHub, new_home

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
LEVELS = """() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
    .filter((heading) => heading.checkVisibility()).map((heading) => Number(heading.tagName[1]))"""
HANGUL = re.compile("[가-힣]")


@pytest.fixture(scope="module")
def hub(browser_loop: asyncio.AbstractEventLoop) -> Iterator[ConsoleHub]:
    """With something to see on every page."""
    with new_home() as home:
        made = ConsoleHub(home)
        shown = demonstration(made)
        try:
            browser_loop.run_until_complete(shown.__aenter__())
            yield made
            browser_loop.run_until_complete(shown.__aexit__(None, None, None))
        finally:
            browser_loop.run_until_complete(made.stop())


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_can_be_read_by_everybody_in_every_look(path: str, person: Person) -> None:
    page = await person.open(path)
    await axe_in_every_look(page)
    assert await nameless_controls(page) == []
    await expect(page.get_by_role("heading", level=1)).to_have_count(1)
    levels = await page.evaluate(LEVELS)
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels)), levels


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_fits_a_phone_in_both_languages(path: str, new_person: NewPerson) -> None:
    page = await (await new_person(size=PHONE)).open(path)
    for language in LANGUAGES:
        await set_language(page, language)
        await has_no_sideways_scroll(page)
    await axe(page)


@pytest.mark.parametrize("path", PAGES)
async def test_the_words_of_a_page_switch_while_it_is_open(path: str, person: Person) -> None:
    page = await person.open(path)
    words = page.locator("main :is(h1, h2, h3, button, label, th, .tab, .muted)")
    await expect(page.get_by_role("heading", level=1)).not_to_have_text(HANGUL)
    await set_language(page, "ko")
    await expect(page.get_by_role("heading", level=1)).to_have_text(HANGUL)
    await set_language(page, "en")
    texts = [text for text in await words.all_inner_texts() if HANGUL.search(text) and "보안" not in text]
    assert texts == []


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_of_the_navigation_is_the_one_of_its_address(
    path: str, console_page: Page, hub: ConsoleHub
) -> None:
    await console_page.locator(f".nav-link[href='{path}']").click()
    await expect(console_page.locator(".nav-link[aria-current='page']")).to_have_attribute("href", path)
    await is_connected(console_page)
    title = await console_page.get_by_role("heading", level=1).inner_text()
    await console_page.goto(f"{hub.origin}{path}")
    await expect(console_page.get_by_role("heading", level=1)).to_have_text(title)


async def test_the_navigation_has_every_page(console_page: Page) -> None:
    links = console_page.locator(".nav-link:visible")
    await expect(links).to_have_count(len(PAGES))
    assert [await link.get_attribute("href") for link in await links.all()] == list(PAGES)


async def test_the_theme_follows_the_system_and_then_the_person(console_page: Page) -> None:
    root = console_page.locator("html")
    for theme in ("dark", "light"):
        await console_page.emulate_media(color_scheme=theme)
        await expect(root).to_have_attribute("data-theme", theme)
    await console_page.get_by_role("button", name="Switch between dark and light").click()
    await expect(root).to_have_attribute("data-theme", "dark")
    await console_page.reload()
    await expect(root).to_have_attribute("data-theme", "dark")


async def test_the_language_is_the_browsers_and_then_the_persons(new_person: NewPerson) -> None:
    page = await (await new_person(language="ko")).open("/")
    await expect(page.locator("html")).to_have_attribute("lang", "ko")
    await page.locator(".nav-foot button").last.click()
    await expect(page.locator("html")).to_have_attribute("lang", "en")
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("lang", "en")
