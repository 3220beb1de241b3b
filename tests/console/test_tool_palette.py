"""Design 002 §3.3: Ctrl-Shift-M opens the tools of every server over a pane; the result is shown, or typed into it."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.support import playground_server
from tests.support.console import Person, axe
from tests.support.console_hub import Agent, ConsoleHub

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]
OPEN = """async () => {
    const main = document.querySelector("script[type=module]").src;
    const { openToolPalette } = await import(new URL("parts/tool-palette.js", main).href);
    window.typed = [];
    const typeInto = async (text, { enter }) => window.typed.push([text, enter]);
    openToolPalette({ typeInto, paneLabel: "build\\u202e" });
}"""


@pytest.fixture(scope="module", autouse=True)
def servers(hub: ConsoleHub) -> Iterator[None]:
    hub.write_servers(play={"command": sys.executable, "args": [str(Path(playground_server.__file__))]})
    yield


async def pick(page: Page, words: str) -> None:
    await page.get_by_role("combobox", name="Type a tool").fill(words)
    await expect(page.get_by_role("dialog").get_by_role("option").first).to_contain_text(words)
    await page.keyboard.press("Enter")


async def test_a_key_opens_it_anywhere_and_a_tool_is_run_without_the_mouse(console_page: Page) -> None:
    page = console_page
    await page.keyboard.press("Alt+Shift+M")
    await pick(page, "rich")
    await page.keyboard.type("Ada")
    await page.get_by_label(re.compile(r"^r\b")).fill("1")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("region", name="Result")).to_have_attribute("data-state", "ok")
    await axe(page, "dialog")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("Control+Shift+M")
    await expect(page.get_by_role("dialog", name="Run a tool")).to_be_visible()


async def test_a_result_is_seen_before_it_is_typed_into_the_pane(console_page: Page) -> None:
    page = console_page
    await page.evaluate(OPEN)
    await pick(page, "nothing")
    await page.get_by_role("button", name="Run", exact=True).click()
    area = page.get_by_role("textbox", name="What will be typed")
    await expect(area).to_have_value("called nothing")
    await area.fill("one\ntwo")
    await expect(page.get_by_text("2 lines")).to_be_visible()
    await page.get_by_role("checkbox", name="Press Enter after it").check()
    await page.get_by_role("button", name="Type into build\\u{202e}").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert await page.evaluate("window.typed") == [["one\ntwo", True]]


async def test_a_question_of_the_server_is_answered_in_the_palette(console_page: Page) -> None:
    page = console_page
    await page.evaluate(OPEN)
    await pick(page, "asks")
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.get_by_role("group", name="play asks").get_by_label(re.compile("^name")).fill("Ada")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("accept")


async def test_a_question_that_no_call_on_the_page_is_about_comes_as_a_dialog(console_page: Page) -> None:
    page = console_page
    asked = page.evaluate("""async () => {
        const main = await import(document.querySelector("script[type=module]").src);
        const { live } = main.$["lib/live.js"];
        return (await live.call("play__asks")).content[0].text;
    }""")
    answer = asyncio.ensure_future(asked)
    question = page.get_by_role("dialog", name="The server asks")
    await question.get_by_label(re.compile("^name")).fill("Ada")
    await question.get_by_role("button", name="Send").click()
    assert json.loads(await answer) == {"action": "accept", "content": {"name": "Ada", "age": 30}}


async def test_keys_and_escapes_in_a_result_are_not_typed(console_page: Page) -> None:
    text = await console_page.evaluate("""async () => {
        const main = document.querySelector("script[type=module]").src;
        const { typable } = await import(new URL("parts/tool-palette.js", main).href);
        return typable("a\\u001b[31m\\u0003b\\r\\nc\\u009b\\n\\n");
    }""")
    assert text == "a[31mb\nc"


async def test_over_a_pane_a_result_is_shown_and_typed_into_the_shell(person: Person, agent: Agent) -> None:
    pane_id = str((await agent.call("crux_create_pane", name="build"))["id"])
    page = await person.open(f"/terminals/{pane_id}")
    pane = page.locator(f'article.pane[data-pane="{pane_id}"]')
    await expect(pane).to_have_attribute("data-state", re.compile("live|past"))
    await pane.get_by_role("button", name=re.compile("Take over|Type too")).click()
    await page.keyboard.press("Control+Shift+M")
    await pick(page, "nothing")
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("called nothing")
    await page.get_by_role("textbox", name="What will be typed").fill("echo typed-$((40+2))")
    await page.get_by_role("checkbox", name="Press Enter after it").check()
    await page.get_by_role("button", name=re.compile("^Type into")).click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(pane.locator(".term-screen")).to_contain_text("typed-42")
