"""Traffic → Compose, Compare, HAR: requests are sent, sent again with changes, compared, exported and imported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.support.console import PHONE, NewPerson, Person, axe_in_every_look, has_no_sideways_scroll
from tests.support.console_hub import ConsoleHub
from tests.support.console_traffic import proxy_user
from tests.support.hostile_server import MARKUP
from tests.support.origins.origin import answering, origin

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]


def text_response(text: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text.encode())


ONE = "\n".join(f"line {number}" for number in range(40))
TWO = ONE.replace("line 20", "line twenty")


async def test_a_request_of_ones_own_is_sent_and_its_answer_shown(person: Person, hub: ConsoleHub) -> None:
    async with origin(answering(text_response(MARKUP))) as site, proxy_user(hub):
        page = await person.open("/traffic/compose")
        await page.get_by_label("Method").fill("PUT")
        await page.get_by_label("URL").fill(site.url("/mine"))
        await page.get_by_label("Headers").fill("X-Mine: yes")
        await page.get_by_label("Body", exact=True).fill("content")
        await page.keyboard.press("Control+Enter")
        await expect(page.locator(".sent-body")).to_have_text(MARKUP)
        seen = site.requests[0]
        assert seen.head.startswith(b"PUT /mine ") and (seen.body, seen.header("x-mine")) == (b"content", "yes")
        assert await page.evaluate("window.hacked") is None


async def test_what_hides_in_an_answer_or_turns_it_around_is_spelled_out(person: Person, hub: ConsoleHub) -> None:
    heads = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Name: a\u202eb\r\nContent-Length: 9\r\n\r\n"
    answers = [f"{heads}a\u202e{letter}\u200bc".encode() for letter in "bd"]
    async with origin(answering(*answers)) as site, proxy_user(hub) as user:
        await user.get(site.url("/hidden"))
        first = await user.newest_id("/hidden")
        page = await person.open("/traffic/compose")
        await page.get_by_label("URL").fill(site.url("/hidden"))
        await page.keyboard.press("Control+Enter")
        await expect(page.locator(".sent-body")).to_have_text(re.compile(r"^a\\u\{202e\}[bd]\\u\{200b\}c$"))
        await page.locator(".sent details").click()
        sent = await page.locator(".sent").inner_text()
        assert "x-name" in sent.lower() and "\u202e" not in sent and r"\u{d}" not in sent
        await person.go(page, f"/traffic/diff?a={first}&b={await user.newest_id('/hidden')}")
        await page.get_by_role("tab", name="response").click()
        await expect(page.locator(".diff-line").filter(has_text=r"\u{200b}c").first).to_be_visible()
        assert "\u202e" not in await page.locator(".traffic-view").inner_text()


async def test_a_recorded_request_is_changed_sent_again_and_compared(person: Person, hub: ConsoleHub) -> None:
    async with origin(answering(text_response(ONE), text_response(TWO))) as site, proxy_user(hub) as user:
        await user.get(site.url("/page"), headers={"Cookie": "session=s3cret-value-123", "X-Try": "1"})
        first = await user.newest_id("/page")
        page = await person.open(f"/traffic/compose?flow={first}")
        headers = page.get_by_label("Headers")
        await expect(headers).to_have_value(re.compile("x-try: 1", re.I))
        assert "s3cret" not in await headers.input_value()
        await headers.fill((await headers.input_value()).lower().replace("x-try: 1", "x-try: 2"))
        await page.get_by_role("button", name="Send").click()
        await page.get_by_role("link", name=f"Compare with request {first}").click()
        assert (site.requests[1].header("cookie"), site.requests[1].header("x-try")) == (
            "session=s3cret-value-123",
            "2",
        )

        await expect(page.get_by_role("row", name=re.compile("request header.*x-try"))).to_contain_text("2")
        await page.get_by_role("tab", name="response").click()
        changed = page.locator(".diff-view mark")
        await expect(changed).to_have_text(["309", "313", "20", "twenty"])
        await page.get_by_role("button", name="Side by side").last.click()
        await expect(page).to_have_url(re.compile("view=split"))
        await page.get_by_role("button", name=re.compile("unchanged lines")).first.click()
        await expect(page.get_by_text("line 1", exact=True).first).to_be_visible()
        await axe_in_every_look(page)


async def test_bodies_of_ten_megabytes_are_compared_in_part_and_the_page_goes_on(
    person: Person, hub: ConsoleHub
) -> None:
    long = [json.dumps([{"id": number, "name": f"{mark} {number}"} for number in range(300_000)]) for mark in "ab"]
    assert len(long[0]) > 10_000_000
    async with origin(answering(*map(text_response, long))) as site, proxy_user(hub) as user:
        ids = []
        for number in (1, 2):
            await user.get(site.url(f"/long/{number}"))
            ids.append(await user.newest_id(f"/long/{number}"))
        page = await person.open(f"/traffic/diff?a={ids[0]}&b={ids[1]}&part=response")
        await expect(page.get_by_text("Only the first 500000 characters")).to_be_visible()
        assert await page.locator(".diff-view tr").count() < 1000
        await page.get_by_role("tab", name="request").click()
        await expect(page.get_by_text(f"GET {site.url('/long/2')}")).to_be_visible()


async def test_traffic_leaves_as_a_har_file_and_comes_back(person: Person, hub: ConsoleHub, tmp_path: Path) -> None:
    async with origin() as site, proxy_user(hub) as user:
        for number in range(3):
            await user.get(site.url(f"/har/{number}?access_token=s3cret-value-123"))
        page = await person.open("/traffic/har")
        await page.get_by_role("searchbox").fill("/har/ method:GET")
        async with page.expect_download() as downloading:
            await page.get_by_role("button", name="Download HAR").click()
        path = tmp_path / "out.har"
        await (await downloading.value).save_as(path)
        entries = json.loads(path.read_text())["log"]["entries"]
        assert [entry["request"]["url"].partition("/har/")[2][0] for entry in entries] == ["0", "1", "2"]
        assert "s3cret" not in path.read_text()
        await expect(page).to_have_url(re.compile("filter=%2Fhar%2F"))
        picker = page.get_by_label("HAR file", exact=True)
        await expect(picker).to_be_visible()
        await picker.set_input_files(path)
        await expect(page.get_by_text(re.compile("^3 requests imported"))).to_be_visible()
        (tmp_path / "wrong.har").write_text("<html>")
        await picker.set_input_files(tmp_path / "wrong.har")
        await expect(page.locator("[data-result=import] .error")).to_contain_text("wrong.har is not a HAR file")


@pytest.mark.parametrize("tab", ["compose", "diff", "har"])
async def test_each_of_these_tabs_fits_every_look_and_a_phone(
    tab: str, person: Person, new_person: NewPerson, hub: ConsoleHub
) -> None:
    async with proxy_user(hub):
        page = await person.open(f"/traffic/{tab}")
        await expect(page.get_by_role("heading", level=2).first).to_be_visible()
        await axe_in_every_look(page)
        phone = await (await new_person(size=PHONE)).open(f"/traffic/{tab}")
        await expect(phone.get_by_role("heading", level=2).first).to_be_visible()
        await has_no_sideways_scroll(phone)
