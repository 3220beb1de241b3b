"""Design 003, "MCP Server Registry": its example screen, line by line, filled in by a person, with the real server.

Transport: [ stdio v ]

Command: [npx                          ]
Args:    [@modelcontextprotocol/server-]
         [filesystem                    ]
         [/path/to/allowed              ]

Allowed Paths:
  [x] /Users/user/Documents
  [ ] /Users/user/Projects
  [+] Add Path

[ Test Connection ] [ Save ]
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, TimeoutError, expect

from tests.support.console import Person
from tests.support.console_hub import ConsoleHub
from tests.support.real_servers import Installed, installed

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
PACKAGE = "@modelcontextprotocol/server-filesystem"


@pytest.fixture
def there() -> Installed:
    return installed()


@pytest.fixture
def npx(there: Installed, hub: ConsoleHub) -> Path:
    """`npx PACKAGE ARGS` as npm has it, for a package that is already here: no test asks a registry."""
    program = hub.home / "bin" / "npx"
    program.parent.mkdir(exist_ok=True)
    entry = there.npm("@modelcontextprotocol", "server-filesystem", "dist", "index.js")
    program.write_text(f'#!/bin/sh\n[ "$1" = "{PACKAGE}" ] || exit 64\nshift\nexec "{there.node}" "{entry}" "$@"\n')
    program.chmod(0o755)
    return program


def folders(hub: ConsoleHub) -> tuple[Path, Path]:
    documents, projects = hub.home / "Documents", hub.home / "Projects"
    for folder in (documents, projects):
        folder.mkdir(exist_ok=True)
    (documents / "hello.txt").write_text("안녕")
    return documents, projects


async def fill(page: Page, npx: Path, documents: Path) -> None:
    """Everything of the example screen but the buttons."""
    await page.get_by_label("Name", exact=True).first.fill("filesystem")
    # Transport: [ stdio v ]
    await expect(page.get_by_label("Transport")).to_have_value("stdio")
    # Command: [npx]
    await page.get_by_label("Command").fill(str(npx))
    # Args: one box each; a new one appears while the last is filled
    await page.get_by_label("Args 1").fill(PACKAGE)
    await page.get_by_label("Args 2").fill(str(documents))
    await expect(page.get_by_label("Args 3")).to_have_value("")


async def test_the_example_screen_is_filled_in_tested_and_saved(person: Person, hub: ConsoleHub, npx: Path) -> None:
    documents, projects = folders(hub)
    page = await person.open("/servers")
    await page.get_by_role("link", name="Add server").first.click()
    await fill(page, npx, documents)
    paths = page.get_by_role("group", name="Allowed Paths")
    # [x] /Users/user/Documents     [ ] /Users/user/Projects
    await paths.get_by_role("checkbox", name=str(documents)).check()
    await expect(paths.get_by_role("checkbox", name=str(projects))).not_to_be_checked()
    # [+] Add Path, with a check of the folder
    node = os.path.dirname(os.path.realpath(installed().node))
    for path in (node, str(installed().folder), str(npx.parent)):
        await paths.get_by_role("button", name="Add Path").click()
        await paths.get_by_role("textbox", name="Path").fill(path)
        await page.keyboard.press("Enter")
        await expect(paths.get_by_role("checkbox", name=path, exact=True)).to_be_checked()
    await paths.get_by_role("textbox", name="Path").fill("/no/such/folder")
    await page.keyboard.press("Enter")
    missing = paths.get_by_role("listitem").filter(has_text="/no/such/folder")
    await expect(missing).to_have_attribute("data-state", "missing")
    await missing.get_by_role("checkbox").uncheck()
    # [ Test Connection ]
    await page.get_by_role("button", name="Test Connection").click()
    test = page.locator(".server-test")
    await expect(test).to_have_attribute("data-state", "ok", timeout=90_000)
    steps = [await each.get_attribute("data-step") for each in await test.locator("li").all()]
    assert steps == ["profile", "program", "sandbox", "start", "agree", "tools/list", "schemas"]
    await expect(test).to_contain_text("ms")
    assert not (hub.home / ".config/crewx/mcp.json").exists()  # a test saves nothing
    # [ Save ]
    await page.get_by_role("button", name="Save").click()
    await expect(page).to_have_url(f"{hub.origin}/servers/filesystem")
    saved: dict[str, Any] = json.loads((hub.home / ".config/crewx/mcp.json").read_text())["servers"][0]
    assert (saved["id"], saved["command"], saved["args"]) == ("filesystem", str(npx), [PACKAGE, str(documents)])
    assert str(documents) in saved["allowedPaths"] and str(projects) not in saved["allowedPaths"]


async def test_the_saved_server_serves_an_agent_within_its_allowed_paths(person: Person, hub: ConsoleHub) -> None:
    documents, projects = hub.home / "Documents", hub.home / "Projects"
    (projects / "secret.txt").write_text("not for the server")
    page = await person.open("/servers/filesystem")
    with suppress(TimeoutError):  # the hub may have started it already
        await page.get_by_role("button", name="Start").click(timeout=3000)
    await expect(page.get_by_role("button", name="Stop")).to_be_visible(timeout=60_000)
    async with hub.agent() as agent:
        told = await agent.result("filesystem__read_text_file", path=str(documents / "hello.txt"))
        assert "안녕" in json.dumps(told, ensure_ascii=False)
        assert (await agent.result("filesystem__read_text_file", path=str(projects / "secret.txt")))["isError"]


async def test_a_form_that_is_opened_again_shows_what_was_saved(person: Person, hub: ConsoleHub) -> None:
    page = await person.open("/servers/filesystem")
    await expect(page.get_by_label("Transport")).to_have_value("stdio")
    await expect(page.get_by_label("Args 1")).to_have_value(PACKAGE)
    await expect(page.get_by_role("checkbox", name=str(hub.home / "Documents"))).to_be_checked()
    await expect(page.get_by_role("checkbox", name=str(hub.home / "Projects"))).not_to_be_checked()
    await page.get_by_role("checkbox", name=str(hub.home / "Projects")).check()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status").filter(has_text="Saved filesystem")).to_be_visible()
    saved = json.loads((hub.home / ".config/crewx/mcp.json").read_text())["servers"][0]
    assert str(hub.home / "Projects") in saved["allowedPaths"]
