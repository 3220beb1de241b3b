"""Approvals at the page, as a person uses it: two browsers and an agent at once, the keyboard alone, hostile calls."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from playwright.async_api import Page, expect

from dari.core.approval_service import ApprovalService
from dari.core.hub_client import hub_approvals
from dari.errors import DariError, NeedsApproval
from tests.support.console import (
    PHONE,
    NewPerson,
    Person,
    axe,
    axe_in_every_look,
    has_no_sideways_scroll,
    nameless_controls,
    set_language,
    tab_to,
)
from tests.support.console_hub import Agent, ConsoleHub, lab_server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]
HOSTILE = '<img src=x onerror="window.pwned=1"></script>\u202egnp.exe\u200b'

# Presses `a` twice, and once more in the very moment in which the next call is drawn.
IMPATIENT = """(next) => new Promise((done) => {
    const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "a", bubbles: true}));
    const detail = document.querySelector(".approval-detail");
    new MutationObserver((_, watching) => {
        if (!detail.textContent.includes(next)) return;
        watching.disconnect();
        press();
        done();
    }).observe(detail, {childList: true});
    press();
    press();
})"""

# Chooses another call and presses `a` in the same moment.
HASTY = """(id) => {
    document.querySelector(`.approval-item[data-id="${id}"]`).click();
    document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "a", bubbles: true}));
}"""

# What the browser sends while `a` is held down; whether that was an answer.
HELD_DOWN = """() => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "a", repeat: true, bubbles: true}));
    return document.querySelector("[data-decision=once]").disabled;
}"""

# Types a note; the call is denied elsewhere before its last letter. What is shown after that.
LOSES_ITS_NOTE = """async (id) => {
    const main = await import(document.querySelector("script[type=module]").src);
    const detail = document.querySelector(".approval-detail");
    const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    const gone = new Promise((done) => {
        new MutationObserver(() => detail.dataset.state === "denied" && done()).observe(detail, {attributes: true});
    });
    press("x");
    await main.$["lib/live.js"].live.call("dari_approvals_answer", {id, decision: "deny"});
    await gone;
    press("j");
    await new Promise((done) => setTimeout(done, 500));
    press("a");
    return detail.textContent;
}"""


@pytest.fixture(autouse=True)
def asked_tools(hub: ConsoleHub) -> None:
    """A server of whose tools two wait for a person."""
    hub.write_servers(lab={**lab_server(), "tools": {"confirm": ["add", "greet"]}})


@pytest.fixture
def queue(hub: ConsoleHub) -> Iterator[ApprovalService]:
    """The hub's queue as a daemon of ours asks it."""
    with patch.dict(os.environ, {"DARI_HOME": hub.environ["DARI_HOME"], "HOME": hub.environ["HOME"]}):
        yield hub_approvals("mcp", starts=False)


async def ask(queue: ApprovalService, command: str = "rm -rf dist", **more: Any) -> str:
    """Ask as the terminal's daemon does; the id."""
    given: dict[str, Any] = {"server": "crux", "tool": "command/execute", "who": "mcp:claude", "client": "claude"}
    given |= {
        "arguments": {"command": command, "pane_id": "%1"},
        "message": f"`{command}` needs a person's approval: rm",
    }
    try:
        await queue.ask(**{**given, **more})
    except NeedsApproval as need:
        return need.approval_id
    raise AssertionError("it was approved without a person")


async def begins_to_wait(agent: Agent, tool: str, **arguments: Any) -> None:
    """The agent calls and is told that a person has to agree."""
    error = await agent.fails(tool, **arguments)
    assert error["name"] == "needs_approval"


async def is_calm(page: Page) -> None:
    """A call that has just come into view takes its answer a moment later."""
    await expect(page.locator("[data-decision=once]")).to_be_enabled()


def item(page: Page, effect: str) -> Any:
    return page.locator(".approval-item", has_text=effect)


async def test_one_person_approves_and_the_other_sees_it(person: Person, new_person: NewPerson, agent: Agent) -> None:
    first, second = await person.open("/approvals"), await (await new_person()).open("/approvals")
    await expect(first.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    await begins_to_wait(agent, "lab__add", a=1, b=41)
    for page in (first, second):
        await expect(item(page, "lab/add")).to_be_visible()
        await expect(page.locator(".nav-link[data-page=approvals] .badge")).to_have_text("1")
    await first.get_by_role("button", name="Approve once").click()
    await expect(second.locator(".approval-detail[data-state=approved]")).to_be_visible()
    await expect(item(second, "lab/add")).to_have_count(0)
    assert "42" in str(await agent.call("lab__add", a=1, b=41))
    await second.get_by_role("tab", name="Answered").click()
    await expect(second.locator("tr[data-state=approved]").first).to_contain_text("(console)")


async def test_a_denial_by_keys_alone_brings_its_note_to_the_agent(person: Person, agent: Agent) -> None:
    page = await person.open("/approvals")
    await begins_to_wait(agent, "lab__greet")
    await expect(page.locator(".approval-detail[data-state=waiting]")).to_be_visible()
    await page.keyboard.press("d")
    await expect(page.get_by_role("textbox", name="Note that the agent reads")).to_be_focused()
    await page.keyboard.type("ask me on Monday")
    await page.keyboard.press("Enter")
    await expect(item(page, "lab/greet")).to_have_count(0)
    error = await agent.fails("lab__greet")
    assert error["name"] == "denied" and "ask me on Monday" in error["message"]


async def test_the_keyboard_alone_approves_a_call(person: Person, queue: ApprovalService) -> None:
    first, second = await ask(queue, "rm one"), await ask(queue, "rm two")
    page = await person.open("/approvals")
    await expect(item(page, "rm one")).to_have_attribute("aria-current", "true")
    await page.keyboard.press("j")
    await expect(page).to_have_url(re.compile(f"/approvals/{second}$"))
    await page.keyboard.press("k")
    await expect(page.locator(".approval-detail")).to_contain_text("rm one")
    button = await tab_to(page, "button", "Approve once")
    await button.press("Enter")
    await expect(page).to_have_url(re.compile(f"/approvals/{second}$"))
    await expect(page.locator(".approval-detail")).to_contain_text("rm two")
    await is_calm(page)
    await page.keyboard.press("a")
    await expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    for id in (first, second):
        assert (await queue.show(id)).state == "approved"


async def test_a_call_that_comes_into_view_does_not_take_an_answer_meant_for_another(
    person: Person, queue: ApprovalService
) -> None:
    first, second = await ask(queue, "rm three"), await ask(queue, "rm four")
    page = await person.open("/approvals")
    await is_calm(page)
    await page.evaluate(IMPATIENT, "rm four")
    await expect(page.locator(".approval-detail")).to_contain_text("rm four")
    await is_calm(page)
    assert (await queue.show(first)).state == "approved" and (await queue.show(second)).state == "waiting"
    await page.get_by_role("button", name="Deny").click()
    await expect(item(page, "rm four")).to_have_count(0)


async def test_a_key_that_is_pressed_while_another_call_is_looked_up_answers_neither(
    person: Person, queue: ApprovalService
) -> None:
    first, second = await ask(queue, "rm five"), await ask(queue, "rm six")
    page = await person.open(f"/approvals/{first}")
    await is_calm(page)
    await page.evaluate(HASTY, second)
    await expect(page.locator(".approval-detail[data-state=waiting]")).to_contain_text("rm six")
    await is_calm(page)
    assert [(await queue.show(id)).state for id in (first, second)] == ["waiting", "waiting"]
    for command in ("rm six", "rm five"):
        await expect(page.locator(".approval-detail[data-state=waiting]")).to_contain_text(command)
        await page.get_by_role("button", name="Deny").click()
        await expect(item(page, command)).to_have_count(0)


async def test_a_key_that_is_held_down_answers_once(person: Person, queue: ApprovalService) -> None:
    await ask(queue, "rm seven")
    page = await person.open("/approvals")
    await is_calm(page)
    assert await page.evaluate(HELD_DOWN) is False
    await page.get_by_role("button", name="Deny").click()
    await expect(item(page, "rm seven")).to_have_count(0)


async def test_the_rest_of_a_note_is_no_command_when_somebody_else_has_answered(
    person: Person, queue: ApprovalService
) -> None:
    first, second = await ask(queue, "rm eight"), await ask(queue, "rm nine")
    page = await person.open("/approvals")
    await is_calm(page)
    await page.keyboard.press("d")
    assert "rm eight" in await page.evaluate(LOSES_ITS_NOTE, first)
    assert (await queue.show(second)).state == "waiting"
    await page.keyboard.press("Escape")
    await page.keyboard.press("j")
    await expect(page.locator(".approval-detail[data-state=waiting]")).to_contain_text("rm nine")
    await page.get_by_role("button", name="Deny").click()
    await expect(item(page, "rm nine")).to_have_count(0)


async def test_always_shows_its_rule_writes_it_and_takes_it_back(person: Person, queue: ApprovalService) -> None:
    await ask(queue, "make test-unit")
    page = await person.open("/approvals")
    await is_calm(page)
    await page.keyboard.press("w")
    dialog = page.get_by_role("dialog")
    preview = dialog.locator(".rule-preview")
    await expect(preview).to_have_attribute("data-state", "ok")
    await dialog.get_by_label("command: how a later call must agree").select_option("like")
    await dialog.get_by_label("command: pattern").fill("make other-*")
    await expect(preview).to_have_attribute("data-state", "bad")
    await expect(dialog.get_by_role("button", name="Write the rule and approve")).to_be_disabled()
    await dialog.get_by_label("command: pattern").fill("make test-*")
    await dialog.get_by_label("pane_id: how a later call must agree").select_option("any")
    await expect(preview).to_contain_text("command like make test-*")
    await axe(page, "dialog")
    await dialog.get_by_role("button", name="Write the rule and approve").click()
    await expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    message = "`make test-all` needs a person's approval: rm"
    arguments = {"command": "make test-all", "pane_id": "%9"}
    call: dict[str, Any] = {"server": "crux", "tool": "command/execute", "who": "mcp:claude", "client": "claude"}
    approved = await queue.ask(**call, arguments=arguments, message=message)
    assert approved.state == "approved"
    await page.get_by_role("tab", name="Approved for good").click()
    rule = page.locator(".rule-list li")
    await expect(rule).to_contain_text("make test-*")
    await expect(rule).to_contain_text("used 1 times")
    await axe(page)
    await rule.get_by_role("button", name="Take back").click()
    await page.get_by_role("dialog").get_by_role("button", name="Take back").click()
    await expect(page.get_by_role("heading", name="Nothing is approved for good")).to_be_visible()
    assert await ask(queue, "make test-all", arguments=arguments, message=message)


async def test_a_session_is_approved_for_its_rest(person: Person, agent: Agent) -> None:
    page = await person.open("/approvals")
    await begins_to_wait(agent, "lab__add", a=1, b=1)
    await item(page, "lab/add").click()
    await page.get_by_role("button", name="This session").click()
    await expect(item(page, "lab/add")).to_have_count(0)
    assert "2" in str(await agent.call("lab__add", a=1, b=1))
    assert "4" in str(await agent.call("lab__add", a=2, b=2))
    await person.go(page, "/approvals/rules")
    await expect(page.locator(".rule-list li", has_text="lab/add")).to_be_visible()


async def test_a_call_that_nobody_answers_counts_down_and_expires(person: Person, queue: ApprovalService) -> None:
    page = await person.open("/approvals")
    id = await ask(queue, "rm soon", lifetime_s=20.0)
    await page.goto(f"{person.hub.origin}/approvals/{id}")
    left = page.locator(".approval-left[data-state=urgent]").first
    await expect(left).to_contain_text(re.compile(r"\d sec left"))
    await set_language(page, "ko")
    assert re.search(r"\d초", await left.inner_text()), "written anew at once, not with the next second"
    await set_language(page, "en")
    await expect(page.locator(".approval-detail[data-state=expired]")).to_be_visible(timeout=60_000)
    await expect(page.get_by_role("button", name="Approve once")).to_have_count(0)


async def test_an_id_that_is_gone_says_so_and_leads_back(person: Person) -> None:
    page = await person.open("/approvals/00000000")
    await expect(page.get_by_role("heading", name="no approval has the id")).to_be_visible()
    await page.get_by_role("link", name="To what waits").click()
    await expect(page).to_have_url(f"{person.hub.origin}/approvals")


async def test_hostile_calls_are_text_and_hide_nothing(person: Person, queue: ApprovalService) -> None:
    arguments = {
        "command": f"ls {HOSTILE}\nrm -rf ~",
        HOSTILE: [HOSTILE],
        "url": f"http://x/{HOSTILE}",
        "body": HOSTILE,
    }
    id = await ask(
        queue,
        arguments=arguments,
        message=HOSTILE,
        server=HOSTILE,
        tool=HOSTILE,
        who=HOSTILE,
        client=HOSTILE,
        session=HOSTILE,
    )
    page = await person.open(f"/approvals/{id}")
    detail = page.locator(".approval-detail[data-state=waiting]")
    await expect(detail.locator(".effect[data-kind=request]")).to_contain_text("\\u{202e}gnp.exe\\u{200b}")
    await expect(detail.locator(".effect[data-kind=command]")).to_contain_text("rm -rf ~")
    await expect(item(page, "\\u{202e}")).to_be_visible()
    assert await page.locator("main img, main script").count() == 0
    assert await page.evaluate("() => window.pwned") is None
    assert "\u202e" not in await page.locator("main").inner_text()
    await axe_in_every_look(page)
    await set_language(page, "en")
    await page.get_by_role("button", name="Always").click()
    await expect(page.locator(".rule-preview")).to_have_attribute("data-state", "ok")
    assert "\u202e" not in await page.get_by_role("dialog").inner_text()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Deny").click()
    await page.get_by_role("tab", name="Answered").click()
    await expect(page.locator("tr[data-state=denied]").first).to_contain_text("\\u{202e}")
    assert await page.evaluate("() => window.pwned") is None


async def test_a_large_call_is_shown_and_the_page_stays_usable(person: Person, queue: ApprovalService) -> None:
    id = await ask(queue, arguments={"path": "/a", "content": "line of text\n" * 400_000}, message="write a large text")
    page = await person.open(f"/approvals/{id}")
    await expect(page.locator(".approval-detail[data-state=waiting]")).to_contain_text("cut: it is longer")
    await is_calm(page)
    await page.keyboard.press("a")
    await expect(item(page, "write a large text")).to_have_count(0)


async def test_a_person_is_notified_once_they_have_asked_for_it(new_person: NewPerson, queue: ApprovalService) -> None:
    person = await new_person()
    await person.context.grant_permissions(["notifications"], origin=person.hub.origin)
    await person.context.add_init_script(
        "window.Notification = class { static permission = 'granted';"
        " static async requestPermission() { return 'granted'; }"
        " constructor(title, options) { (window.notes ??= []).push([title, options.body]); } };"
        "Object.defineProperty(document, 'visibilityState', {get: () => 'hidden'});"
    )
    page = await person.open("/")
    await person.go(page, "/approvals")
    id = await ask(queue, f"rm quiet{HOSTILE}")
    await expect(item(page, "rm quiet")).to_be_visible()
    title, body = (await page.evaluate("() => window.notes"))[0]
    assert title == "claude waits for your approval" and "\\u{202e}" in body
    await page.get_by_role("button", name="Notify me").click()
    await expect(page.get_by_role("button", name="Notify me")).to_have_attribute("aria-pressed", "false")
    with pytest.raises(DariError):  # an agent's token cannot answer what it asked
        await queue.approve(id)
    await item(page, "rm quiet").click()
    await is_calm(page)
    await page.keyboard.press("a")
    await expect(item(page, "rm quiet")).to_have_count(0)


async def test_an_agent_has_none_of_these_tools(agent: Agent, queue: ApprovalService) -> None:
    id = await ask(queue, "rm by myself")
    listed = [tool["name"] for tool in (await agent.ask("tools/list"))["result"]["tools"]]
    assert not [name for name in listed if name.startswith(("dari_approvals", "dari_audit", "dari_activity"))]
    for tool in ("dari_approvals_answer", "dari_approvals_forget", "dari_audit_search"):
        reply = await agent.ask("tools/call", name=tool, arguments={"id": id, "decision": "once"})
        assert "error" in reply or reply["result"]["isError"]
    assert (await queue.show(id)).state == "waiting"


async def test_rules_and_the_page_live_through_a_restart_of_the_hub(person: Person, queue: ApprovalService) -> None:
    person.problems.allow(r"ERR_CONNECTION_REFUSED|WebSocket")
    id = await ask(queue, "make again", message="")
    page = await person.open(f"/approvals/{id}")
    await is_calm(page)
    await page.keyboard.press("w")
    await page.get_by_role("dialog").get_by_role("button", name="Write the rule and approve").click()
    await expect(page.locator(f".approval-item[data-id='{id}']")).to_have_count(0)
    await person.go(page, "/approvals/rules")
    rule = page.locator(".rule-list li", has_text="make again")
    await expect(rule).to_be_visible()
    await person.hub.restart()
    await expect(page.locator("html")).to_have_attribute("data-live", "open")
    await person.go(page, "/approvals/rules")
    await expect(rule).to_contain_text("used 0 times")
    await rule.get_by_role("button", name="Take back").click()
    await page.get_by_role("dialog").get_by_role("button", name="Take back").click()
    await expect(rule).to_have_count(0)


async def test_approvals_fit_a_phone(new_person: NewPerson, queue: ApprovalService) -> None:
    id = await ask(queue, "rm -rf " + "/a/very/long/path/without/a/space" * 6)
    page = await (await new_person(size=PHONE, language="ko")).open(f"/approvals/{id}")
    await expect(page.locator(".approval-detail[data-state=waiting]")).to_be_visible()
    await has_no_sideways_scroll(page)
    for path in ("history", "rules"):
        await page.goto(f"{page.url.partition('/approvals')[0]}/approvals/{path}")
        await has_no_sideways_scroll(page)


@pytest.mark.parametrize("path", ["", "/history", "/rules"])
async def test_every_control_has_a_name_and_texts_switch(path: str, person: Person, queue: ApprovalService) -> None:
    await ask(queue, f"rm names{path}")
    page = await person.open(f"/approvals{path}")
    await expect(page.get_by_role("tab", selected=True)).to_be_visible()
    assert await nameless_controls(page) == []
    for language, title in (("ko", "승인"), ("en", "Approvals")):
        await set_language(page, language)  # type: ignore[arg-type]
        await expect(page.get_by_role("heading", level=1)).to_have_text(title)
    await expect(page.locator("main")).not_to_contain_text(re.compile("[가-힣]"))
