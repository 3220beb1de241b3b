"""The page of tools with servers from npm and PyPI; what it copies for other programs is run by them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator

import pytest
from playwright.async_api import Page, expect

from tests.support.console import Person
from tests.support.console_hub import ConsoleHub, Json
from tests.support.real_clients import DARI
from tests.support.real_servers import START_MS, installed

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


@pytest.fixture(scope="module", autouse=True)
def servers(hub: ConsoleHub) -> Iterator[None]:
    there = installed()
    program = there.npm("@modelcontextprotocol", "server-everything", "dist", "index.js")
    hub.write_servers(
        everything={"command": str(there.node), "args": [program, "stdio"], "initTimeoutMs": START_MS},
        time={"command": there.script("mcp-server-time"), "args": ["--local-timezone=UTC"], "initTimeoutMs": START_MS},
    )
    yield


async def open_tool(person: Person, server: str, name: str) -> Page:
    page = await person.open(f"/tools/{server}__{name}")
    # A server that was never seen needs its time; the page follows its list.
    await expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible(timeout=90_000)
    return page


async def run(page: Page) -> None:
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.locator(".tool-run")).to_have_attribute("data-state", "ok")


async def test_a_tool_of_pypi_is_filled_in_and_run(person: Person) -> None:
    page = await open_tool(person, "time", "convert_time")
    await page.get_by_label(re.compile("^source_timezone")).fill("Asia/Seoul")
    await page.get_by_label(re.compile("^time ")).fill("12:00")
    await page.get_by_label(re.compile("^target_timezone")).fill("UTC")
    await run(page)
    result = page.get_by_role("region", name="Result")
    await expect(result).to_contain_text("-9.0h")


async def test_tools_of_npm_add_numbers_show_a_picture_and_report_progress(person: Person) -> None:
    page = await open_tool(person, "everything", "get-sum")
    await page.get_by_label(re.compile("^a ")).fill("2")
    await page.get_by_label(re.compile("^b ")).fill("3.5")
    await run(page)
    await expect(page.get_by_role("region", name="Result")).to_contain_text("5.5")
    page = await open_tool(person, "everything", "get-tiny-image")
    await run(page)
    await expect(page.get_by_role("img", name="image/png")).to_be_visible()
    page = await open_tool(person, "everything", "trigger-long-running-operation")
    await page.get_by_label(re.compile("^duration")).fill("2")
    await page.get_by_label(re.compile("^steps")).fill("4")
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.get_by_text(re.compile("/ 4"))).to_be_visible()
    await expect(page.locator(".tool-run")).to_have_attribute("data-state", "ok")


async def test_structured_content_of_npm_fits_its_schema(person: Person) -> None:
    page = await open_tool(person, "everything", "get-structured-content")
    await page.get_by_label(re.compile("^location")).select_option(index=1)
    await run(page)
    await expect(page.get_by_role("region", name="Result")).to_contain_text("fits the output schema")


async def test_resources_and_prompts_of_npm_are_shown(person: Person) -> None:
    await open_tool(person, "everything", "echo")
    page = await person.open("/tools/prompts")
    await page.get_by_role("searchbox", name="Filter prompts").fill("everything__completable")
    await page.get_by_role("navigation", name="Prompts").get_by_role("link").click()
    await page.locator(".tools-detail input").first.fill("E")
    await expect(page.locator("datalist option").first).to_be_attached()
    page = await person.open("/tools/resources")
    listed = page.get_by_role("navigation", name="Resources")
    await listed.get_by_role("link").filter(has_text=re.compile(r"\.md")).first.click()
    await expect(page.locator(".tools-detail [data-state=ready]")).to_be_visible()


async def shell(hub: ConsoleHub, command: str) -> str:
    environ = {**hub.environ, "DARI_TOKEN": hub.token, "PATH": f"{DARI.parent}{os.pathsep}{hub.environ['PATH']}"}
    done = await asyncio.create_subprocess_exec(
        *("sh", "-c", command),
        cwd=hub.home,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(100):
        said, _ = await done.communicate()
    assert done.returncode == 0, said.decode()
    return said.decode()


async def test_what_is_copied_runs_as_it_is(person: Person, hub: ConsoleHub) -> None:
    await person.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await open_tool(person, "everything", "echo")
    said = 'it\'s $(id) `id`; "다리" \\ end'
    await page.get_by_role("textbox", name="JSON", exact=True).fill(json.dumps({"message": said}))
    for kind in ("curl", "cli", "python", "mcp"):
        await page.get_by_label("Copy as …").select_option(kind)
        await expect(page.get_by_label("Copy as …")).to_have_attribute("data-copied", kind)
        copied = str(await page.evaluate("navigator.clipboard.readText()"))
        if kind == "mcp":
            sent: Json = json.loads(copied)
            assert sent["params"] == {"name": "everything__echo", "arguments": {"message": said}}
        elif kind == "python":
            (hub.home / "copied.py").write_text(copied)
            assert said in await shell(hub, f"{sys.executable} copied.py")
        else:
            output = await shell(hub, copied)
            assert said in output or json.dumps(said, ensure_ascii=False)[1:-1] in output
