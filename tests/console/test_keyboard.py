"""The five main tasks with the keyboard alone: no test here has a mouse, and focus is seen at every stop."""

from __future__ import annotations

import asyncio
import re
import sys

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.support.console import Person, is_connected, tab_to
from tests.support.console_hub import LAB, Agent, ConsoleHub

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


async def go(page: Page, key: str, title: str) -> None:
    """By the key sequence of a page."""
    await page.keyboard.press("g")
    await page.keyboard.press(key)
    await expect(page.get_by_role("heading", level=1)).to_have_text(title)
    await is_connected(page)


@pytest.fixture
def page(console_page: Page) -> Page:
    return console_page


async def test_the_button_that_copies_keeps_the_focus_while_another_program_is_shown(page: Page) -> None:
    await go(page, "h", "Home")
    await expect(page.locator(".home-snippet pre")).to_be_visible()
    await tab_to(page, "button", "Copy with the token")
    for client in ("Cursor", "Codex"):
        await page.get_by_role("tab", name=client).evaluate("tab => tab.click()")  # which leaves the focus where it is
        await expect(page.get_by_role("tab", name=client)).to_have_attribute("aria-selected", "true")
    await expect(page.locator(".home-snippet pre")).to_contain_text("[mcp_servers.dari]")
    await expect(page.get_by_role("button", name="Copy with the token")).to_be_focused()


async def test_an_agent_is_connected(page: Page, person: Person, hub: ConsoleHub) -> None:
    await person.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await go(page, "h", "Home")
    await tab_to(page, "tab", "Claude Code")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("tab", name="Cursor")).to_have_attribute("aria-selected", "true")
    await tab_to(page, "button", "Copy with the token")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    copied = await page.evaluate("() => navigator.clipboard.readText()")
    assert hub.url in copied and hub.token in copied
    async with hub.agent("cursor-vscode") as agent:
        await agent.call("dari_doctor")
    await expect(page.get_by_text("First call received")).to_be_visible()


async def test_a_server_is_added(page: Page) -> None:
    await go(page, "s", "Servers")
    await page.keyboard.press("n")
    await expect(page.get_by_role("textbox", name="Name", exact=True)).to_be_focused()
    await page.keyboard.type("keys")
    await tab_to(page, "textbox", "Command", exact=True)
    await page.keyboard.type(sys.executable)
    await tab_to(page, "textbox", "Args 1", exact=True)
    await page.keyboard.type(str(LAB))
    await tab_to(page, "button", "Save", exact=True)
    await page.keyboard.press("Enter")
    await go(page, "s", "Servers")
    await expect(page.get_by_role("main").get_by_text("keys", exact=True).first).to_be_visible()


async def test_a_tool_is_run(page: Page) -> None:
    await go(page, "o", "Tools")
    await page.keyboard.press("/")
    await page.keyboard.type("dari_doctor")
    await tab_to(page, "link", re.compile("doctor"))
    await page.keyboard.press("Enter")
    await tab_to(page, "button", "Run", exact=True)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_contain_text("versions")


async def test_a_call_is_approved(page: Page, agent: Agent, hub: ConsoleHub) -> None:
    (hub.home / "old").mkdir()
    error = await agent.fails("crux_execute_command", command=f"rm -r {hub.home}/old")
    assert error["name"] == "needs_approval"
    await go(page, "a", "Approvals")
    await expect(page.get_by_role("main")).to_contain_text(f"rm -r {hub.home}/old")
    await expect(page.get_by_role("button", name="Approve once")).to_be_enabled()
    await page.keyboard.press("a")
    await expect(page.get_by_role("main")).not_to_contain_text(f"rm -r {hub.home}/old")
    await agent.call("crux_execute_command", command=f"rm -r {hub.home}/old")
    assert not (hub.home / "old").exists()


async def test_a_flow_is_found(page: Page, agent: Agent) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        await agent.call("crab_engine_set_listen_addr", listen_addr="127.0.0.1:0")
        await agent.call("crab_rules_add_allow", matcher=f"127.0.0.1:{port}")
        await agent.call("crab_proxy_start")
        proxy = f"http://{(await agent.call('crab_proxy_info'))['address']}"
        async with httpx.AsyncClient(proxy=proxy, trust_env=False) as client:
            for path in ("one", "two", "needle", "three"):
                await client.get(f"http://127.0.0.1:{port}/{path}")
    await go(page, "t", "Traffic")
    await page.keyboard.press("/")
    await page.keyboard.type("needle")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("row")).to_have_count(2)  # the names of the columns, and the needle
    await tab_to(page, "grid", re.compile("."))
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"/traffic/[^/?]+\?filter=needle"))
    await expect(page.get_by_role("main")).to_contain_text(f"http://127.0.0.1:{port}/needle")


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello")
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def test_keys_of_the_page_do_nothing_behind_a_dialog(person: Person) -> None:
    page = await person.open("/servers")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    for key in ("n", "g", "t"):
        await page.keyboard.press(key)
    assert await page.evaluate("location.pathname + location.search") == "/servers"
    await page.keyboard.press("Escape")
    await page.keyboard.press("n")
    await expect(page).to_have_url(re.compile("add=form$"))
