"""The Traffic page, as a person uses it, over a real crabd and real requests."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import websockets
from playwright.async_api import Locator, Page, expect

from dari.daemon.lock import lock_holder
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
from tests.support.console_hub import Agent, ConsoleHub
from tests.support.daemon_homes import find_locks
from tests.support.origins.origin import origin
from tests.support.proxy_site import Site
from tests.support.waiting import wait_until

MANY = 5000
HOSTILE = ("<img src=x onerror=alert(1)>", "‮gnp.exe", "a​b", "</pre><script>alert(2)</script>")


def rows(page: Page) -> Locator:
    return page.locator(".flow-row.vl-row:visible")


def row(page: Page, text: str) -> Locator:
    return rows(page).filter(has_text=text)


def table(page: Page) -> Locator:
    return page.get_by_role("grid")


async def counted(page: Page, count: int) -> None:
    await expect(page.locator(".flow-count")).to_have_attribute("data-count", str(count))


async def recorded_calls(page: Page) -> list[str]:
    """Tools of the newest calls in the audit log, asked for as the Audit page does."""
    return list(
        await page.evaluate(
            """async () => {
                const main = await import(document.querySelector("script[type=module]").src);
                const { live } = main.$["lib/live.js"];
                const { value } = await live.call("dari_audit_search", { filter: {}, limit: 50 });
                return value.records.map((record) => record.tool);
            }"""
        )
    )


@asynccontextmanager
async def running(agent: Agent) -> AsyncIterator[str]:
    """The proxy's address; nothing recorded before."""
    if (await agent.call("crab_proxy_status"))["status"] == "stopped":
        await agent.call("crab_engine_set_listen_addr", listen_addr="127.0.0.1:0")
        await agent.call("crab_proxy_start")
    await agent.call("crab_logs_clear")
    yield f"http://{(await agent.call('crab_proxy_info'))['address']}"


@asynccontextmanager
async def client_of(proxy: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(proxy=proxy, trust_env=False, timeout=30) as client:
        yield client


def crabd_pid(hub: ConsoleHub) -> int:
    holders = [pid for lock in find_locks(hub.home) if (pid := lock_holder(lock)) is not None]
    found = {pid for pid in holders if b"crabd" in Path(f"/proc/{pid}/cmdline").read_bytes()}
    assert len(found) == 1, holders
    return found.pop()


async def import_flows(hub: ConsoleHub, agent: Agent, entries: list[dict[str, Any]]) -> None:
    path = hub.home / "flows.har"
    path.write_text(
        json.dumps({"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": entries}})
    )
    imported = await agent.call("crab_traffic_import_har", path=str(path))
    assert imported["imported"] == len(entries), imported


def entry(
    url: str, status: int = 200, mime: str = "text/plain", text: str = "", headers: dict[str, str] | None = None
) -> dict[str, Any]:
    fields = [{"name": name, "value": value} for name, value in (headers or {}).items()]
    return {
        "startedDateTime": "2026-11-17T12:00:00Z",
        "time": 12,
        "request": {"method": "GET", "url": url, "httpVersion": "HTTP/1.1", "headers": fields},
        "response": {
            "status": status,
            "headers": [{"name": "Content-Type", "value": mime}, *fields],
            "content": {"size": len(text), "mimeType": mime, "text": text},
        },
        "timings": {"send": 1, "wait": 7, "receive": 4},
    }


async def test_a_first_visit_leads_to_the_first_request(hub: ConsoleHub, person: Person) -> None:
    page = await person.open("/traffic")
    await expect(page.get_by_role("heading", level=1, name="Traffic")).to_be_visible()
    await expect(page.get_by_text("The proxy daemon is not running")).to_be_visible()
    steps = page.locator(".first-steps li")
    await expect(steps).to_have_count(3)
    await axe(page)
    await steps.first.get_by_role("button", name="Start proxy").click()
    await expect(page.locator(".proxy")).to_have_attribute("data-state", "running")
    await expect(steps.first).to_have_attribute("data-state", "done")
    await expect(steps.nth(1).locator("pre")).to_contain_text("HTTPS_PROXY")
    await steps.nth(2).get_by_role("button", name="Make a certificate authority").click()
    await expect(steps.nth(2)).to_have_attribute("data-state", "done")
    await expect(steps.nth(1).locator("pre")).to_contain_text("SSL_CERT_FILE")
    async with origin(Site()) as site, hub.agent() as agent, running(agent) as proxy, client_of(proxy) as client:
        await client.get(site.url("/hello"))
        await expect(row(page, "/hello")).to_have_count(1)
        await expect(page.locator(".flow-empty")).to_be_hidden()


async def test_requests_appear_while_they_happen(hub: ConsoleHub, person: Person) -> None:
    async with origin(Site()) as site, hub.agent() as agent, running(agent) as proxy, client_of(proxy) as client:
        page = await person.open("/traffic")
        await client.get(site.url("/hello?first"))
        shown = row(page, "/hello?first")
        await expect(shown).to_contain_text("200")
        await expect(shown).to_contain_text("GET")
        stream = asyncio.create_task(client.get(site.url("/events")))
        await expect(row(page, "/events")).to_have_attribute("data-kind", "ok")
        await client.get(site.url("/release"))
        await stream
        await counted(page, 3)


async def test_a_filter_is_in_the_address_and_its_mistakes_are_shown_at_their_place(
    hub: ConsoleHub, agent: Agent, person: Person
) -> None:
    async with running(agent):
        found = [entry(f"http://a.test/ok/{n}") for n in range(3)]
        await import_flows(hub, agent, [*found, entry("http://b.test/broken", 503)])
        page = await person.open("/traffic")
        await counted(page, 4)
        await page.keyboard.press("/")
        box = page.get_by_role("searchbox", name="Filter")
        await expect(box).to_be_focused()
        await box.fill("status:5xx")
        await counted(page, 1)
        await expect(row(page, "/broken")).to_have_count(1)
        assert "filter=status%3A5xx" in page.url
        await box.fill("status:5xx stauts:4xx")
        await expect(page.locator(".filter-problem mark")).to_have_text("stauts")
        await expect(page.locator(".filter-problem")).to_contain_text("did you mean status:?")
        await counted(page, 1)
        await page.reload()
        await counted(page, 1)
        await import_flows(hub, agent, [entry("http://c.test/late", 500), entry("http://c.test/fine")])
        await expect(row(page, "/late")).to_have_count(1)
        await counted(page, 2)
        await page.get_by_role("button", name="Help for filters").click()
        await page.get_by_role("dialog").get_by_role("button", name="host:example.com", exact=True).click()
        await expect(page.locator(".flow-empty")).to_contain_text("No request fits this filter")
        await page.get_by_role("button", name="Remove the filter").click()
        await counted(page, 6)
        await page.goto(f"{hub.origin}/traffic?filter=stauts:4xx")
        await expect(page.locator(".filter-problem mark")).to_have_text("stauts")
        await expect(page.locator(".proxy")).to_have_attribute("data-state", "running")
        await page.get_by_role("button", name="Remove the filter").click()
        await counted(page, 6)


async def test_a_request_opens_beside_the_table_with_everything_about_it(
    hub: ConsoleHub, agent: Agent, person: Person
) -> None:
    async with origin(Site()) as site, running(agent) as proxy, client_of(proxy) as client:
        await agent.call("crab_rules_clear")
        rule = await agent.call("crab_rules_add", kind="status_rewrite", matcher=site.url("/echo"), to_status_code=418)
        secret = "Bearer abcdefghijklmnop1234"
        await client.post(site.url("/echo?q=1"), json={"name": "lamp"}, headers={"Authorization": secret})
        page = await person.open("/traffic")
        await row(page, "/echo").click()
        detail = page.locator(".flow-detail")
        await expect(detail).to_have_attribute("data-state", "ready")
        assert re.search(r"/traffic/\d+$", page.url)
        await expect(detail.get_by_text("418").first).to_be_visible()
        pill = detail.locator("a[data-rule]")
        await expect(pill).to_have_text(str(rule["rule"]["id"] if "rule" in rule else rule["id"]))
        assert (await pill.get_attribute("href") or "").startswith("/traffic/rules?rule=")
        await expect(detail.get_by_role("heading", name="Timing")).to_be_visible()
        await detail.get_by_role("tab", name="Request", exact=True).click()
        await expect(page).to_have_url(re.compile("tab=request"))
        await expect(detail.get_by_role("row", name="Authorization <redacted>", exact=False)).to_be_visible()
        await expect(detail.locator("[data-body=request]")).to_have_attribute("data-kind", "json")
        await expect(detail.locator("[data-body=request]").get_by_role("tree")).to_contain_text("lamp")
        await detail.get_by_role("button", name="Show secrets").click()
        await expect(detail).to_contain_text(secret)
        assert "dari_traffic_reveal" in await recorded_calls(page), "who looked stands in the audit log"
        await page.reload()
        await expect(detail).to_have_attribute("data-state", "ready")
        await expect(detail.get_by_role("tab", name="Request", exact=True)).to_have_attribute("aria-selected", "true")
        await expect(detail).not_to_contain_text(secret)
        await detail.get_by_role("button", name="Close the request").click()
        await expect(detail).to_be_hidden()
        assert page.url.endswith("/traffic?tab=request")


async def test_a_request_is_copied_as_a_command_without_its_secrets(
    hub: ConsoleHub, agent: Agent, person: Person
) -> None:
    async with origin(Site()) as site, running(agent) as proxy, client_of(proxy) as client:
        await client.get(site.url("/hello"), headers={"Authorization": "Bearer abcdefghijklmnop1234"})
        await person.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=hub.origin)
        page = await person.open("/traffic")
        await row(page, "/hello").click()
        await page.get_by_role("button", name="Copy as curl").click()
        await expect(page.locator(".toast").filter(has_text="Copied")).to_be_visible()
        copied = str(await page.evaluate("navigator.clipboard.readText()"))
        assert "curl " in copied and "/hello" in copied and "abcdefghijklmnop1234" not in copied


async def test_pictures_events_and_messages_are_shown_as_what_they_are(agent: Agent, person: Person) -> None:
    async with origin(Site()) as site, running(agent) as proxy, client_of(proxy) as client:
        if (await agent.call("crab_proxy_info"))["ca"] == "missing":
            await agent.call("crab_ca_generate")
        await agent.call("crab_rules_add_allow", matcher="127.0.0.1")  # or the tunnel of a WebSocket stays closed
        await client.get(site.url("/image.png"))
        stream = asyncio.create_task(client.get(site.url("/events")))
        await client.get(site.url("/release"))
        await stream
        async with websockets.connect(site.url("/ws").replace("http", "ws"), proxy=proxy) as socket:
            await socket.send("hello <b>there</b>")
            await socket.recv()
        page = await person.open("/traffic")
        detail = page.locator(".flow-detail")
        await row(page, "/image.png").click()
        await detail.get_by_role("tab", name="Response").click()
        await detail.get_by_role("button", name="Show picture").click()
        picture = detail.get_by_role("img", name="Picture in the body")
        await expect(picture).to_be_visible()
        assert await picture.evaluate("(one) => one.decode().then(() => one.naturalWidth)") == 2
        await row(page, "/events").click()
        await expect(detail.locator("[data-body=response]")).to_have_attribute("data-kind", "events")
        await expect(detail.locator(".messages li")).to_have_count(2)
        await row(page, "/ws").click()
        await detail.get_by_role("tab", name="Messages").click()
        said = detail.locator(".messages li").filter(has_text="hello <b>there</b>")
        await expect(said).to_have_count(2)
        await expect(said.first).to_have_attribute("data-direction", "sent")
        await expect(said.last).to_have_attribute("data-direction", "received")


async def test_thousands_of_requests_cost_a_screen_of_rows(hub: ConsoleHub, agent: Agent, person: Person) -> None:
    async with running(agent):
        page = await person.open("/traffic")
        await import_flows(hub, agent, [entry(f"http://h{n % 9}.test/item/{n}", 200 + n % 5) for n in range(MANY)])
        await counted(page, MANY)
        assert await page.locator(".vl-row").count() < 60
        await expect(table(page)).to_have_attribute("aria-rowcount", str(MANY + 1))
        await expect(row(page, f"/item/{MANY - 1}")).to_be_visible()
        follow = page.get_by_role("button", name="Follow")
        await expect(follow).to_have_attribute("aria-pressed", "true")
        await table(page).focus()
        await page.keyboard.press("Home")
        await expect(page.locator('.vl-row[aria-rowindex="2"]')).to_be_visible()
        await expect(follow).to_have_attribute("aria-pressed", "false")
        await page.keyboard.press("PageDown")
        await page.keyboard.press("ArrowDown")
        active = page.locator(".vl-row.active")
        await page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        place = int(await active.get_attribute("aria-rowindex") or 0)
        await import_flows(hub, agent, [entry("http://late.test/late")])
        await counted(page, MANY + 1)
        assert int(await active.get_attribute("aria-rowindex") or 0) == place, "what a person looks at stays"
        await page.keyboard.press("End")
        await expect(row(page, "/late")).to_be_visible()
        await expect(follow).to_have_attribute("aria-pressed", "true")
        assert await page.locator(".vl-row").count() < 60


async def test_scrolling_up_stops_following_and_the_end_starts_it_again(
    hub: ConsoleHub, agent: Agent, person: Person
) -> None:
    async with running(agent):
        await import_flows(hub, agent, [entry(f"http://a.test/item/{n}") for n in range(300)])
        page = await person.open("/traffic")
        await counted(page, 300)
        follow = page.get_by_role("button", name="Follow")
        await table(page).hover()
        await page.mouse.wheel(0, -900)
        await expect(follow).to_have_attribute("aria-pressed", "false")
        top = await table(page).evaluate("(one) => one.scrollTop")
        await import_flows(hub, agent, [entry("http://a.test/later")])
        await counted(page, 301)
        assert await table(page).evaluate("(one) => one.scrollTop") == top
        await page.mouse.wheel(0, 100_000)
        await expect(follow).to_have_attribute("aria-pressed", "true")
        await import_flows(hub, agent, [entry("http://a.test/last")])
        await expect(row(page, "/last")).to_be_in_viewport()


async def test_the_page_goes_on_when_crabd_is_killed_and_started_again(
    hub: ConsoleHub, agent: Agent, person: Person
) -> None:
    async with origin(Site()) as site, running(agent) as proxy:
        page = await person.open("/traffic")
        async with client_of(proxy) as client:
            await client.get(site.url("/hello?before"))
        await expect(row(page, "/hello?before")).to_be_visible()
        await agent.call("crab_traffic_search")
        pid = crabd_pid(hub)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2])
        await expect(page.locator(".proxy")).to_have_attribute("data-state", "down")
        await page.get_by_role("button", name="Start proxy").first.click()
        await expect(page.locator(".proxy")).to_have_attribute("data-state", "running")
        await expect(page.locator(".toast[data-kind=bad]")).to_have_count(0)
        address = (await agent.call("crab_proxy_info"))["address"]
        async with client_of(f"http://{address}") as client:
            await client.get(site.url("/hello?after"))
        await expect(row(page, "/hello?after")).to_be_visible()


async def test_nothing_is_lost_while_the_hub_is_away(hub: ConsoleHub, agent: Agent, person: Person) -> None:
    async with origin(Site()) as site, running(agent) as proxy, client_of(proxy) as client:
        page = await person.open("/traffic")
        await client.get(site.url("/hello?before"))
        await expect(row(page, "/hello?before")).to_be_visible()
        person.problems.allow("WebSocket|ERR_CONNECTION_REFUSED")
        await hub.stop()
        await expect(page.locator("html")).to_have_attribute("data-live", "lost")
        await client.get(site.url("/hello?meanwhile"))
        await hub.start()
        await expect(row(page, "/hello?meanwhile")).to_be_visible()
        await counted(page, 2)


async def test_a_rule_is_made_from_a_request(agent: Agent, person: Person) -> None:
    async with origin(Site()) as site, running(agent) as proxy, client_of(proxy) as client:
        await client.get(site.url("/hello"))
        page = await person.open("/traffic")
        await row(page, "/hello").click()
        await page.get_by_role("link", name="Rule from this request").click()
        await expect(page.locator(".traffic-view")).to_have_attribute("data-view", "rules")
        await expect(page.get_by_role("heading", name=re.compile("Rule from request"))).to_be_visible()
        await page.go_back()
        await expect(page.locator(".flow-detail")).to_have_attribute("data-state", "ready")


async def test_what_others_send_is_never_markup(hub: ConsoleHub, agent: Agent, person: Person) -> None:
    async with running(agent):
        entries = [
            entry(f"http://h{n}.test/{text}", text=text, mime="text/html", headers={"X-Odd": text})
            for n, text in enumerate(HOSTILE)
        ]
        entries.append(entry("http://big.test/10mb", mime="application/json", text=json.dumps(["x" * 100] * 100_000)))
        await import_flows(hub, agent, entries)
        page = await person.open("/traffic")
        await counted(page, len(entries))
        detail = page.locator(".flow-detail")
        for n in range(len(HOSTILE)):
            await row(page, f"h{n}.test").click()
            await detail.get_by_role("tab", name="Response").click()
            await expect(detail.locator("[data-body=response]")).to_have_attribute("data-state", "ready")
        shown = await page.locator("main").inner_text()
        assert "‮" not in shown and "​" not in shown and "\\u{202e}" in shown
        assert await page.locator("main script, main img[src=x]").count() == 0
        await row(page, "big.test").click()
        await expect(detail.locator("[data-body=response]")).to_have_attribute("data-state", "ready")
        await detail.get_by_role("button", name="Show more").click()
        await expect(detail.get_by_role("button", name="Show more")).to_have_count(0)


async def test_clearing_asks_first(hub: ConsoleHub, agent: Agent, person: Person) -> None:
    async with running(agent):
        await import_flows(hub, agent, [entry("http://a.test/one")])
        page = await person.open("/traffic")
        await counted(page, 1)
        await page.get_by_role("button", name="Clear").click()
        await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        await counted(page, 1)
        await page.get_by_role("button", name="Clear").click()
        await page.get_by_role("dialog").get_by_role("button", name="Clear").click()
        await counted(page, 0)
        await expect(page.locator(".flow-empty")).to_contain_text("No requests yet")


async def test_two_marked_requests_lead_to_their_comparison(hub: ConsoleHub, agent: Agent, person: Person) -> None:
    async with running(agent):
        await import_flows(hub, agent, [entry(f"http://a.test/{n}") for n in range(3)])
        page = await person.open("/traffic")
        await counted(page, 3)
        await tab_to(page, "grid", "Requests, oldest first")
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("Space")
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("Space")
        await expect(page.locator(".vl-row[aria-selected=true]")).to_have_count(2)
        link = page.get_by_role("link", name="Compare the two")
        assert re.fullmatch(r"/traffic/diff\?a=\d+&b=\d+", await link.get_attribute("href") or "")
        await page.keyboard.press("Enter")
        await expect(page.locator(".flow-detail")).to_have_attribute("data-state", "ready")
        await page.keyboard.press("Escape")
        await expect(page.locator(".flow-detail")).to_be_hidden()


async def test_it_reads_well_in_both_themes_and_languages(hub: ConsoleHub, agent: Agent, person: Person) -> None:
    async with running(agent):
        statuses = (200, 302, 404, 500)
        await import_flows(hub, agent, [entry(f"http://a.test/{n}", each) for n, each in enumerate(statuses)])
        page = await person.open("/traffic?charts=1")
        await counted(page, 4)
        await row(page, "a.test").first.click()
        await expect(page.locator(".flow-detail")).to_have_attribute("data-state", "ready")
        await expect(page.locator("figure.chart")).to_have_count(2)
        await axe_in_every_look(page)
        assert await nameless_controls(page) == []


async def test_it_fits_a_phone(hub: ConsoleHub, agent: Agent, new_person: NewPerson) -> None:
    async with running(agent):
        await import_flows(hub, agent, [entry(f"http://a.test/{'long/' * 40}{n}") for n in range(3)])
        page = await (await new_person(size=PHONE)).open("/traffic")
        await counted(page, 3)
        await has_no_sideways_scroll(page)
        await rows(page).first.click()
        await expect(page.locator(".flow-detail")).to_have_attribute("data-state", "ready")
        await has_no_sideways_scroll(page)
        await page.get_by_role("button", name="Close the request").click()
        await expect(rows(page).first).to_be_visible()
