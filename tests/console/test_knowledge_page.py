"""Knowledge: a folder is named, indexed with progress, searched, asked, and read at the passage."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.support.console import Person, axe_in_every_look, has_no_sideways_scroll
from tests.support.console_hub import ConsoleHub
from tests.support.hostile_server import TEXT
from tests.support.knowledge_base import NOTES, write_notes

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]


async def index(person: Person, hub: ConsoleHub) -> Page:
    """The person names the folder, once."""
    page = await person.open("/knowledge/documents")
    folder = hub.home / "notes"
    if not folder.exists():
        write_notes(folder)
        (folder / "hostile.md").write_text(f"# {TEXT}\n\nA passage about hostility: {TEXT}\n")
        await page.get_by_role("textbox", name="Absolute path").fill(str(folder))
        await page.get_by_role("button", name="Add a folder").click()
    await expect(page.get_by_role("link", name="backups.md")).to_be_visible()
    return page


async def test_a_folder_that_is_named_is_indexed_and_listed(person: Person, hub: ConsoleHub) -> None:
    page = await index(person, hub)
    for name in NOTES:
        await expect(page.get_by_role("row").filter(has_text=name)).to_be_visible()
    await expect(page.get_by_role("listitem").filter(has_text=str(hub.home / "notes"))).to_be_visible()
    (hub.home / "notes" / "later.md").write_text("# Later\n\nThis note came later.\n")
    await page.get_by_role("button", name="Index what changed").click()
    await expect(page.get_by_role("link", name="later.md")).to_be_visible()
    await expect(page.get_by_role("status")).to_contain_text("1 new")


async def test_a_folder_that_is_not_there_is_refused_with_the_next_step(person: Person, hub: ConsoleHub) -> None:
    page = await index(person, hub)
    await page.get_by_role("textbox", name="Absolute path").fill("/no/such/folder")
    await page.get_by_role("button", name="Add a folder").click()
    await expect(page.get_by_role("status")).to_contain_text("'/no/such/folder'")


async def test_a_search_groups_passages_and_opens_one_at_its_line(person: Person, hub: ConsoleHub) -> None:
    page = await index(person, hub)
    await page.keyboard.press("/")
    await page.get_by_role("searchbox").fill("backups kept")
    await page.keyboard.press("Enter")
    article = page.get_by_role("article").filter(has=page.get_by_role("heading", name="backups.md"))
    await expect(article.locator("mark").first).to_be_visible()
    await article.get_by_role("link").first.click()
    passage = page.locator("li[data-state='passage']").filter(has_text="35 days")
    await expect(passage).to_be_visible()
    address = page.url
    assert "q=backups" in address and "chunk=" in address
    again = await person.open(address.removeprefix(hub.origin))
    await expect(again.locator("li[data-state='passage']").filter(has_text="35 days")).to_be_visible()
    await expect(again.get_by_role("searchbox")).to_have_value("backups kept")


async def test_korean_is_found_and_marked_by_whole_characters(person: Person, hub: ConsoleHub) -> None:
    await index(person, hub)
    page = await person.open("/knowledge?q=%EB%B9%84%EB%B0%80%EB%B2%88%ED%98%B8")
    await expect(page.locator("mark").filter(has_text="비밀번호").first).to_be_visible()


async def test_a_question_is_answered_with_its_sources_or_refused(person: Person, hub: ConsoleHub) -> None:
    await index(person, hub)
    page = await person.open("/knowledge/ask")
    await page.get_by_role("textbox", name="Question").fill("How long are backups kept?")
    await page.keyboard.press("Enter")
    section = page.get_by_role("region", name="Ask")
    await expect(section).to_have_attribute("data-state", re.compile("ready|failed"))


async def test_health_shows_the_index_and_every_check(person: Person, hub: ConsoleHub) -> None:
    await index(person, hub)
    page = await person.open("/knowledge/health")
    await expect(page.get_by_role("term").filter(has_text="Documents")).to_be_visible()
    await expect(page.get_by_role("img", name=re.compile("good|needs you")).first).to_be_visible()


async def test_text_of_a_document_is_never_markup(person: Person, hub: ConsoleHub) -> None:
    await index(person, hub)
    page = await person.open("/knowledge?q=hostility")
    await page.get_by_role("article").get_by_role("link").first.click()
    await expect(page.locator("li[data-state='passage']").first).to_be_visible()
    assert await page.evaluate("() => window.hacked ?? null") is None
    assert await page.locator("main img[src='x']").count() == 0


@pytest.mark.parametrize(
    "path", ["/knowledge?q=backups", "/knowledge/ask", "/knowledge/documents", "/knowledge/health"]
)
async def test_every_part_is_accessible_with_content(path: str, person: Person, hub: ConsoleHub) -> None:
    await index(person, hub)
    page = await person.open(path)
    await expect(page.locator(".kb-panel > *").first).to_be_visible()
    await axe_in_every_look(page)
    await page.set_viewport_size({"width": 380, "height": 800})
    await has_no_sideways_scroll(page)
