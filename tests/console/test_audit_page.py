"""The audit log at the page: filters in the address, a session as a timeline, one record, export, charts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.support.console import (
    PHONE,
    NewPerson,
    Person,
    axe,
    axe_in_every_look,
    has_no_sideways_scroll,
    nameless_controls,
    set_language,
)
from tests.support.console_hub import Agent, ConsoleHub, lab_server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]
HOSTILE = '<img src=x onerror="window.pwned=1">\u202egnp\u200b'


@pytest.fixture(autouse=True)
def lab(hub: ConsoleHub) -> None:
    hub.write_servers(lab=lab_server())


async def work(agent: Agent) -> None:
    """In two parts, well and badly."""
    await agent.call("dari_ping")
    await agent.result("lab__add", a=1, b=2)
    await agent.result("lab__fail")
    await agent.result("lab__greet", note=HOSTILE)


def rows(page: Page) -> Any:
    return page.locator(".audit-table tbody tr")


async def test_records_come_as_they_are_written_and_filters_are_in_the_address(person: Person, agent: Agent) -> None:
    page = await person.open("/audit")
    await work(agent)
    await expect(rows(page).filter(has_text="lab/add")).to_have_count(1)
    await page.get_by_label("Tool", exact=True).fill("lab__*")
    await page.get_by_label("Tool", exact=True).press("Enter")
    await expect(
        page.locator(".audit-list[data-state=empty]")
    ).to_be_visible()  # the bridge names them without the server
    await page.get_by_role("button", name="Clear filters").click()
    await page.get_by_label("Outcome").select_option("tool_error")
    await expect(page).to_have_url(re.compile(r"/audit\?outcome=tool_error$"))
    await expect(rows(page)).to_have_count(1)
    await agent.result("lab__fail")
    await expect(rows(page)).to_have_count(2)
    await page.get_by_role("button", name="Clear filters").click()
    await expect(rows(page).filter(has_text="dari_audit_search")).to_have_count(0)
    await page.get_by_label("Console too").check()
    await expect(rows(page).filter(has_text="dari_audit_search").first).to_be_visible()
    await expect(page).to_have_url(re.compile(r"/audit\?all=1$"))
    other = await person.open("/audit?outcome=tool_error&text=FAIL&part=bridge")
    await expect(rows(other)).to_have_count(2)
    await expect(other.get_by_label("Text")).to_have_value("FAIL")
    await other.get_by_label("Text").fill("nowhere to be found")
    await other.get_by_label("Text").press("Enter")
    await expect(other.get_by_role("heading", name="No record matches")).to_be_visible()


async def test_a_session_is_a_timeline_across_parts(person: Person, hub: ConsoleHub) -> None:
    async with hub.agent("claude-timeline") as agent:
        await work(agent)
    page = await person.open("/audit/sessions")
    await page.locator("tr", has_text="claude-timeline").get_by_role("link").click()
    steps = page.locator(".audit-step")
    await expect(steps).to_have_count(4)
    await expect(steps.nth(0)).to_contain_text("dari_ping")
    assert await steps.evaluate_all("(all) => all.map((one) => one.dataset.part)") == [
        "dari",
        "bridge",
        "bridge",
        "bridge",
    ]
    await expect(page).to_have_url(re.compile(r"/audit\?session="))
    await axe(page)
    await page.get_by_label("Show as").select_option("json")
    await expect(page.locator("pre.audit-json")).to_contain_text('"tool":"add"')
    await expect(page).to_have_url(re.compile("as=json"))
    await page.get_by_label("Show as").select_option("table")
    await expect(rows(page)).to_have_count(4)


async def test_a_record_has_an_address_and_leads_on(person: Person, agent: Agent) -> None:
    await work(agent)
    page = await person.open("/audit?text=onerror")
    await rows(page).first.get_by_role("link").click()
    await expect(page).to_have_url(re.compile(r"/audit/\d+\?text=onerror$"))
    detail = page.locator(".audit-detail[data-state=ready]")
    await expect(detail).to_contain_text("\\u{202e}")
    await expect(detail).to_contain_text("As it stands in the file")
    assert await page.locator("main img").count() == 0 and await page.evaluate("() => window.pwned") is None
    await axe_in_every_look(page)
    await set_language(page, "en")
    jump = detail.locator("[data-jump=tool]")
    assert await jump.get_attribute("href") == "/tools/lab__greet"
    again = await person.open("/audit/1")
    await expect(again.locator(".audit-detail[data-state=ready]")).to_contain_text("log opened")
    missing = await person.open("/audit/99999999")
    await expect(missing.locator(".audit-detail[data-state=missing]")).to_contain_text("no record has the number")
    await page.keyboard.press("j")
    await page.get_by_role("link", name="Close the record").click()
    await expect(page.locator(".audit-detail")).to_be_hidden()


async def test_the_keyboard_alone_searches_and_opens_records(person: Person, agent: Agent) -> None:
    await work(agent)
    page = await person.open("/audit")
    await expect(rows(page).first).to_be_visible()
    await page.keyboard.press("/")
    await expect(page.get_by_label("Text")).to_be_focused()
    await page.keyboard.type("onerror")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("text=onerror"))
    await page.get_by_label("Text").evaluate("(field) => field.blur()")
    await page.keyboard.press("j")
    await expect(page.locator(".audit-detail[data-state=ready]")).to_contain_text("greet")
    await expect(page).to_have_url(re.compile(r"/audit/\d+\?text=onerror"))


async def test_what_is_found_is_downloaded_as_it_stands_in_the_file(
    person: Person, agent: Agent, hub: ConsoleHub
) -> None:
    await work(agent)
    page = await person.open("/audit?tool=add")
    await expect(rows(page).first).to_be_visible()
    async with page.expect_download() as started:
        await page.get_by_role("button", name="Download JSON lines").click()
    path = await (await started.value).path()
    lines = Path(path).read_text().splitlines()
    files = sorted((hub.dari_home / "bridge" / "audit").glob("*.jsonl"))
    written = {line for file in files for line in file.read_text().splitlines()}
    assert lines and set(lines) <= written and all(json.loads(line)["tool"] == "add" for line in lines)


async def test_the_chain_is_checked(person: Person, agent: Agent) -> None:
    await work(agent)
    page = await person.open("/audit")
    await page.get_by_role("button", name="Check the chain").click()
    await expect(page.get_by_role("status").filter(has_text="Whole:")).to_be_visible()


async def test_activity_is_drawn_and_told(person: Person, agent: Agent) -> None:
    await work(agent)
    page = await person.open("/audit/activity")
    calls = page.get_by_role("img", name=re.compile(r"^Calls by tool: "))
    await expect(calls).to_have_accessible_name(re.compile("add"))
    await expect(page.get_by_role("img", name=re.compile("^Calls by outcome: .*ok"))).to_be_visible()
    await expect(page.get_by_role("img", name=re.compile("^Memory: .*hub"))).to_be_visible()
    await expect(calls).not_to_have_accessible_name(re.compile("dari_audit"))  # what the page itself asks is not shown
    await expect(page.locator("tr", has_text="lab").filter(has_text="server")).to_be_visible()
    figure = page.locator("figure", has_text="Calls by tool")
    await figure.get_by_role("button", name="Show the numbers").click()
    await expect(figure.get_by_role("columnheader", name="add")).to_be_visible()
    await axe_in_every_look(page)


async def test_the_audit_log_fits_a_phone(new_person: NewPerson, agent: Agent) -> None:
    await work(agent)
    person = await new_person(size=PHONE)
    for path in ("/audit", "/audit?as=timeline", "/audit/1", "/audit/sessions", "/audit/activity"):
        page = await person.open(path)
        await expect(page.locator("[data-state=ready], figure").first).to_be_visible()
        await has_no_sideways_scroll(page)
        await page.close()


@pytest.mark.parametrize("path", ["/audit", "/audit/1", "/audit/sessions", "/audit/activity", "/audit?as=timeline"])
async def test_every_control_has_a_name_and_texts_switch(path: str, person: Person, agent: Agent) -> None:
    await work(agent)
    page = await person.open(path)
    await expect(page.locator("[data-state=ready], figure").first).to_be_visible()
    assert await nameless_controls(page) == []
    for language, title in (("ko", "감사 기록"), ("en", "Audit")):
        await set_language(page, language)  # type: ignore[arg-type]
        await expect(page.get_by_role("heading", level=1)).to_have_text(title)
    await expect(page.locator("main")).not_to_contain_text(re.compile("[가-힣]"))
