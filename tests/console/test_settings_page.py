"""Settings: tokens of clients, policies, throttle, looks and language."""

from __future__ import annotations

import asyncio
import re
import signal

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.support.console import (
    PHONE,
    NewPerson,
    Person,
    axe_in_every_look,
    has_no_sideways_scroll,
    is_connected,
    nameless_controls,
    tab_to,
)
from tests.support.console_hub import ConsoleHub

PANELS = ("tokens", "policies", "throttle", "appearance")


async def make_token(page: Page, name: str, *, read_only: bool = False) -> str:
    """By the form; returns the secret that the dialog shows."""
    form = page.get_by_role("form", name="New token")
    await form.get_by_label("Client").fill(name)
    await form.get_by_label("May only read").set_checked(read_only)
    await form.get_by_role("button", name="Make a token").click()
    return await secret_in_dialog(page)


async def secret_in_dialog(page: Page) -> str:
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name=re.compile("^Show or hide")).click()
    await expect(dialog.locator(".secret-value")).to_have_text(re.compile("^dtk_"))
    secret = await dialog.locator(".secret-value").inner_text()
    await dialog.get_by_role("button", name="Close").last.click()
    await expect(dialog).to_have_count(0)
    return secret


async def test_a_token_is_made_used_rotated_and_revoked(person: Person, hub: ConsoleHub) -> None:
    page = await person.open("/settings")
    secret = await make_token(page, "work-laptop")
    row = page.locator('tr[data-token="work-laptop"]')
    async with hub.agent("Cursor", secret) as agent:
        await agent.call("dari_ping")
        await expect(row.locator("td").nth(3)).to_have_text("1")  # its sessions
        await page.get_by_role("button", name="Rotate the token of work-laptop").click()
        await page.get_by_role("dialog").get_by_role("button", name="Rotate").click()
        new = await secret_in_dialog(page)
        assert new != secret
        await expect(row.locator("td").nth(3)).to_have_text("0")
        await is_refused(hub, secret)
    async with hub.agent("Cursor", new) as agent:
        await expect(row.locator("td").nth(3)).to_have_text("1")
        await page.get_by_role("button", name="Revoke the token of work-laptop").click()
        await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        await agent.call("dari_ping")
        await page.get_by_role("button", name="Revoke the token of work-laptop").click()
        await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        await expect(row).to_have_count(0)
    await is_refused(hub, new)
    assert await status_with(hub, hub.token) == 200


async def status_with(hub: ConsoleHub, token: str) -> int:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(hub.url, json=message, headers={"Authorization": f"Bearer {token}"})
        return answer.status_code


async def is_refused(hub: ConsoleHub, token: str) -> None:
    """Soon: the hub looks at the file four times a second."""
    async with asyncio.timeout(20):
        while await status_with(hub, token) != 401:  # noqa: ASYNC110 (it ends in another process)
            await asyncio.sleep(0.05)


async def test_a_token_that_may_only_read_changes_nothing_and_opens_no_console(person: Person, hub: ConsoleHub) -> None:
    page = await person.open("/settings/tokens")
    secret = await make_token(page, "reader", read_only=True)
    await expect(page.locator('tr[data-token="reader"] .badge')).to_have_text("read")
    async with hub.agent("reader", secret) as agent:
        assert (await agent.fails("crux_execute_command", command="true"))["name"] == "insufficient_scope"
        assert "dari_tokens_list" not in str(await agent.ask("tools/list"))
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"{hub.origin}/settings", headers={"Authorization": f"Bearer {secret}"})
        assert answer.status_code == 401


async def test_two_browsers_see_the_same_tokens(person: Person, new_person: NewPerson) -> None:
    first = await person.open("/settings/tokens")
    await make_token(first, "seen-by-both")
    second = await (await new_person()).open("/settings/tokens")
    await expect(second.locator('tr[data-token="seen-by-both"]')).to_be_visible()


async def test_tokens_are_there_after_the_hub_was_killed_under_the_page(person: Person, hub: ConsoleHub) -> None:
    person.problems.allow("WebSocket|ERR_CONNECTION")
    page = await person.open("/settings/tokens")
    secret = await make_token(page, "survivor")
    await hub.restart(signal.SIGKILL)
    await is_connected(page)
    await expect(page.locator('tr[data-token="survivor"]')).to_have_count(1)
    async with hub.agent("Cursor", secret) as agent:
        await agent.call("dari_ping")
        await expect(page.locator('tr[data-token="survivor"] td').nth(3)).to_have_text("1")


async def test_a_name_that_is_not_allowed_is_refused_with_the_rule(person: Person) -> None:
    page = await person.open("/settings/tokens")
    form = page.get_by_role("form", name="New token")
    await form.get_by_label("Client").fill("shared")
    await form.get_by_role("button", name="Make a token").click()
    await expect(page.locator(".toast.bad")).to_contain_text("shared")


async def test_a_token_is_made_and_revoked_with_the_keyboard_alone(person: Person) -> None:
    page = await person.open("/settings/tokens")
    await tab_to(page, "textbox", "Client")
    await page.keyboard.type("by-keys")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await tab_to(page, "button", "Revoke the token of by-keys")
    await page.keyboard.press("Enter")
    await tab_to(page, "button", "Revoke", exact=True)
    await page.keyboard.press("Enter")
    await expect(page.locator('tr[data-token="by-keys"]')).to_have_count(0)


async def test_policies_are_shown_with_their_state(person: Person, hub: ConsoleHub) -> None:
    page = await person.open("/settings/policies")
    terminal = page.locator('tr[data-part="terminal"]')
    await expect(terminal).to_have_attribute("data-state", "in force")
    await expect(terminal).to_contain_text(str(hub.home / ".config/crux/crux.toml"))
    await expect(terminal).to_contain_text("sudo")


async def test_a_slow_link_is_chosen_by_its_name(person: Person) -> None:
    page = await person.open("/settings/throttle")
    start = page.get_by_role("button", name="Start crabd")
    presets = page.get_by_role("group", name="Throttle")
    await expect(start.or_(presets)).to_be_visible()
    if await start.count():
        await start.click()
    await presets.get_by_role("button", name="3G").click()
    await expect(page.get_by_text("120 ms before each answer")).to_be_visible()
    await expect(presets.get_by_role("button", pressed=True)).to_have_attribute("data-preset", "3G")
    await presets.get_by_role("button", name="Full speed").click()
    await expect(page.get_by_text("No limit is in force")).to_be_visible()


async def test_theme_and_language_are_chosen_and_stay_in_this_browser(person: Person) -> None:
    page = await person.open("/settings/appearance")
    await page.get_by_role("radio", name="Dark").check()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.get_by_role("radio", name="한국어").check()
    await expect(page.get_by_role("heading", level=1)).to_have_text("설정")
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text("설정")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.get_by_role("radio", name="English").check()
    await expect(page.get_by_role("radio", name="As the system")).not_to_be_checked()


@pytest.mark.parametrize("panel", PANELS)
async def test_settings_are_usable_by_everybody_in_both_themes_and_languages(person: Person, panel: str) -> None:
    page = await person.open(f"/settings/{panel}")
    await expect(page.locator(".settings-panel")).to_have_attribute("data-panel", panel)
    assert await nameless_controls(page) == []
    await axe_in_every_look(page)


@pytest.mark.parametrize("panel", PANELS)
async def test_settings_fit_a_phone(new_person: NewPerson, panel: str) -> None:
    page = await (await new_person(size=PHONE)).open(f"/settings/{panel}")
    await expect(page.locator(".settings-panel")).to_have_attribute("data-panel", panel)
    await has_no_sideways_scroll(page)
