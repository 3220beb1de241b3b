"""The list of tools while servers come, go and restart; two thousand of them; tools that are held back."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.support import playground_server
from tests.support.console import NewPerson, Person, is_connected
from tests.support.console_hub import ConsoleHub, Json

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]
MANY = 1900


def playground(**more: object) -> Json:
    return {"command": sys.executable, "args": [str(Path(playground_server.__file__))], **more}


@pytest.fixture(scope="module", autouse=True)
def servers(hub: ConsoleHub) -> Iterator[None]:
    hub.write_servers(play=playground())
    yield


async def test_two_thousand_tools_are_folded_shown_in_parts_and_found(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(play=playground(), many=playground(env={"MORE_TOOLS": str(MANY)}))
    page = await person.open("/tools")
    listed = page.get_by_role("navigation", name="Tools by server")
    group = listed.get_by_role("button", name=re.compile("^many"))
    await group.click()
    await expect(listed.get_by_role("link", name="more_0", exact=True)).to_be_visible()
    assert await listed.get_by_role("link").count() < 300
    await listed.get_by_role("button", name=re.compile("^Show 200 more")).click()
    await expect(listed.get_by_role("link", name="more_300", exact=True)).to_be_visible()
    await page.get_by_role("searchbox", name="Filter tools").fill(f"more_{MANY - 1}")
    await expect(listed.get_by_role("link")).to_have_count(1)
    await expect(page).to_have_url(re.compile(f"q=more_{MANY - 1}"))
    hub.write_servers(play=playground())
    await expect(page.get_by_text("The list changed").first).to_be_visible()
    await expect(listed.get_by_role("link")).to_have_count(0)


async def test_a_tool_that_the_profile_hides_is_named_below_the_list(person: Person, hub: ConsoleHub) -> None:
    hub.write_servers(play=playground(tools={"deny": ["slow"]}))
    page = await person.open("/tools")
    bad = page.locator("[data-state=malformed]")
    await expect(bad).to_contain_text("play: slow is held or hidden")
    hub.write_servers(play=playground())


async def test_a_form_survives_the_restart_of_the_hub_and_runs_after_it(new_person: NewPerson, hub: ConsoleHub) -> None:
    person = await new_person()
    person.problems.allow("WebSocket|ERR_CONNECTION_REFUSED|Failed to load resource")
    page = await person.open("/tools/play__rich")
    await page.get_by_label(re.compile("^name")).fill("kept")
    await page.get_by_label(re.compile("^Kind of shape")).select_option("square")
    await hub.restart()
    await is_connected(page)
    await expect(page.get_by_label(re.compile("^name"))).to_have_value("kept")
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("kept", timeout=60_000)
