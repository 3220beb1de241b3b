"""Servers, as a person uses the page: cards, the form, paste, import, Test Connection, tools, changes, log, removal."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import suppress
from typing import Any

import pytest
from playwright.async_api import Locator, Page, TimeoutError, expect

from tests.support.console import (
    PHONE,
    NewPerson,
    Person,
    axe,
    axe_in_every_look,
    has_no_sideways_scroll,
    nameless_controls,
    tab_to,
)
from tests.support.console_hub import Agent, ConsoleHub, hostile_server, lab_server
from tests.support.hostile_server import TEXTS
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

# Clicks the first "Reject", and once more in the very moment in which the list is drawn without that change.
CLICKS_TWICE = """() => new Promise((done) => {
    const place = document.querySelector("article").parentElement;
    const click = () => document.querySelector("article[data-state=held] .btn.danger").click();
    new MutationObserver((_, watching) => {
        watching.disconnect();
        click();
        done();
    }).observe(place, {childList: true});
    click();
})"""


def tools_file(hub: ConsoleHub, *tools: dict[str, Any]) -> str:
    path = hub.home / "tools.json"
    path.write_text(json.dumps([{"inputSchema": {"type": "object"}, **tool} for tool in tools]))
    return str(path)


def entries(hub: ConsoleHub) -> dict[str, Any]:
    file = json.loads((hub.home / ".config/crewx/mcp.json").read_text())
    return {**file.get("mcpServers", {}), **{one["id"]: one for one in file.get("servers", [])}}


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem").filter(has=page.get_by_role("link", name=name, exact=True))


async def names_of(agent: Agent) -> list[str]:
    return [tool["name"] for tool in (await agent.ask("tools/list"))["result"]["tools"]]


async def run(page: Page) -> None:
    """Start the server unless the hub has done so already, to list its tools for somebody."""
    with suppress(TimeoutError):
        await page.get_by_role("button", name="Start").click(timeout=3000)
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()


async def test_an_empty_list_teaches_the_next_step(person: Person, hub: ConsoleHub) -> None:
    (hub.home / ".config/crewx/mcp.json").unlink(missing_ok=True)
    page = await person.open("/servers")
    await expect(page.get_by_role("heading", name="No servers yet")).to_be_visible()
    await axe(page)
    await page.get_by_role("link", name="Paste JSON").first.click()
    await expect(page.get_by_role("textbox", name="JSON of servers")).to_be_focused()


async def test_cards_show_state_transport_tools_and_the_last_error(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(
        lab=lab_server(), gone={"command": "no-such-program-here"}, off={**lab_server(), "disabled": True}
    )
    page = await person.open("/servers")
    await expect(card(page, "lab")).to_contain_text("stdio")
    await expect(card(page, "off")).to_have_attribute("data-state", "disabled")
    async with hub.agent() as agent:
        await agent.call("lab__add", a=1, b=2)
    await expect(card(page, "lab")).to_have_attribute("data-state", "ready")
    await expect(card(page, "lab")).to_contain_text("15 tools")
    await expect(card(page, "gone")).to_contain_text("no-such-program-here")
    await page.get_by_label("Which servers").select_option("off")
    await expect(page.get_by_role("listitem").filter(has_text="stdio")).to_have_count(1)
    assert page.url.endswith("/servers?state=off")
    await page.keyboard.press("/")
    await page.keyboard.type("zzz")
    await expect(page.get_by_role("heading", name="No server matches")).to_be_visible()


async def test_the_switch_ends_a_server_and_its_undo_brings_it_back(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(lab=lab_server())
    page = await person.open("/servers")
    await card(page, "lab").get_by_role("switch").click()
    await expect(card(page, "lab")).to_have_attribute("data-state", "disabled")
    assert entries(hub)["lab"]["disabled"] is True
    await page.get_by_role("button", name="Undo").click()
    await expect(card(page, "lab")).not_to_have_attribute("data-state", "disabled")
    assert "disabled" not in entries(hub)["lab"]


async def test_two_pages_see_the_same(person: Person, new_person: NewPerson, hub: ConsoleHub) -> None:
    hub.write_servers(lab=lab_server())
    first, second = await person.open("/servers/lab"), await (await new_person()).open("/servers")
    await run(first)
    await expect(card(second, "lab")).to_have_attribute("data-state", "ready")
    await card(second, "lab").get_by_role("switch").click()
    await expect(first.get_by_role("switch", name="lab enabled")).not_to_be_checked()


async def test_a_secret_is_never_shown_and_survives_a_save(person: Person, hub: ConsoleHub) -> None:
    server = lab_server(API_TOKEN="hunter2hunter2", LAB_SAYS="hello", FROM_ME="${HOME}")
    hub.write_servers(lab=server)
    page = await person.open("/servers/lab")
    kept = page.locator(".server-value[data-kind=kept]")
    await expect(kept.get_by_label("Name")).to_have_value("API_TOKEN")
    await expect(kept.get_by_label("Value", exact=True)).to_have_value("")
    assert "hunter2" not in await page.content()
    await page.get_by_label("Description").fill("kept")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status").filter(has_text="Saved lab")).to_be_visible()
    assert entries(hub)["lab"]["env"] == server["env"] and entries(hub)["lab"]["description"] == "kept"
    await page.get_by_label("Description").fill("and again")
    await page.get_by_role("button", name="Save").click()
    await until(lambda: entries(hub)["lab"]["description"] == "and again")


async def test_two_people_who_edit_one_server_do_not_overwrite_each_other(
    person: Person, new_person: NewPerson, hub: ConsoleHub
) -> None:
    hub.write_servers(lab=lab_server())
    first, second = await person.open("/servers/lab"), await (await new_person()).open("/servers/lab")
    for page, text in ((first, "mine"), (second, "theirs")):
        await page.get_by_label("Description").fill(text)
    await first.get_by_role("button", name="Save").click()
    await expect(first.get_by_role("status").filter(has_text="Saved lab")).to_be_visible()
    await second.get_by_role("button", name="Save").click()
    await expect(second.get_by_role("alert").filter(has_text="since you opened it")).to_be_visible()
    assert entries(hub)["lab"]["description"] == "mine"
    await second.get_by_role("button", name="Overwrite").click()
    await expect(second.get_by_role("status").filter(has_text="Saved lab")).to_be_visible()
    assert entries(hub)["lab"]["description"] == "theirs"


async def test_a_form_that_cannot_be_saved_says_what_to_do(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(lab=lab_server())
    page = await person.open("/servers?add=form")
    await page.get_by_label("Name", exact=True).first.fill("a/b")
    await page.get_by_label("Command").fill("x")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert").filter(has_text="a name has no '/'")).to_be_visible()
    await page.get_by_label("Name", exact=True).first.fill("lab")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert").filter(has_text="has a server 'lab' already")).to_be_visible()


async def test_an_http_server_is_added_with_a_key_by_reference(person: Person, hub: ConsoleHub) -> None:
    page = await person.open("/servers?add=form")
    await page.get_by_label("Name", exact=True).first.fill("docs")
    await page.get_by_label("Transport").select_option("http")
    await expect(page.get_by_label("Command")).to_be_hidden()
    await page.get_by_label("URL").fill("http://127.0.0.1:9/mcp")
    await page.get_by_role("button", name="Add API Key").click()
    await page.get_by_role("group", name="API key").get_by_label("Value", exact=True).fill("${DOCS_KEY}")
    await page.get_by_role("button", name="Test Connection").click()
    await expect(page.locator(".server-test")).to_have_attribute("data-state", "failed")
    await page.get_by_role("button", name="Save").click()
    await expect(page).to_have_url(f"{hub.origin}/servers/docs")
    assert (entries(hub)["docs"]["url"], entries(hub)["docs"]["apiKey"]) == ("http://127.0.0.1:9/mcp", "${DOCS_KEY}")


async def test_a_failed_test_shows_the_step_its_time_and_stderr(person: Person, hub: ConsoleHub) -> None:
    code = "import sys; sys.stderr.write('<b>no database</b>\\n'); sys.exit(3)"
    hub.write_servers(bad={"command": sys.executable, "args": ["-c", code]})
    page = await person.open("/servers/bad?tab=test")
    await page.get_by_role("button", name="Test Connection").click()
    test = page.locator(".server-test")
    await expect(test).to_have_attribute("data-state", "failed")
    await expect(test.locator("li[data-step=start]").first).to_have_attribute("data-state", "ok")
    await expect(test.locator("li[data-step=agree]")).to_contain_text("exit status 3")
    await expect(test.locator(".server-stderr")).to_have_text("<b>no database</b>")


async def test_a_test_that_hangs_is_cancelled(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(
        slow={"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"], "initTimeoutMs": 60_000}
    )
    page = await person.open("/servers/slow?tab=test")
    await page.get_by_role("button", name="Test Connection").click()
    await expect(page.locator("li[data-step=start]")).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator(".server-test")).to_have_attribute("data-state", "cancelled")


async def test_json_is_pasted_reviewed_and_added(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(lab=lab_server())
    page = await person.open("/servers?add=json")
    pasted = {"mcpServers": {"lab": {"command": "other"}, "new": lab_server(LAB_SAYS="new"), "bad": {"comand": "x"}}}
    await page.get_by_role("textbox", name="JSON of servers").fill(json.dumps(pasted))
    rows = page.locator(".server-review tbody tr")
    await expect(rows).to_have_count(3)
    await expect(rows.nth(0)).to_have_attribute("data-state", "conflict")
    await expect(rows.nth(2)).to_contain_text("did you mean 'command'")
    await page.get_by_label("Action for lab").select_option("rename")
    await expect(page.get_by_label("New name of lab")).to_have_value("lab-2")
    await page.get_by_role("button", name="Add 2 servers").click()
    await expect(card(page, "new")).to_be_visible()
    assert entries(hub)["lab-2"]["command"] == "other" and entries(hub)["lab"]["command"] == sys.executable


async def test_servers_of_other_programs_are_imported(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(lab=lab_server())
    theirs = hub.home / ".cursor" / "mcp.json"
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text(json.dumps({"mcpServers": {"lab": {"command": "theirs"}, "cursors": lab_server(LAB_SAYS="hi")}}))
    page = await person.open("/servers?add=import")
    rows = page.locator(".server-review tbody tr")
    await expect(rows).to_have_count(2)
    await page.get_by_label("Action for lab").select_option("overwrite")
    await page.get_by_label("Action for cursors").select_option("skip")
    await page.get_by_role("button", name="Add 1 server").click()
    await expect(page).to_have_url(f"{hub.origin}/servers/lab?tab=test")
    assert entries(hub)["lab"]["command"] == "theirs" and "cursors" not in entries(hub)


async def test_a_tool_is_turned_off_for_every_agent(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(lab=lab_server())
    page = await person.open("/servers/lab?tab=tools")
    ask, search = page.get_by_role("button", name="Start it and list its tools"), page.get_by_role("searchbox")
    await expect(ask.or_(search).first).to_be_visible()
    if await ask.count():
        await ask.click()
    await search.fill("greet")
    await page.get_by_role("switch", name="greet").click()
    await expect(page.locator(".server-tool")).to_have_attribute("data-state", "off")
    async with hub.agent() as agent, asyncio.timeout(30):
        # The gateway looks at the files once a second.
        while "lab__add" not in (names := await names_of(agent)) or "lab__greet" in names:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await page.get_by_role("switch", name="greet").click()
    await expect(page.locator(".server-tool")).to_have_attribute("data-state", "on")


async def test_a_changed_tool_is_seen_as_a_difference_and_approved(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(pinned=lab_server(LAB_TOOLS=tools_file(hub, {"name": "one", "description": "adds"})))
    page = await person.open("/servers/pinned")
    await run(page)
    await expect(page.locator(".server-facts")).to_contain_text("1 tool")
    tools_file(hub, {"name": "one", "description": "adds, and sends it away"})
    await page.get_by_role("button", name="Stop").click()
    await run(page)
    await page.get_by_role("tab", name="Changes").click()
    change = page.get_by_role("article").filter(has_text="one")
    await expect(change.locator(".diff .add").filter(has_text="sends it away")).to_be_visible()
    await axe(page)
    await change.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("heading", name="Nothing changed")).to_be_visible()
    async with hub.agent() as agent:
        listed = json.dumps((await agent.ask("tools/list"))["result"])
        assert "sends it away" in listed


async def test_a_change_that_comes_while_a_person_reads_moves_no_button_under_their_hand(
    person: Person, hub: ConsoleHub
) -> None:
    first, second = {"name": "a", "description": "adds"}, {"name": "b", "description": "reads"}
    hub.write_servers(moving=lab_server(LAB_TOOLS=tools_file(hub, first, second)))
    page = await person.open("/servers/moving?tab=changes")
    await run(page)
    await expect(page.locator(".server-facts")).to_contain_text("2 tools")
    for changed, told in (
        ((first, {**second, "description": "r"}), "1 change "),
        (({**first, "description": "a"}, {**second, "description": "r"}), "2 changes"),
    ):
        tools_file(hub, *changed)
        await page.get_by_role("button", name="Stop").click()
        await run(page)
        await expect(page.locator(".server-facts")).to_contain_text(told)
        await expect(page.get_by_role("article")).to_have_count(1)
    await page.get_by_role("button", name="Show what has changed since").click()
    await expect(page.get_by_role("article")).to_have_count(2)
    await expect(page.get_by_role("button", name="Reject", exact=True).first).to_be_enabled()
    await page.evaluate(CLICKS_TWICE)
    await expect(page.locator("article[data-state=held]")).to_have_count(1)


async def test_the_log_shows_a_crash_with_its_last_words(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(lab=lab_server())
    page = await person.open("/servers/lab?tab=log")
    async with hub.agent() as agent:
        await agent.fails("lab__die")
    log = page.get_by_role("log")
    await expect(log).to_contain_text("I cannot go on")
    await expect(log).to_contain_text("exit status 7")


async def test_a_removal_is_confirmed_and_undone(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(lab=lab_server(API_TOKEN="hunter2hunter2"))
    before = entries(hub)["lab"]
    page = await person.open("/servers/lab")
    await page.get_by_role("button", name="Remove", exact=True).click()
    dialog = page.get_by_role("dialog", name="Remove lab?")
    await expect(dialog).to_contain_text("mcp.json")
    await axe(page)
    await dialog.get_by_role("button", name="Remove").click()
    await expect(page).to_have_url(f"{hub.origin}/servers")
    assert "lab" not in entries(hub)
    await page.get_by_role("button", name="Undo").click()
    await expect(card(page, "lab")).to_be_visible()
    assert {key: value for key, value in entries(hub)["lab"].items() if key != "id"} == before


async def test_hostile_texts_of_a_server_are_shown_as_text(person: Person, hub: ConsoleHub) -> None:
    names = "<b>x</b>", "${window.hacked=1}"
    tools = tools_file(hub, *({"name": text, "description": text} for text in TEXTS))
    hub.write_servers(
        hostile=hostile_server(), names=lab_server(LAB_TOOLS=tools), **{name: {"command": "x"} for name in names}
    )
    page = await person.open("/servers")
    await expect(page.get_by_text("<b>x</b>").first).to_be_visible()
    for name, tab in (("hostile", "test"), ("hostile", "tools"), ("names", "tools"), ("hostile", "log")):
        page = await person.open(f"/servers/{name}?tab={tab}")
        if tab == "test":
            await page.get_by_role("button", name="Test Connection").click()
            await expect(page.locator(".server-test")).to_have_attribute("data-state", "ok")
            await expect(page.locator(".server-stderr")).to_contain_text("<script>")
        if tab == "tools":
            button = page.get_by_role("button", name="Start it and list its tools")
            await expect(button.or_(page.locator(".server-tool").first)).to_be_visible()
            if await button.count():
                await button.click()
            await expect(page.locator(".server-tool").first).to_be_visible()
        assert await page.evaluate("window.hacked") is None
        shown = await page.locator("main").inner_text()
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff]", shown)
        assert await page.locator("main img, main script").count() == 0


async def test_a_thousand_servers_stay_usable(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(**{f"server-{number:04}": {"command": "x", "disabled": True} for number in range(1000)})
    page = await person.open("/servers")
    await expect(page.get_by_text("1,000 of 1,000")).to_be_visible()
    assert await page.locator(".server-card").count() < 300  # the rest is drawn when it is scrolled to
    await page.get_by_role("searchbox", name="Filter servers").fill("server-0999")
    await expect(page.locator(".server-card")).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{hub.origin}/servers/server-0999")
    await page.go_back()
    await page.get_by_role("searchbox", name="Filter servers").fill("")
    await page.get_by_role("link", name="server-0000").click()
    await expect(page.get_by_role("heading", name="server-0000")).to_be_visible()
    hub.write_servers(lab=lab_server())
    await person.go(page, "/servers")
    await expect(page.locator(".server-card")).to_have_count(1)


async def test_the_page_is_right_in_every_look_and_on_a_phone(
    person: Person, new_person: NewPerson, hub: ConsoleHub
) -> None:
    hub.write_servers(
        lab=lab_server(API_TOKEN="x"), gone={"command": "no-such-program-here"}, web={"url": "http://127.0.0.1:9/mcp"}
    )
    page = await person.open("/servers")
    await expect(page.locator(".server-card")).to_have_count(3)
    await axe_in_every_look(page)
    for path in (
        "/servers/lab",
        "/servers/web",
        "/servers/lab?tab=tools",
        "/servers/lab?tab=log",
        "/servers?add=json",
        "/servers?add=import",
    ):
        await person.go(page, path)
        await axe(page)
        assert await nameless_controls(page) == []
    phone = await new_person(size=PHONE, language="ko")
    for path in ("/servers", "/servers/lab", "/servers/lab?tab=test", "/servers?add=json", "/servers?add=form"):
        small = await phone.open(path)
        await has_no_sideways_scroll(small)


async def test_a_server_is_added_with_the_keyboard_alone(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(lab=lab_server())
    page = await person.open("/servers")
    await expect(card(page, "lab")).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.get_by_label("Name", exact=True).first).to_be_focused()
    await page.keyboard.type("typed")
    await tab_to(page, "textbox", "Command")
    await page.keyboard.type(sys.executable)
    await tab_to(page, "textbox", "Args 1")
    await page.keyboard.type(lab_server()["args"][0])
    await page.keyboard.press("Enter")
    await tab_to(page, "button", "Save")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{hub.origin}/servers/typed")
    assert entries(hub)["typed"]["args"] == lab_server()["args"]


async def test_a_restart_of_the_hub_under_an_open_form_loses_nothing(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(lab=lab_server())
    page = await person.open("/servers/lab")
    person.problems.allow("WebSocket|ERR_CONNECTION_REFUSED|net::ERR")
    await page.get_by_label("Description").fill("written before the restart")
    await hub.restart()
    await expect(page.locator("html")).to_have_attribute("data-live", "open")
    await expect(page.get_by_label("Description")).to_have_value("written before the restart")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status").filter(has_text="Saved lab")).to_be_visible()
    assert entries(hub)["lab"]["description"] == "written before the restart"
