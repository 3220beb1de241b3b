"""Resources are read, filled in from templates and followed; prompts are completed and shown as messages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.support import playground_server
from tests.support.console import Person, axe_in_every_look
from tests.support.console_hub import ConsoleHub
from tests.support.playground_server import MARKUP

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]


@pytest.fixture(scope="module", autouse=True)
def servers(hub: ConsoleHub) -> Iterator[None]:
    hub.write_servers(play={"command": sys.executable, "args": [str(Path(playground_server.__file__))]})
    yield


async def test_a_resource_is_read_and_read_again_when_it_changes(person: Person) -> None:
    page = await person.open("/tools/resources")
    await page.get_by_role("link", name="counter").click()
    tree = page.get_by_role("tree")
    await expect(tree).to_contain_text(re.compile(r"reads: \d+"))
    before = await tree.inner_text()
    await page.get_by_role("switch", name="Follow changes").check()
    await expect(page.get_by_text(re.compile("^Read again"))).to_be_visible()
    await expect(tree).not_to_have_text(before)


async def test_pictures_are_shown_and_markup_of_a_resource_is_text(person: Person) -> None:
    page = await person.open("/tools/resources/demo%3A%2F%2Fpicture")
    await expect(page.get_by_role("img", name="image/png")).to_be_visible()
    page = await person.open("/tools/resources/demo%3A%2F%2Fevil")
    await expect(page.locator("pre")).to_contain_text(MARKUP)
    assert await page.locator("main pre img, main script").count() == 0


async def test_a_template_asks_for_its_fields_and_completes_them(person: Person) -> None:
    page = await person.open("/tools/resources")
    await page.get_by_role("link", name="note").click()
    await page.get_by_label("id", exact=True).fill("A")
    await expect(page.locator("datalist option[value=Ada]")).to_have_count(1)
    await page.get_by_label("id", exact=True).fill("a b")
    await page.get_by_label("lang", exact=True).fill("ko")
    await expect(page.get_by_text("demo://note/a%20b?lang=ko")).to_be_visible()
    await page.get_by_role("button", name="Read").click()
    await expect(page.locator("pre")).to_contain_text("demo://note/a%20b?lang=ko")


async def test_a_prompt_is_completed_and_its_messages_are_shown(person: Person) -> None:
    page = await person.open("/tools/prompts")
    await page.get_by_role("link", name=re.compile("greet")).click()
    who = page.get_by_label(re.compile("^who"))
    await who.fill("Ad")
    await expect(page.locator("datalist option")).to_have_count(2)
    await page.get_by_role("button", name="Get").click()
    await expect(page.get_by_role("article")).to_have_count(2)
    await expect(page.get_by_role("article").first).to_contain_text(f"Greet Ad {MARKUP}")
    await page.reload()
    await expect(page.get_by_label(re.compile("^who"))).to_have_value("Ad")


async def test_both_are_right_for_screen_readers(person: Person) -> None:
    for path in ("/tools/resources/demo%3A%2F%2Fcounter", "/tools/prompts/play__greet"):
        page = await person.open(path)
        await expect(page.locator(".tools-body")).to_have_attribute("data-state", "ready")
        await axe_in_every_look(page)
