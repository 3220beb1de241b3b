"""The frame of every page: navigation, palette, keys, language, theme, and a connection that is lost and comes back."""

from __future__ import annotations

import re
import signal

import pytest
from playwright.async_api import Page, expect

from tests.support.console import PHONE, NewPerson, Person
from tests.support.console_hub import ConsoleHub

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]


async def test_a_page_is_reached_by_link_palette_and_keys_and_back_goes_back(console_page: Page) -> None:
    page = console_page
    await page.get_by_role("link", name="Traffic").click()
    await expect(page).to_have_url(re.compile(r"/traffic$"))
    await page.keyboard.press("Control+k")
    await page.keyboard.type("settings")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"/settings$"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
    await page.keyboard.press("g")
    await page.keyboard.press("h")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Home")
    await expect(page.get_by_role("link", name="Home")).to_have_attribute("aria-current", "page")
    await page.go_back()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
    assert "Settings" in await page.title()


async def test_the_keys_are_shown_and_escape_closes(console_page: Page) -> None:
    await console_page.keyboard.press("?")
    dialog = console_page.get_by_role("dialog", name="Keys")
    await expect(dialog.get_by_role("row", name=re.compile("Search pages and commands"))).to_be_visible()
    await console_page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_language_and_theme_are_switched_live_and_remembered(console_page: Page) -> None:
    page = console_page
    await page.get_by_role("button", name="Switch language").click()
    await expect(page.get_by_role("link", name="트래픽")).to_be_visible()
    await expect(page.locator("html")).to_have_attribute("lang", "ko")
    await page.get_by_role("button", name="어두운 화면과 밝은 화면 전환").click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.reload()
    await expect(page.get_by_role("link", name="트래픽")).to_be_visible()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")


async def test_a_person_with_a_korean_browser_switches_and_later_pages_follow(new_person: NewPerson) -> None:
    page = await (await new_person(language="ko")).open()
    await expect(page.locator("html")).to_have_attribute("lang", "ko")
    await page.get_by_role("button", name="언어 전환").click()
    await expect(page.locator("html")).to_have_attribute("lang", "en")
    await page.get_by_role("link", name="Audit").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Audit")


async def test_the_sources_run_as_they_are_written_at_the_plain_address(person: Person) -> None:
    page = await person.open("/?plain")
    assert "/js/main.js" in str(await page.locator("script[type=module]").get_attribute("src"))
    await page.get_by_role("link", name="Audit").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Audit")
    await page.get_by_role("button", name="Switch language").click()
    await expect(page.get_by_role("link", name="트래픽")).to_be_visible()


async def test_the_keyboard_can_skip_the_navigation(console_page: Page) -> None:
    await console_page.keyboard.press("Tab")
    await expect(console_page.get_by_role("link", name="Skip to the page")).to_be_focused()
    await console_page.keyboard.press("Enter")
    await expect(console_page.locator("main")).to_be_focused()


async def test_on_a_phone_the_navigation_is_behind_a_button(new_person: NewPerson) -> None:
    person = await new_person(size=PHONE)
    page = await person.open("/")
    link = page.get_by_role("link", name="Settings")
    await expect(link).to_be_hidden()
    await page.get_by_role("button", name="Menu").click()
    await link.click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
    await expect(link).to_be_hidden()


async def test_an_address_that_leads_nowhere_is_404(person: Person, hub: ConsoleHub) -> None:
    person.problems.allow("404")
    page = await person.context.new_page()
    reply = await page.goto(f"{hub.origin}/nowhere")
    assert reply is not None and reply.status == 404


async def test_an_address_with_a_stray_percent_sign_is_a_page(person: Person) -> None:
    page = await person.open("/settings/%E0%A4%A")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Settings")


@pytest.mark.parametrize("kept", ["", "x" * 43])
async def test_a_browser_whose_cookie_came_without_the_page_key_is_logged_out(person: Person, kept: str) -> None:
    person.problems.allow(r"WebSocket|401")
    page = await person.open("/")
    assert "#" not in page.url
    await page.evaluate("(kept) => localStorage.setItem('dari.pageKey', kept)", kept)
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-live", "logged-out")
    await expect(page.get_by_role("alert")).to_contain_text("dari console")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_hub_that_is_started_again_finds_its_pages_where_they_were(
    person: Person, hub: ConsoleHub, number: signal.Signals
) -> None:
    person.problems.allow("ERR_CONNECTION_REFUSED|WebSocket")
    page = await person.open("/settings")
    await hub.stop(number)
    banner = page.get_by_role("alert")
    await expect(banner).to_contain_text("connection to the hub is lost")
    await hub.start()
    await expect(page.locator("html")).to_have_attribute("data-live", "open")
    await expect(banner).to_be_hidden()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Settings")


async def test_logging_out_in_one_tab_logs_the_others_out(new_person: NewPerson, hub: ConsoleHub) -> None:
    person = await new_person(is_logged_in=False)
    person.problems.allow("401|WebSocket")
    await hub.restart()
    first = await person.context.new_page()
    await first.goto(hub.link)
    await expect(first.locator("html")).to_have_attribute("data-live", "open")
    second = await person.open("/settings")
    await first.keyboard.press("Control+k")
    await first.keyboard.type("log out")
    await first.keyboard.press("Enter")
    await expect(first.get_by_text("dari console")).to_be_visible()
    await expect(second.get_by_role("alert")).to_contain_text("You are logged out")
