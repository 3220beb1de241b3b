"""Traffic → Breakpoints: real requests are held, edited, resumed and aborted; a second browser sees it."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Page, expect

from tests.support.console import PHONE, NewPerson, Person, axe_in_every_look, has_no_sideways_scroll
from tests.support.console_hub import ConsoleHub
from tests.support.console_traffic import ProxyUser, proxy_user
from tests.support.hostile_server import MARKUP
from tests.support.origins.origin import origin

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]
FORM = re.compile("^Held (request|response)")


# Presses Ctrl+Enter, and once more in the very moment in which the next one is drawn.
IMPATIENT = """() => new Promise((done) => {
    const enter = {key: "Enter", ctrlKey: true, bubbles: true};
    const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", enter));
    const before = document.querySelector("form[data-held]").dataset.held;
    new MutationObserver((_, watching) => {
        const now = document.querySelector("form[data-held]");
        if (!now || now.dataset.held === before) return;
        watching.disconnect();
        press();
        done();
    }).observe(document.querySelector(".held"), {childList: true, subtree: true});
    press();
})"""

# What the browser sends while the keys are held down.
HELD_DOWN = """() => document.body.dispatchEvent(
    new KeyboardEvent("keydown", {key: "Enter", ctrlKey: true, repeat: true, bubbles: true}))"""


async def held_ids(user: ProxyUser) -> list[str]:
    return [one["id"] for one in (await user.agent.call("crab_breakpoints_list"))["held"]]


async def is_held(page: Page) -> None:
    """It is in the editor, and takes an answer: that is a moment later."""
    await expect(page.get_by_role("form", name=FORM)).to_be_visible()
    await expect(page.get_by_role("button", name="Resume")).to_be_enabled()


async def test_a_request_is_edited_and_sent_on_while_another_browser_looks(
    new_person: NewPerson, hub: ConsoleHub
) -> None:
    async with origin() as site, proxy_user(hub) as user:
        one, other = [await (await new_person()).open("/traffic/breakpoints") for _ in range(2)]
        await expect(one.get_by_role("heading", name="Nothing is held")).to_be_visible()
        await user.add("breakpoint", site.url("/"))
        headers = {"Authorization": "Bearer s3cret-value-123", "X-Old": "1"}
        asking = asyncio.ensure_future(user.http.post(site.url("/a"), headers=headers, content="old"))
        for page in (one, other):
            await is_held(page)
            await expect(page.get_by_text(re.compile(r"^\d+ s left$")).first).to_be_visible()
        form = one.get_by_role("form", name=FORM)
        lines = await form.get_by_label("Headers").input_value()
        assert "s3cret" not in lines
        await form.get_by_label("Headers").fill(lines.lower().replace("x-old: 1", "x-new: 2"))
        await form.get_by_label("URL").fill(site.url("/b"))
        await form.get_by_label("Body", exact=True).fill("new")
        await one.keyboard.press("Control+Enter")
        assert (await asking).status_code == 200
        seen = site.requests[0]
        assert seen.head.startswith(b"POST /b ") and seen.body == b"new"
        assert (seen.header("x-new"), seen.header("x-old")) == ("2", None)
        assert seen.header("authorization") == "Bearer s3cret-value-123"
        for page in (one, other):
            await expect(page.get_by_role("heading", name="Nothing is held")).to_be_visible()


async def test_a_response_gets_another_status_and_body(person: Person, hub: ConsoleHub) -> None:
    async with origin() as site, proxy_user(hub) as user:
        await user.add("breakpoint", site.url("/"), on="response")
        page = await person.open("/traffic/breakpoints")
        asking = asyncio.ensure_future(user.get(site.url("/")))
        await is_held(page)
        await page.get_by_label("Status").fill("404")
        await page.get_by_label("Body", exact=True).fill("gone")
        await page.get_by_role("button", name="Resume").click()
        answer = await asking
        assert (answer.status_code, answer.text) == (404, "gone")


async def test_a_wrong_edit_is_told_and_the_request_still_waits_until_it_is_aborted(
    person: Person, hub: ConsoleHub
) -> None:
    async with origin() as site, proxy_user(hub) as user:
        await user.add("breakpoint", site.url("/"))
        page = await person.open("/traffic/breakpoints")
        asking = asyncio.ensure_future(user.get(site.url("/")))
        await is_held(page)
        await page.get_by_label("URL").fill("nowhere")
        await page.get_by_role("button", name="Resume").click()
        await expect(page.get_by_text("url must be an absolute http or https URL")).to_be_visible()
        await is_held(page)
        await page.get_by_role("button", name="Abort").click()
        assert (await asking).status_code == 502
        assert site.requests == []


async def test_edits_of_what_somebody_else_resumed_are_said_to_be_lost(person: Person, hub: ConsoleHub) -> None:
    async with origin() as site, proxy_user(hub) as user:
        await user.add("breakpoint", site.url("/"))
        page = await person.open("/traffic/breakpoints")
        asking = asyncio.ensure_future(user.get(site.url("/")))
        await is_held(page)
        await page.get_by_label("URL").fill(site.url("/mine"))
        (held,) = (await user.agent.call("crab_breakpoints_list"))["held"]
        await user.agent.call("crab_breakpoints_resume", id=held["id"])
        await expect(page.get_by_text("Your edits were not sent")).to_be_visible()
        assert (await asking).status_code == 200


async def test_a_key_press_for_what_went_on_by_itself_acts_on_nothing_else(person: Person, hub: ConsoleHub) -> None:
    async with origin() as site, proxy_user(hub) as user:
        await user.add("breakpoint", site.url("/"))
        page = await person.open("/traffic/breakpoints")
        asking = [asyncio.ensure_future(user.get(site.url("/first")))]
        form = page.get_by_role("form", name=FORM)
        await is_held(page)
        asking.append(asyncio.ensure_future(user.get(site.url("/second"))))
        await expect(page.locator(".held-item")).to_have_count(2)
        await form.get_by_label("URL").fill(site.url("/edited"))
        first, second = await held_ids(user)
        await user.agent.call("crab_breakpoints_resume", id=first)
        await expect(page.locator(".held-item")).to_have_count(1)
        await page.keyboard.press("Control+Enter")
        await expect(page.get_by_text("Choose what to edit next")).to_be_visible()
        await expect(form).to_have_count(0)
        await user.agent.call("crab_breakpoints_resume", id=second)
        await expect(page.get_by_role("heading", name="Nothing is held")).to_be_visible()
        asking.append(asyncio.ensure_future(user.get(site.url("/third"))))
        await expect(page.locator(".held-item", has_text="/third")).to_be_visible()
        await expect(form).to_have_count(0)
        await page.locator(".held-item", has_text="/third").click()
        await is_held(page)
        await page.get_by_role("button", name="Resume").click()
        assert {(await one).status_code for one in asking} == {200}
        assert [seen.head.split()[1] for seen in site.requests] == [b"/first", b"/second", b"/third"]


async def test_a_second_press_does_not_reach_the_next_one_that_is_held(person: Person, hub: ConsoleHub) -> None:
    async with origin() as site, proxy_user(hub) as user:
        await user.add("breakpoint", site.url("/"))
        page = await person.open("/traffic/breakpoints")
        asking = [asyncio.ensure_future(user.get(site.url(f"/{name}"))) for name in ("one", "two")]
        await expect(page.locator(".held-item")).to_have_count(2)
        await is_held(page)
        _, second = await held_ids(user)
        await page.evaluate(IMPATIENT)
        await expect(page.get_by_role("form", name=re.compile(f"{second}$"))).to_be_visible()
        await is_held(page)
        await page.evaluate(HELD_DOWN)
        assert await held_ids(user) == [second]
        await page.keyboard.press("Control+Enter")
        assert {(await one).status_code for one in asking} == {200}


async def test_what_is_held_fits_every_look_and_a_phone(person: Person, new_person: NewPerson, hub: ConsoleHub) -> None:
    async with origin() as site, proxy_user(hub) as user:
        await user.add("breakpoint", site.url("/"))
        asking = [
            asyncio.ensure_future(user.http.post(site.url(f"/{path}"), content=MARKUP, headers={"X-Mark": MARKUP}))
            for path in ("a", "a-much-longer-path/" * 6)
        ]
        page = await person.open("/traffic/breakpoints")
        await is_held(page)
        await axe_in_every_look(page)
        phone = await (await new_person(size=PHONE)).open("/traffic/breakpoints")
        await is_held(phone)
        await has_no_sideways_scroll(phone)
        assert await page.evaluate("window.hacked") is None
        for held in (await user.agent.call("crab_breakpoints_list"))["held"]:
            await user.agent.call("crab_breakpoints_resume", id=held["id"], abort=True)
        assert {(await one).status_code for one in asking} == {502}
