"""Traffic → Rules: a person adds, tests, orders, edits, deletes and brings back rules of a running proxy."""

from __future__ import annotations

import os
import re
import signal

import pytest
from playwright.async_api import Locator, Page, expect

from dari.daemon.lock import lock_holder
from tests.support.console import PHONE, NewPerson, Person, axe_in_every_look, has_no_sideways_scroll, tab_to
from tests.support.console_hub import ConsoleHub
from tests.support.console_traffic import proxy_user
from tests.support.hostile_server import BIDI, MARKUP
from tests.support.origins.origin import origin

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]


def rows(page: Page) -> Locator:
    return page.get_by_role("list", name="Rules in their order").get_by_role("listitem")


def crabd_pid(hub: ConsoleHub) -> int:
    locks = [lock for lock in hub.home.rglob("daemon.pid") if "crab" in lock.parent.name]
    (pid,) = {holder for lock in locks if (holder := lock_holder(lock))}
    return pid


async def order(page: Page) -> list[str | None]:
    return [await row.get_attribute("data-id") for row in await rows(page).all()]


async def test_without_a_daemon_the_page_says_so_and_goes_on_by_itself(person: Person, hub: ConsoleHub) -> None:
    page = await person.open("/traffic/rules")
    await expect(page.get_by_role("heading", name="The proxy daemon is not running")).to_be_visible()
    async with proxy_user(hub):
        await expect(page.get_by_role("heading", name="No rules yet")).to_be_visible()


async def test_a_rule_is_added_tested_edited_and_switched_off(person: Person, hub: ConsoleHub) -> None:
    async with origin() as site, proxy_user(hub) as user:
        page = await person.open("/traffic/rules")
        await page.get_by_role("button", name="Add rule").click()
        form = page.get_by_role("form", name="New rule")
        await form.get_by_label("Matches").fill(site.url("/api"))
        await form.get_by_label("Text", exact=True).fill("hello from a rule")
        await form.get_by_label("Status", exact=True).fill("201")
        await form.get_by_role("button", name="Save").click()
        await expect(rows(page)).to_have_count(1)
        answer = await user.get(site.url("/api/1"))
        assert (answer.status_code, answer.text) == (201, "hello from a rule")
        await expect(page.get_by_role("link", name="Hits: 1")).to_have_attribute("href", re.compile("rule%3Ar"))

        await page.get_by_label("URL to test").fill(site.url("/api/2"))
        await page.keyboard.press("Enter")
        await expect(page.locator("[data-verdict=applies]").first).to_be_visible()
        await page.get_by_label("URL to test").fill(site.url("/other"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("No rule applies")).to_be_visible()
        await expect(page.get_by_text("another path or query")).to_be_visible()

        await page.get_by_role("link", name=re.compile("^Edit rule")).click()
        form = page.get_by_role("form", name=re.compile("^Rule r"))
        await form.get_by_label("Text", exact=True).fill("changed")
        await form.get_by_role("button", name="Save").click()
        await expect(rows(page)).to_contain_text("changed")
        assert (await user.get(site.url("/api"))).text == "changed"
        await page.get_by_role("switch", name=re.compile("^Rule r.* is on")).uncheck()
        await expect(rows(page)).to_have_attribute("data-state", "off")
        assert (await user.get(site.url("/api"))).text == "ok"


async def test_rules_are_ordered_by_dragging_and_by_keys_and_the_first_wins(person: Person, hub: ConsoleHub) -> None:
    async with origin() as site, proxy_user(hub) as user:
        first, second, third = [await user.add("map_local", site.url("/"), text=text) for text in ("a", "b", "c")]
        page = await person.open("/traffic/rules")
        await expect(rows(page)).to_have_count(3)
        await page.get_by_role("button", name=f"Move rule {third}:").drag_to(
            rows(page).first, target_position={"x": 200, "y": 3}
        )
        await expect(rows(page).first).to_have_attribute("data-id", third)
        await expect(page.get_by_text(f"Rule {third} is now 1 of 3")).to_be_attached()
        assert (await user.get(site.url("/"))).text == "c"

        handle = await tab_to(page, "button", f"Move rule {third}:")
        await page.keyboard.press("ArrowDown")
        await expect(page.get_by_text(f"Rule {third} is now 2 of 3")).to_be_attached()
        await expect(handle).to_be_focused()
        await page.keyboard.press("ArrowDown")
        await expect(page.get_by_text(f"Rule {third} is now 3 of 3")).to_be_attached()
        assert await order(page) == [first, second, third]
        assert (await user.get(site.url("/"))).text == "a"


async def test_a_deleted_rule_comes_back_with_undo_at_its_place(person: Person, hub: ConsoleHub) -> None:
    async with proxy_user(hub) as user:
        ids = [await user.add("block", f"{name}.test") for name in "abc"]
        page = await person.open("/traffic/rules")
        await page.get_by_role("button", name=f"Delete rule {ids[1]}").click()
        await expect(rows(page)).to_have_count(2)
        await page.get_by_role("button", name="Undo").click()
        await expect(rows(page)).to_have_count(3)
        assert await order(page) == ids


async def test_a_rule_is_made_tested_and_deleted_with_the_keyboard_alone(person: Person, hub: ConsoleHub) -> None:
    async with origin() as site, proxy_user(hub) as user:
        page = await person.open("/traffic/rules")
        await expect(page.get_by_role("heading", name="No rules yet")).to_be_visible()
        await page.keyboard.press("n")
        await expect(page.get_by_label("Matches")).to_be_focused()
        await page.keyboard.type(site.url("/keys"))
        await tab_to(page, "textbox", "Text", exact=True)
        await page.keyboard.type("typed")
        await tab_to(page, "button", "Save")
        await page.keyboard.press("Enter")
        await expect(rows(page)).to_have_count(1)
        assert (await user.get(site.url("/keys"))).text == "typed"
        await page.keyboard.press("t")
        await page.keyboard.type(site.url("/keys/2"))
        await page.keyboard.press("Enter")
        await expect(page.locator(".rule-test-result")).to_have_attribute("data-state", "applies")
        await tab_to(page, "button", re.compile("^Delete rule"))
        await page.keyboard.press("Enter")
        await expect(rows(page)).to_have_count(0)


async def test_rules_of_an_agent_and_of_another_browser_are_seen_also_after_the_daemon_was_killed(
    new_person: NewPerson, hub: ConsoleHub
) -> None:
    one, other = [await (await new_person()).open("/traffic/rules") for _ in range(2)]
    async with proxy_user(hub) as user:
        await user.add("block", "one.test")
        for page in (one, other):
            await expect(rows(page)).to_contain_text("one.test")
        await one.get_by_role("switch").uncheck()
        await expect(rows(other)).to_have_attribute("data-state", "off")
        os.kill(crabd_pid(hub), signal.SIGKILL)
        await user.add("block", "two.test")
        for page in (one, other):
            await expect(rows(page)).to_have_count(2)
            await expect(rows(page).first).to_have_attribute("data-state", "off")


async def test_what_was_typed_outlives_a_restart_of_the_hub(person: Person, hub: ConsoleHub) -> None:
    person.problems.allow("WebSocket|ERR_CONNECTION_REFUSED")
    async with proxy_user(hub):
        page = await person.open("/traffic/rules?new=block")
        await page.get_by_label("Matches").fill("typed.test")
        await hub.restart()
        await expect(page.locator("html")).to_have_attribute("data-live", "open")
        await expect(page.get_by_label("Matches")).to_have_value("typed.test")
        await page.get_by_role("button", name="Save").click()
        await expect(rows(page)).to_contain_text("typed.test")


async def test_a_request_becomes_a_rule_that_answers_as_recorded(person: Person, hub: ConsoleHub) -> None:
    async with origin() as site, proxy_user(hub) as user:
        await user.get(site.url("/recorded?x=1"))
        seen = len(site.requests)
        page = await person.open(f"/traffic/rules?flow={await user.newest_id('/recorded')}")
        form = page.get_by_role("form", name=re.compile("^Rule from request"))
        await expect(form.get_by_label("Matches")).to_have_value(site.url("/recorded"))
        await form.get_by_role("button", name="Save").click()
        await expect(rows(page)).to_contain_text("Answer as recorded")
        assert (await user.get(site.url("/recorded"))).text == "ok" and len(site.requests) == seen


async def test_what_the_proxy_refuses_is_told_with_the_next_step(person: Person, hub: ConsoleHub) -> None:
    async with proxy_user(hub):
        page = await person.open("/traffic/rules?new=header_rewrite")
        form = page.get_by_role("form", name="New rule")
        await form.get_by_label("Matches").fill("a.test")
        await form.get_by_label("Header edits").fill("Accept: */*\nno colon here")
        await form.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Line 2 must be “Name: value”, got “no colon here”")).to_be_visible()
        await form.get_by_label("Header edits").fill("Content-Length: 3")
        await form.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("the proxy frames messages itself")).to_be_visible()
        await form.get_by_label("Header edits").fill("+Via: 1.1 me\n-Server")
        await form.get_by_role("button", name="Save").click()
        await expect(rows(page)).to_contain_text("-Server, +Via: 1.1 me")


async def test_a_rule_takes_credentials_elsewhere_only_after_the_person_agreed(person: Person, hub: ConsoleHub) -> None:
    async with proxy_user(hub) as user:
        rule = await user.add("map_remote", "http://a.test", destination="http://b.test")
        page = await person.open(f"/traffic/rules?rule={rule}")
        box = page.get_by_role("switch", name="Send cookies and tokens")
        await box.click()
        await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        await expect(box).not_to_be_checked()
        await box.click()
        await expect(page.get_by_role("dialog")).to_contain_text("http://b.test will get the cookies")
        await page.get_by_role("dialog").get_by_role("button", name="Send credentials").click()
        await expect(box).to_be_enabled()
        await expect(box).to_be_checked()
        (listed,) = (await user.agent.call("crab_rules_list"))["rules"]
        assert listed["settings"]["keeps_credentials"] is True


async def test_hostile_matchers_and_texts_are_shown_as_text(person: Person, hub: ConsoleHub) -> None:
    async with proxy_user(hub) as user:
        await user.add("map_local", f"/{MARKUP}{BIDI}", text=MARKUP, content_type="text/html")
        page = await person.open("/traffic/rules")
        await expect(rows(page)).to_contain_text("<script>")
        await expect(rows(page)).to_contain_text("\\u{202e}")
        await page.get_by_role("link", name=re.compile("^Edit rule")).click()
        await expect(page.get_by_label("Text", exact=True)).to_have_value(MARKUP)
        assert await page.evaluate("window.hacked") is None


async def test_the_rules_fit_every_look_and_a_phone(person: Person, new_person: NewPerson, hub: ConsoleHub) -> None:
    async with proxy_user(hub) as user:
        for kind, settings in {
            "map_local": {"text": "x" * 300},
            "breakpoint": {"enabled": False},
            "header_rewrite": {"set_headers": {"X": "1"}},
        }.items():
            await user.add(kind, "https://a-rather-long-host-name.example.com/with/a/long/path/too", **settings)
        page = await person.open("/traffic/rules?new=map_local&test=https%3A%2F%2Fexample.com%2F")
        await expect(page.get_by_role("form", name="New rule")).to_be_visible()
        await expect(page.locator(".rule-test-result[data-state]")).to_be_visible()
        await axe_in_every_look(page)
        phone = await (await new_person(size=PHONE)).open("/traffic/rules?new=map_local")
        await expect(rows(phone)).to_have_count(3)
        await has_no_sideways_scroll(phone)
