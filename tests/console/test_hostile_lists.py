"""Hostile text in every list of every page: it is shown, as text, with what turns or hides characters spelled out.

One hub has a hostile item in each list; `LISTS` says where each list is and by which word its item is known, so that a
list that shows nothing fails. Then the whole DOM is searched: elements, texts and attributes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from unittest.mock import patch

import pytest
from playwright.async_api import Page, expect

from dari.core.hub_client import hub_approvals
from dari.errors import NeedsApproval
from tests.support.console import Person
from tests.support.console_hub import ConsoleHub, hostile_server, lab_server
from tests.support.console_traffic import proxy_user
from tests.support.knowledge_base import write_config
from tests.support.origins.origin import origin

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
ATTACK = '<img src=x onerror="window.hacked=1"><b>\u202egpj.exe\u2066\u200b\u2060\ufeff'
MARKUP = "<img src=x onerror=window.hacked=1>"
"""Where nothing else may stand."""
NAME = f"{MARKUP}\u202egpj\u200b"
"""Where a quotation mark or a slash cannot stand."""

# Everything in the document that a hostile text could have become, or in which it could still hide something.
SEARCH = """() => {
    const hidden = /[\\u00ad\\u061c\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff]/;
    const ours = new RegExp(`^(data:|blob:|${location.origin}/static/)`);
    const kinds = "script, iframe, object, embed, img, [onerror], [href^='javascript']";
    const found = new Set();
    const add = (what, el) => found.add(JSON.stringify(`${what} ${el.outerHTML.slice(0, 200)}`));
    for (const el of document.querySelectorAll(kinds)) if (!ours.test(el.src || "")) add("element", el);
    const walker = document.createTreeWalker(document, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    for (let node = walker.currentNode; node; node = walker.nextNode()) {
        if (node.nodeType === Node.TEXT_NODE && hidden.test(node.data)) add("text in", node.parentElement);
        for (const { name, value } of node.attributes || []) if (hidden.test(value)) add(`attribute ${name} of`, node);
    }
    if (hidden.test(document.title)) found.add("the title");
    if (window.hacked) found.add("it ran");
    return [...found];
}"""


def attack(word: str) -> str:
    return f"{word} {ATTACK}"


LISTS = {
    "servers": ("/servers", "in-servers"),
    "a server's tools": ("/servers/hostile?tab=tools", "<script>"),
    "a server's log": ("/servers/hostile?tab=log", "<script>"),
    "servers to import": ("/servers?add=import", "in-import"),
    "tools": ("/tools/hostile__hostile_markup", "<script>"),
    "resources": ("/tools/resources", "<script>"),
    "prompts": ("/tools/prompts", "<script>"),
    "flows": ("/traffic", "in-flows"),
    "one flow": ("/traffic/1", "in-flows"),
    "one raw flow": ("/traffic/2", "in-flows"),
    "rules": ("/traffic/rules", "in-rules"),
    "breakpoints": ("/traffic/breakpoints", "in-breakpoints"),
    "panes": ("/terminals", "in-panes"),
    "blocks": ("/terminals/1?commands=1", "in-blocks"),
    "documents": ("/knowledge/documents", "in-documents"),
    "sources": ("/knowledge/documents", "in-sources"),
    "passages": ("/knowledge?q=hostility", "in-passages"),
    "one passage": ("/knowledge?q=hostility", "in-passages"),
    "approvals": ("/approvals", "in-approvals"),
    "answered": ("/approvals/history", "in-answered"),
    "standing rules": ("/approvals/rules", "in-standing"),
    "audit": ("/audit?text=in-blocks", "in-clients"),
    "sessions": ("/audit/sessions", "in-clients"),
    "clients": ("/", "in-clients"),
    "tokens": ("/settings/tokens", "in-tokens"),
}


@contextmanager
def at_home_of(hub: ConsoleHub) -> Iterator[None]:
    with patch.dict(os.environ, {"DARI_HOME": hub.environ["DARI_HOME"], "HOME": hub.environ["HOME"]}):
        yield


async def plant_servers(hub: ConsoleHub) -> None:
    listed = {attack("in-servers").replace("/", ""): {"command": attack("run"), "description": attack("does")}}
    hub.write_servers(hostile=hostile_server(), lab=lab_server(), **listed)
    other = hub.home / ".cursor" / "mcp.json"
    other.parent.mkdir()
    other.write_text(json.dumps({"mcpServers": {f"in-import{NAME}": {"command": attack("run")}}}))


def plant_documents(hub: ConsoleHub) -> None:
    folder = hub.home / f"in-sources{NAME}"
    folder.mkdir()
    (folder / f"in-documents{NAME}.md").write_text(f"# {attack('title')}\n\nhostility: {attack('in-passages')}\n")
    write_config(hub.dari_home / "kebab" / "config.toml", folder, hub.home / "knowledge")


async def plant_approvals(hub: ConsoleHub) -> None:
    """As a daemon asks; the answers come from the page."""
    with at_home_of(hub):
        queue = hub_approvals("mcp", starts=False)
        for word in ("in-standing", "in-answered", "in-approvals"):
            text = attack(word)
            given = {"server": text, "tool": text, "who": text, "client": text, "session": text, "message": text}
            with pytest.raises(NeedsApproval):
                await queue.ask(arguments={text: text, "command": text, "url": text}, **given)


async def answer(page: Page) -> None:
    """The first for good, the second denied; both by the page's own tool, as its buttons do."""
    await page.evaluate(
        """async (draft) => {
            const main = await import(document.querySelector("script[type=module]").src);
            const { live } = main.$["lib/live.js"];
            const { value } = await live.call("dari_approvals_list");
            const [first, second] = value.waiting.map((one) => one.id);
            await live.call("dari_approvals_answer", { id: first, decision: "always", rule: draft });
            await live.call("dari_approvals_answer", { id: second, decision: "deny", note: "no" });
        }""",
        {"who": {"kind": "any"}},
    )


async def send_raw(address: str, head: str) -> None:
    """A request as no library would send it."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{head}Host: a\r\nConnection: close\r\n\r\n".encode())
    assert await reader.read()
    writer.close()
    await writer.wait_closed()


@asynccontextmanager
async def planted(hub: ConsoleHub) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(origin())
        user = await stack.enter_async_context(proxy_user(hub))
        agent = await stack.enter_async_context(hub.agent(f"in-clients{ATTACK}"[:60]))
        pane = str((await agent.call("crux_create_pane", name=f"in-panes{MARKUP}"))["id"])
        assert pane == "1"
        await agent.call("crux_execute_command", command=f"echo '{attack('in-blocks')}'", pane_id=pane)
        await agent.call("crux_execute_command", command=f"printf '\\033]0;{ATTACK}\\007'", pane_id=pane)
        await user.add("map_local", f"/{attack('in-rules')}", text=ATTACK, content_type=MARKUP)
        await user.get(site.url("/in-flows"), params={"q": ATTACK}, headers={b"x-a": ATTACK.encode()})
        address = (await agent.call("crab_proxy_info"))["address"]
        await send_raw(address, f"GET {site.url('/in-flows')}/{NAME.replace(' ', '/')} HTTP/1.1\r\nX-A: {ATTACK}\r\n")
        await user.add("breakpoint", site.url("/in-breakpoints"))
        held = asyncio.ensure_future(user.http.get(site.url("/in-breakpoints"), params={"q": ATTACK}))
        stack.callback(held.cancel)
        yield


async def show(page: Page, name: str) -> None:
    """What a person does before the list is full."""
    if name == "a server's tools":
        button = page.get_by_role("button", name="Start it and list its tools")
        await expect(button.or_(page.locator(".server-tool").first)).to_be_visible()
        if await button.count():
            await button.click()
    if name == "one passage":
        await page.get_by_role("article").get_by_role("link").first.click()
        await expect(page.locator("li[data-state='passage']").first).to_be_visible()
    if name == "documents":
        await page.get_by_role("button", name="Index what changed").click()
        await expect(page.get_by_role("status")).to_contain_text("1 new")


async def test_hostile_text_in_every_list_is_text(person: Person, hub: ConsoleHub) -> None:
    await plant_servers(hub)
    plant_documents(hub)
    async with planted(hub):
        await plant_approvals(hub)
        page = await person.open("/approvals")
        await answer(page)
        wrong: dict[str, list[str]] = {}
        for name, (path, word) in LISTS.items():
            if name == "tokens":
                secret = {"name": f"in-tokens{NAME}", "secret": "x" * 40, "scopes": ["read"], "created_unix": 0}
                (hub.dari_home / "tokens.json").write_text(json.dumps({"tokens": [secret]}))
                (hub.dari_home / "tokens.json").chmod(0o600)
            await person.go(page, path)
            await show(page, name)
            try:
                await expect(page.locator("body").get_by_text(re.compile(re.escape(word))).first).to_be_attached()
            except AssertionError:
                wrong[name] = [f"{path} does not show {word}: {(await page.locator('main').inner_text())[:600]!r}"]
                continue
            if found := await page.evaluate(SEARCH):
                wrong[name] = found
        assert not wrong, "\n".join(f"{name}: {line}" for name, lines in wrong.items() for line in lines)
