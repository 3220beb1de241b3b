"""Home: what runs, connecting an agent, the doctor, and the toggle of design 000 (lines 574–580 and 647)."""

from __future__ import annotations

import json
import re
import signal
import socket
import stat

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.console import (
    PHONE,
    NewPerson,
    Person,
    axe_in_every_look,
    has_no_sideways_scroll,
    nameless_controls,
    tab_to,
)
from tests.support.console_hub import Agent, ConsoleHub
from tests.support.waiting import until

HOSTILE = '<img src=x onerror="document.title=1">\u202egnp\u200b</script>'


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name)


async def shown_secret(place: Locator) -> str:
    """What a person reads after *Show*; hidden again after."""
    button = place.get_by_role("button", name=re.compile("^Show or hide"))
    await button.click()
    await expect(place.locator(".secret")).to_have_attribute("data-state", "shown")
    secret = await place.locator(".secret-value").inner_text()
    await button.click()
    await expect(place.locator(".secret-value")).to_have_text(re.compile("^•+$"))
    return secret


async def test_what_runs_is_shown_and_leads_to_its_page(console_page: Page, hub: ConsoleHub) -> None:
    runs = console_page.get_by_role("list", name="What runs")
    await expect(runs.locator("[data-id=hub]")).to_have_attribute("data-state", "ok")
    await expect(console_page.locator(".page-head")).to_contain_text(hub.url)
    await expect(runs.locator("[data-id=waiting]")).to_contain_text("0")
    await runs.get_by_role("link", name="kebabd").click()
    await expect(console_page).to_have_url(re.compile("/knowledge$"))


async def test_every_control_has_a_name_before_the_hub_has_said_anything(person: Person, hub: ConsoleHub) -> None:
    page = await person.context.new_page()
    await page.route_web_socket(re.compile("/live$"), lambda connection: None)
    await page.goto(hub.origin)
    await expect(page.get_by_role("tab", name="Claude Code")).to_be_visible()
    assert await nameless_controls(page) == []


async def test_what_does_not_run_is_not_shown_as_well(person: Person, hub: ConsoleHub) -> None:
    person.problems.allow("ERR_CONNECTION_REFUSED|WebSocket")
    hub.write_servers(gone={"command": "no-such-program-here"})
    page = await person.open("/")
    runs = page.get_by_role("list", name="What runs")
    await expect(runs.locator("[data-id=servers]")).to_have_attribute("data-state", "warn")
    await expect(runs.locator("[data-id=servers]").get_by_title("1 cannot be used")).to_be_visible()
    hub.write_servers()
    await expect(runs.locator("[data-id=servers]")).to_have_attribute("data-state", "off")
    await hub.stop()
    await expect(runs.locator("[data-id=hub]")).to_have_attribute("data-state", "bad")
    good, off = card(page, "Doctor").locator(".dot[data-state=ok]").first, runs.locator(".dot[data-state=off]").first
    grey = await off.evaluate("(dot) => getComputedStyle(dot).backgroundColor")
    await expect(good).to_have_css("background-color", grey)
    await hub.start()
    await expect(runs.locator("[data-id=hub]")).to_have_attribute("data-state", "ok")


async def test_an_agent_gets_a_token_of_its_own_and_the_mark_turns_green_at_its_first_call(
    person: Person, hub: ConsoleHub
) -> None:
    page = await person.open("/?client=cursor")
    connect = card(page, "Connect an agent")
    mark = connect.locator(".home-mark")
    await expect(mark).to_have_attribute("data-state", "waiting")
    await connect.get_by_role("button", name="Token for Cursor").click()
    await expect(page).to_have_url(re.compile("token=cursor"))
    await expect(connect.locator("pre")).to_contain_text("Bearer ••••")
    secret = await shown_secret(connect)
    async with hub.agent("Cursor", secret) as agent:
        await expect(mark).to_have_attribute("data-state", "waiting")
        await agent.call("dari_ping")
        await expect(mark).to_have_attribute("data-state", "connected")
        row = page.locator('tr[data-who="mcp@cursor:Cursor"]')
        await expect(row).to_contain_text("cursor")
        await expect(row.get_by_role("img", name="connected", exact=True)).to_be_visible()


async def test_what_is_copied_has_the_real_address_path_and_token(person: Person, hub: ConsoleHub) -> None:
    await person.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await person.open("/?client=vscode")
    connect = card(page, "Connect an agent")
    await expect(connect.locator("pre")).to_contain_text(hub.url)
    assert hub.token not in await page.content()
    await connect.get_by_role("button", name="Copy with the token").click()
    await expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    entry = json.loads(await page.evaluate("navigator.clipboard.readText()"))["servers"]["dari"]
    assert entry == {"type": "http", "url": hub.url, "headers": {"Authorization": f"Bearer {hub.token}"}}
    await connect.get_by_role("button", name="Copy the path").click()
    await expect(connect.get_by_text(str(hub.home / ".config/Code/User/mcp.json"))).to_be_visible()


async def test_every_client_is_told_how_over_http_and_over_stdio(console_page: Page, hub: ConsoleHub) -> None:
    connect = card(console_page, "Connect an agent")
    for title, address in (
        ("Claude Code", "claude mcp add --transport http"),
        ("Cursor", '"url"'),
        ("VS Code", '"type": "http"'),
        ("Codex", "http_headers"),
        ("Gemini CLI", '"httpUrl"'),
    ):
        await connect.get_by_role("tab", name=title).click()
        await expect(connect.locator("pre")).to_contain_text(address)
        await expect(connect.locator("pre")).to_contain_text(hub.url)
        await connect.get_by_role("button", name="stdio").click()
        await expect(connect.locator("pre")).to_contain_text("/dari")
    await connect.get_by_role("tab", name="Claude Desktop").click()
    await expect(connect.locator("pre")).to_contain_text('"command"')
    await expect(connect.get_by_role("button", name="HTTP")).to_have_count(0)
    await console_page.reload()
    await expect(connect.get_by_role("tab", name="Claude Desktop")).to_have_attribute("aria-selected", "true")


async def test_a_client_with_a_hostile_name_is_only_text(console_page: Page, hub: ConsoleHub) -> None:
    async with hub.agent(HOSTILE) as agent:
        await agent.call("dari_ping")
        agents = card(console_page, "Agents")
        await expect(agents.get_by_text("<img src=x")).to_be_visible()
        await expect(agents.get_by_text("\\u{202e}")).to_be_visible()
        assert await agents.locator("img").count() == 0
    assert await console_page.title() == "Home · Dari"


async def test_the_doctor_names_what_is_wrong_and_the_next_step(person: Person, hub: ConsoleHub) -> None:
    page = await person.open("/")
    doctor = card(page, "Doctor")
    await expect(doctor.locator("[data-check=token]")).to_have_attribute("data-state", "ok")
    (hub.home / "token").chmod(0o640)
    await page.keyboard.press("r")
    await expect(doctor.locator("[data-check=token]")).to_have_attribute("data-state", "failed")
    await expect(doctor.locator("[data-check=token]")).to_contain_text("chmod 600")
    await doctor.get_by_role("button", name="Do it").click()
    await expect(doctor.locator("[data-check=token]")).to_have_attribute("data-state", "ok")
    assert stat.S_IMODE((hub.home / "token").stat().st_mode) == 0o600
    await doctor.get_by_role("button", name="Check again").click()


async def test_calls_and_load_are_drawn(console_page: Page, agent: Agent) -> None:
    await agent.call("dari_ping")
    load = card(console_page, "Load")
    await expect(load).to_have_attribute("data-state", "ready")
    await expect(load.get_by_role("img", name=re.compile("^Processor load of hub"))).to_be_visible()
    await expect(load.get_by_role("img", name=re.compile("^Calls in the last hour"))).to_be_visible()


async def test_lines_574_to_580_the_toggle_its_endpoint_token_port_state_and_guide(person: Person) -> None:
    page = await person.open("/")
    crab = card(page, "Proxy for one editor")
    switch = crab.get_by_role("switch", name="Enable MCP (HTTP)")
    await expect(crab).to_have_attribute("data-state", "stopped")
    port = int(await crab.get_by_label("Port").input_value())
    await switch.check()
    await expect(crab).to_have_attribute("data-state", "running")
    await expect(crab.get_by_role("status")).to_have_text("Running")
    url = f"http://127.0.0.1:{port}/mcp"
    await expect(crab.locator("dd").first).to_have_text(url)
    await expect(crab.get_by_role("button", name="Copy the endpoint")).to_be_visible()
    await expect(crab.get_by_role("button", name="Copy the path of the token file")).to_be_visible()
    await crab.get_by_text("Settings for an editor").click()
    await expect(crab.locator("details pre")).to_contain_text(url)
    async with Agent(url, await shown_secret(crab), "editor") as agent:  # line 647
        assert "content" in await agent.result("crab_rules_list_allow")
    await switch.uncheck()
    await expect(crab.get_by_role("status")).to_have_text("Stopped")


async def test_line_579_the_last_error_is_shown(person: Person) -> None:
    page = await person.open("/")
    crab = card(page, "Proxy for one editor")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        await crab.get_by_label("Port").fill(str(taken.getsockname()[1]))
        await crab.get_by_role("switch").click()
        await expect(crab).to_have_attribute("data-state", "error")
        await expect(crab.locator(".error")).to_contain_text("in use")
        await expect(crab.get_by_role("switch")).not_to_be_checked()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_line_648_the_endpoint_ends_with_the_hub(person: Person, hub: ConsoleHub, number: signal.Signals) -> None:
    person.problems.allow("WebSocket|ERR_CONNECTION")
    page = await person.open("/")
    crab = card(page, "Proxy for one editor")
    await crab.get_by_role("switch").check()
    await expect(crab).to_have_attribute("data-state", "running")
    port = int(await crab.get_by_label("Port").input_value())
    await hub.stop(number)
    await until(lambda: not listens(port))
    await hub.start()
    await expect(crab).to_have_attribute("data-state", "stopped")
    await expect(crab.get_by_role("switch")).not_to_be_checked()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_an_agent_is_connected_with_the_keyboard_alone(person: Person) -> None:
    page = await person.open("/")
    await tab_to(page, "tab", "Claude Code")
    for _ in range(4):
        await page.keyboard.press("ArrowRight")
    await expect(page).to_have_url(re.compile("client=codex"))
    await tab_to(page, "button", "Token for Codex")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("token=codex"))
    await tab_to(page, "button", "Copy with the token")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").filter(has_text="Copied").first).to_be_visible()


async def test_home_is_usable_by_everybody_in_both_themes_and_languages(person: Person, agent: Agent) -> None:
    await agent.call("dari_ping")
    page = await person.open("/")
    await expect(card(page, "Doctor").locator("li").first).to_be_visible()
    assert await nameless_controls(page) == []
    await axe_in_every_look(page)


async def test_home_fits_a_phone(new_person: NewPerson) -> None:
    phone = await new_person(size=PHONE)
    page = await phone.open("/?client=codex")
    await expect(card(page, "Doctor").locator("li").first).to_be_visible()
    await has_no_sideways_scroll(page)
