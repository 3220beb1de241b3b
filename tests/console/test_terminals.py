"""The Terminals page in a real browser, over a real cruxd: agents and people in the same panes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, WebSocketRoute, expect

from dari.daemon.lock import lock_holder
from dari.errors import Unavailable
from dari.terminal.daemon import cruxd_client
from dari.terminal.paths import CruxPaths
from dari.terminal.service import remote_service
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
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]


def pane(page: Page, pane_id: str) -> Locator:
    return page.locator(f'article.pane[data-pane="{pane_id}"]')


def screen(page: Page, pane_id: str) -> Locator:
    return pane(page, pane_id).locator(".term-screen")


@pytest.fixture(autouse=True)
def no_pane_is_open(browser_loop: asyncio.AbstractEventLoop, hub: ConsoleHub) -> None:
    """A pane that is opened beside others halves one of them. A person closes also what a person has taken over."""

    async def close_all() -> None:
        place = CruxPaths(hub.dari_home / "crux" / "mcp.sock")
        async with cruxd_client(place, "app", starts=False) as client:
            with suppress(Unavailable):
                for each in (await remote_service(client).panes.list_panes()).panes:
                    await remote_service(client).panes.close_pane(each.id)

    browser_loop.run_until_complete(close_all())


async def new_pane(agent: Agent, **more: str) -> str:
    return str((await agent.call("crux_create_pane", **more))["id"])


async def open_pane(person: Person, pane_id: str, query: str = "") -> Page:
    page = await person.open(f"/terminals/{pane_id}{query}")
    await expect(pane(page, pane_id)).to_have_attribute("data-state", re.compile("live|past"))
    return page


async def take_over(page: Page, pane_id: str) -> None:
    """What is typed right after the click is not lost."""
    await pane(page, pane_id).get_by_role("button", name=re.compile("Take over|Type too")).click()


async def test_an_agents_pane_is_listed_and_its_screen_is_live(person: Person, agent: Agent) -> None:
    page = await person.open("/terminals")
    pane_id = await new_pane(agent, name="build")
    await page.get_by_role("link", name=f"{pane_id} · build").click()
    await agent.call("crux_execute_command", command="printf '\\033[31mred\\033[0m 한글 end\\n'", pane_id=pane_id)
    await expect(screen(page, pane_id)).to_contain_text("red 한글 end")
    await expect(screen(page, pane_id).locator(".f1", has_text="red").last).to_be_visible()
    wide = screen(page, pane_id).locator(".box", has_text="한").last
    cell = await screen(page, pane_id).evaluate("e => parseFloat(getComputedStyle(e).fontSize)")
    box = await wide.bounding_box()
    assert box is not None
    assert 0.9 * cell < box["width"] < 1.6 * cell, "two columns"
    await expect(pane(page, pane_id)).to_contain_text("typed by agent test-agent")


async def test_commands_show_exit_code_time_and_who_and_lead_to_failures(person: Person, agent: Agent) -> None:
    pane_id = await new_pane(agent)
    await agent.call("crux_execute_command", command="false", pane_id=pane_id)
    await agent.call("crux_execute_command", command="seq 1 300", pane_id=pane_id)
    page = await open_pane(person, pane_id)
    await page.keyboard.press("c")
    await expect(page).to_have_url(re.compile("commands=1"))
    blocks = pane(page, pane_id).locator(".block")
    await expect(blocks).to_have_count(2)
    await expect(blocks.nth(0)).to_have_attribute("data-state", "ok")
    await expect(blocks.nth(1)).to_have_attribute("data-state", "failed")
    await expect(blocks.nth(1)).to_contain_text("agent test-agent")
    await expect(blocks.nth(0)).to_contain_text(re.compile(r"\d [mµ]?s"))
    await pane(page, pane_id).get_by_role("button", name="Previous failure").click()
    hit = pane(page, pane_id).locator(".term-past .hit")
    await expect(hit).to_contain_text("false")
    await pane(page, pane_id).get_by_role("button", name="Follow").click()
    await expect(pane(page, pane_id).locator(".term")).to_have_attribute("data-state", "live")


async def test_a_screen_that_is_higher_than_its_place_shows_the_cursor(person: Person, agent: Agent) -> None:
    pane_id = await new_pane(agent)
    page = await person.open(f"/terminals/{pane_id}")
    await page.set_viewport_size({"width": 1280, "height": 420})
    await agent.call("crux_execute_command", command="seq 1 200; echo the-end", pane_id=pane_id)
    await expect(screen(page, pane_id).locator(".term-row", has_text=re.compile("^the-end$"))).to_be_in_viewport()


async def test_a_command_is_copied_and_run_again(person: Person, agent: Agent) -> None:
    await person.context.grant_permissions(["clipboard-read", "clipboard-write"])
    pane_id = await new_pane(agent)
    await agent.call("crux_execute_command", command="echo once-$((40+2))", pane_id=pane_id)
    page = await open_pane(person, pane_id, "?commands=1")
    block = pane(page, pane_id).locator(".block").first
    await block.get_by_role("button", name="Copy the output").click()
    await expect(page.get_by_text("Copied").first).to_be_visible()
    assert (await page.evaluate("navigator.clipboard.readText()")).strip() == "once-42"
    await block.get_by_role("button", name="Run again").click()
    await page.get_by_role("dialog").get_by_role("button", name="Run again").click()
    await expect(pane(page, pane_id).locator(".block")).to_have_count(2)
    await expect(pane(page, pane_id).locator(".block").first).to_contain_text("at the console")


async def test_a_command_that_is_not_shown_whole_is_neither_copied_nor_run_again(
    person: Person, new_person: NewPerson, agent: Agent
) -> None:
    pane_id = await new_pane(agent)
    for command in ("echo short", f"echo {'x' * 2000}", "echo hid\u200bden"):
        await agent.call("crux_execute_command", command=command, pane_id=pane_id)
    page = await open_pane(person, pane_id, "?commands=1")
    blocks = pane(page, pane_id).locator(".block")
    await expect(blocks).to_have_count(3)
    for name in ("Copy the command", "Run again"):
        for at, count in ((0, 0), (1, 0), (2, 1)):
            await expect(blocks.nth(at).get_by_role("button", name=name)).to_have_count(count)
    for at in (0, 1):
        await expect(blocks.nth(at)).to_contain_text("cannot be copied or run again")
        await expect(blocks.nth(at).get_by_role("button", name="Copy the output")).to_be_visible()
    await expect(blocks.nth(2)).not_to_contain_text("cannot be copied")
    korean = await open_pane(await new_person(language="ko"), pane_id, "?commands=1")
    await expect(pane(korean, pane_id).locator(".block").first).to_contain_text("다시 실행할 수 없습니다")


async def test_a_person_takes_over_types_and_hands_back(person: Person, agent: Agent) -> None:
    pane_id = await new_pane(agent)
    page = await open_pane(person, pane_id, "?commands=1")
    await page.keyboard.type("xyzzy")
    await take_over(page, pane_id)
    await page.keyboard.type("echo by''hand")
    await page.keyboard.press("Enter")
    await expect(screen(page, pane_id)).to_contain_text("byhand")
    await expect(screen(page, pane_id)).not_to_contain_text("xyzzy")
    await expect(pane(page, pane_id).locator(".block").first).to_contain_text("at the console")
    error = await agent.fails("crux_execute_command", command="echo no", pane_id=pane_id)
    assert error["name"] == "conflict"
    assert "handed back" in error["hint"]
    await page.keyboard.press("Control+Shift+Enter")
    await expect(pane(page, pane_id)).to_have_attribute("data-held", "no")
    assert (await agent.call("crux_execute_command", command="echo yes", pane_id=pane_id))["exit_code"] == 0
    await expect(screen(page, pane_id)).to_contain_text("yes")


async def test_two_browsers_and_an_agent_share_a_pane(person: Person, new_person: NewPerson, agent: Agent) -> None:
    pane_id = await new_pane(agent)
    first = await open_pane(person, pane_id)
    second = await open_pane(await new_person(language="ko", theme="dark"), pane_id)
    await take_over(first, pane_id)
    await expect(pane(second, pane_id)).to_have_attribute("data-held", "yes")
    await first.keyboard.type("echo one")
    await expect(screen(second, pane_id)).to_contain_text("echo one")
    await pane(second, pane_id).get_by_role("button", name="함께 입력").click()
    await expect(pane(second, pane_id).locator(".term")).to_have_attribute("data-typing", "on")
    await second.keyboard.type("-two")
    await expect(screen(first, pane_id)).to_contain_text("echo one-two")
    await first.keyboard.press("Enter")
    for page in (first, second):
        await expect(screen(page, pane_id).locator(".term-row", has_text=re.compile("^one-two$"))).to_be_visible()
    await second.keyboard.press("Control+Shift+Enter")
    await expect(pane(first, pane_id).locator(".term")).to_have_attribute("data-typing", "off")
    await agent.call("crux_execute_command", command="echo back-to-the-agent", pane_id=pane_id)
    await expect(screen(first, pane_id)).to_contain_text("back-to-the-agent")


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
async def test_vim_is_used_with_its_own_keys(person: Person, agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    pane_id = await new_pane(agent)
    page = await open_pane(person, pane_id)
    await take_over(page, pane_id)
    await page.keyboard.type(f"vim --clean {path}\n")
    await expect(screen(page, pane_id)).to_contain_text("~")
    await page.keyboard.type("ifirst\nsecond 둘")
    await expect(screen(page, pane_id)).to_contain_text("second 둘")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Escape")
    await page.keyboard.type("A line")
    await page.keyboard.press("Escape")
    await expect(screen(page, pane_id)).to_contain_text("first line")
    await page.keyboard.type(":wq\n")
    await until(path.exists)
    await expect(screen(page, pane_id)).not_to_contain_text("~")
    assert path.read_text() == "first line\nsecond 둘\n"


async def test_a_click_reaches_a_program_that_uses_the_mouse_and_a_pane_is_fitted_to_the_window(
    person: Person, agent: Agent, hub: ConsoleHub
) -> None:
    script = hub.home / "mouse.sh"
    script.write_text("stty raw -echo; printf '\\033[?1000h\\033[?1006hready'; head -c 6 | od -An -c; stty sane\n")
    pane_id = await new_pane(agent)
    page = await open_pane(person, pane_id)
    before = (await agent.call("crux_get_pane_state", pane_id=pane_id))["cols"]
    await pane(page, pane_id).get_by_role("button", name="Fit to the window").click()
    await expect(screen(page, pane_id)).to_be_visible()
    await take_over(page, pane_id)
    await page.keyboard.type(f"sh {script}\n")
    await expect(screen(page, pane_id)).to_contain_text("ready")
    await screen(page, pane_id).click(position={"x": 40, "y": 10})
    await expect(screen(page, pane_id)).to_contain_text(re.compile(r"033\s+\[\s+<\s+0\s+;"))
    assert (await agent.call("crux_get_pane_state", pane_id=pane_id))["cols"] < before


async def test_a_program_gets_the_release_of_a_button_that_comes_before_the_press_is_answered(
    person: Person, agent: Agent, hub: ConsoleHub
) -> None:
    script = hub.home / "clicks.sh"
    ready = "stty raw -echo; printf '\\033[?1000h\\033[?1006hready'"
    script.write_text(f"{ready}; head -c 18 | tr '\\033' E; stty sane\n")
    pane_id = await new_pane(agent)
    page = await open_pane(person, pane_id)
    await take_over(page, pane_id)
    await page.keyboard.type(f"sh {script}\n")
    await expect(screen(page, pane_id)).to_contain_text("ready")
    await screen(page, pane_id).evaluate(
        """e => {
            const { left, top } = e.getBoundingClientRect();
            const place = { clientX: left + 1, clientY: top + 1, bubbles: true };
            for (const type of ["mousedown", "mouseup"]) e.dispatchEvent(new MouseEvent(type, place));
        }"""
    )
    await expect(screen(page, pane_id)).to_contain_text("readyE[<0;1;1ME[<0;1;1m")


async def test_a_frame_from_before_the_take_over_does_not_take_the_keys_away(person: Person, agent: Agent) -> None:
    held_back: list[str] = []
    is_holding = False

    def between(route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            nonlocal is_holding
            text = message if isinstance(message, str) else message.decode()
            if is_holding and '"topics/event"' in text and '"pane:' in text:
                held_back.append(text)
                return
            route.send(text)
            if is_holding and '"times_taken":1' in text:  # the answer; now what was on its way before it
                is_holding = False
                for each in held_back:
                    route.send(each)

        server.on_message(pass_on)

    await person.context.route_web_socket(re.compile("."), between)
    pane_id = await new_pane(agent)
    page = await open_pane(person, pane_id)
    is_holding = True
    await agent.call("crux_resize_pane", pane_id=pane_id, cols=60, rows=20)
    await until(lambda: any('"holder":null' in each for each in held_back))
    await take_over(page, pane_id)
    await until(lambda: not is_holding)
    await expect(pane(page, pane_id)).to_have_attribute("data-held", "yes")
    await page.keyboard.type("echo still-$((40+2))\n")
    await expect(screen(page, pane_id)).to_contain_text("still-42")
    await expect(pane(page, pane_id).locator(".term")).to_have_attribute("data-typing", "on")


async def test_a_paste_and_an_input_method_reach_the_program(person: Person, agent: Agent) -> None:
    pane_id = await new_pane(agent)
    page = await open_pane(person, pane_id)
    await take_over(page, pane_id)
    cdp = await page.context.new_cdp_session(page)
    await page.keyboard.type("echo ")
    await cdp.send("Input.imeSetComposition", {"text": "하", "selectionStart": 1, "selectionEnd": 1})
    await cdp.send("Input.imeSetComposition", {"text": "한", "selectionStart": 1, "selectionEnd": 1})
    await cdp.send("Input.insertText", {"text": "한"})
    await expect(screen(page, pane_id)).to_contain_text("echo 한")
    await expect(screen(page, pane_id)).not_to_contain_text("하")
    await (
        pane(page, pane_id)
        .locator("textarea")
        .evaluate(
            """e => {
            const data = new DataTransfer();
            data.setData("text/plain", " pasted\\necho second");
            e.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
        }"""
        )
    )
    await expect(screen(page, pane_id)).to_contain_text("echo second")
    await expect(screen(page, pane_id).locator(".term-row", has_text=re.compile("^second$"))).to_have_count(0)


HOSTILE = r"""printf '%s\n' '<img src=x onerror=alert(1)><script>alert(2)</script>'
printf '\033]0;<b>title\342\200\256evil</b>\007'
printf 'a\342\200\256b\342\200\213c\357\273\277d\n'
printf '\033]8;;javascript:alert(3)\033\\link\033]8;;\033\\\n'
printf '\033[38;2;1;2;3;48;5;999modd\033[0m\n'
for i in $(seq 1 3000); do printf '\033[?1049h\033[?1049l\033[31;1;4;7mx\033[0m'; done; echo
printf '\033[999;999H\033[2;2Hsurvived\n'
"""


async def test_hostile_output_is_only_text(person: Person, agent: Agent, hub: ConsoleHub) -> None:
    script = hub.home / "hostile.sh"
    script.write_text(HOSTILE)
    pane_id = await new_pane(agent)
    page = await open_pane(person, pane_id, "?commands=1")
    await agent.call("crux_execute_command", command=f"clear; sh {script}", pane_id=pane_id)
    await expect(screen(page, pane_id)).to_contain_text("survived")
    root = page.locator("main")
    await expect(root.locator("img, script, b, a[href^='javascript']")).to_have_count(0)
    shown = await root.inner_text()
    assert not re.search("[\u202a-\u202e\u200b\ufeff]", shown)
    await expect(pane(page, pane_id).get_by_role("heading").first).to_contain_text("<b>title")
    await axe(page, ignore=("color-contrast",))  # programs choose their colours


async def test_the_history_is_paged_and_searched_on_the_server(person: Person, agent: Agent) -> None:
    pane_id = await new_pane(agent)
    await agent.call("crux_execute_command", command="echo Needle-7; seq 1 2500", pane_id=pane_id)
    page = await open_pane(person, pane_id)
    card = pane(page, pane_id)
    await expect(screen(page, pane_id)).to_contain_text("2500")
    await page.keyboard.press("/")
    await page.keyboard.type("needle-7")
    await page.keyboard.press("Enter")
    await expect(card.locator(".pane-find")).to_have_attribute("data-hits", re.compile("[12]"))
    await expect(page).to_have_url(re.compile("find=needle-7"))
    await expect(card.locator(".term-past .hit")).to_contain_text("Needle-7")
    await card.locator(".pane-find").get_by_role("button", name="Close").click()
    await expect(card.locator(".term")).to_have_attribute("data-state", "live")
    await screen(page, pane_id).hover()
    await page.mouse.wheel(0, -600)
    await expect(card.locator(".term")).to_have_attribute("data-state", "past")
    await agent.call("crux_execute_command", command="echo while-looking-back", pane_id=pane_id)
    await expect(card.locator(".term-past")).not_to_contain_text("while-looking-back")
    scroll = card.locator(".term-scroll")
    before = await card.locator(".term-past .term-row").count()
    await scroll.evaluate("e => { e.scrollTop = 0; }")
    await until_more(card, before)
    await card.get_by_role("button", name="Follow").click()
    await expect(screen(page, pane_id)).to_contain_text("while-looking-back")


async def until_more(card: Locator, before: int) -> None:
    await expect(card.locator(".term-past .term-chunk")).not_to_have_count(1)
    assert await card.locator(".term-past .term-row").count() > before


async def test_the_live_screen_is_reached_again_after_the_pane_was_lost_while_looking_back(
    person: Person, agent: Agent
) -> None:
    sockets: list[WebSocketRoute] = []

    def between(route: WebSocketRoute) -> None:
        route.connect_to_server()
        sockets.append(route)

    await person.context.route_web_socket(re.compile("."), between)
    pane_id = await new_pane(agent)
    await agent.call("crux_execute_command", command="seq 1 300", pane_id=pane_id)
    page = await open_pane(person, pane_id)
    card = pane(page, pane_id)
    term = card.locator(".term")
    await card.get_by_role("button", name="Look back").click()
    await expect(term).to_have_attribute("data-state", "past")
    await term.evaluate(
        """e => new MutationObserver(() => {
            if (e.dataset.state === "lost") e.dataset.wasLost = "yes";
        }).observe(e, { attributeFilter: ["data-state"] })"""
    )
    error = {"name": "unavailable", "message": "the daemon does not answer"}
    params = {"topic": f"pane:{pane_id}", "error": error}
    sockets[-1].send(json.dumps({"jsonrpc": "2.0", "method": "topics/ended", "params": params}))
    await expect(term).to_have_attribute("data-was-lost", "yes")
    await expect(term).to_have_attribute("data-state", "past")  # the page asks again by itself
    await agent.call("crux_execute_command", command="echo after-the-loss", pane_id=pane_id)
    await card.get_by_role("button", name="Follow").click()
    await expect(term).to_have_attribute("data-state", "live")
    await expect(card.locator(".term-past")).to_be_hidden()
    await expect(screen(page, pane_id)).to_be_visible()
    await expect(screen(page, pane_id)).to_contain_text("after-the-loss")


async def test_panes_stand_beside_each_other_and_are_opened_and_closed(person: Person, agent: Agent) -> None:
    pane_id = await new_pane(agent, name="agents")
    page = await person.open(f"/terminals/{pane_id}")
    await pane(page, pane_id).get_by_role("button", name="New pane beside it").click()
    await expect(page.locator("article.pane")).to_have_count(2)
    new_id = await page.locator("article.pane").last.get_attribute("data-pane")
    assert new_id
    await expect(page).to_have_url(re.compile(f"/terminals/{pane_id},{new_id}"))
    await expect(pane(page, new_id).locator(".term")).to_have_attribute("data-typing", "on")
    await page.keyboard.type("echo m''ine\n")
    await expect(screen(page, new_id)).to_contain_text("mine")
    await page.reload()
    await expect(page.locator("article.pane")).to_have_count(2)
    await pane(page, new_id).get_by_role("button", name="Close pane").click()
    await page.get_by_role("dialog").get_by_role("button", name="Close pane").click()
    await expect(page.locator("article.pane")).to_have_count(1)
    panes = (await agent.call("crux_list_panes"))["panes"]
    assert new_id not in [each["id"] for each in panes]


async def test_a_tool_is_run_over_the_pane_and_its_result_typed_into_it(person: Person, agent: Agent) -> None:
    pane_id = await new_pane(agent)
    page = await open_pane(person, pane_id)
    await take_over(page, pane_id)
    await page.keyboard.type("echo got ")
    await expect(screen(page, pane_id)).to_contain_text("echo got")
    await page.keyboard.press("Control+Shift+M")
    await page.get_by_role("combobox").fill("dari_ping")
    await expect(page.get_by_role("dialog").get_by_role("option").first).to_contain_text("ping")
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.get_by_role("textbox", name="What will be typed").fill("pong-42")
    await page.get_by_role("checkbox", name="Press Enter after it").check()
    await page.get_by_role("button", name=re.compile("^Type into")).click()
    await expect(screen(page, pane_id).locator(".term-row", has_text=re.compile("^got pong-42$"))).to_be_visible()
    await expect(pane(page, pane_id).locator("textarea")).to_be_focused()


async def test_a_call_that_waits_for_a_person_is_shown_above_its_pane(person: Person, agent: Agent) -> None:
    pane_id = await new_pane(agent)
    page = await open_pane(person, pane_id)
    error = await agent.fails("crux_execute_command", command="rm -rf /srv/nothing-there", pane_id=pane_id)
    assert error["name"] == "needs_approval"
    note = pane(page, pane_id).get_by_role("alert")
    await expect(note).to_contain_text("rm -rf /srv/nothing-there")
    await expect(note).to_contain_text("test-agent waits for you")
    await expect(note.get_by_role("link", name="Review")).to_have_attribute("href", re.compile("^/approvals/"))


async def test_the_daemon_is_restarted_under_an_open_page(person: Person, agent: Agent, hub: ConsoleHub) -> None:
    pane_id = await new_pane(agent)
    page = await open_pane(person, pane_id)
    pid = lock_holder(hub.dari_home / "crux" / "daemon.pid")
    assert pid
    os.kill(pid, signal.SIGKILL)
    await expect(pane(page, pane_id)).to_have_attribute("data-state", re.compile("lost|over"))
    await expect(page.locator(".page-root")).to_have_attribute("data-state", "stopped")
    new_id = await new_pane(agent, name="after")
    await page.get_by_role("link", name=f"{new_id} · after").click()
    await agent.call("crux_execute_command", command="echo alive again", pane_id=new_id)
    await expect(screen(page, new_id)).to_contain_text("alive again")


async def test_all_panes_are_shown_side_by_side_when_none_was_chosen(person: Person, agent: Agent) -> None:
    ids = [await new_pane(agent, name=name) for name in ("one", "two")]
    page = await person.open("/terminals")
    await page.get_by_role("link", name="Show all side by side").click()
    for pane_id in ids:
        await expect(pane(page, pane_id)).to_be_visible()
    await expect(page).to_have_url(re.compile(f"/terminals/{','.join(ids)}$"))


async def test_everything_is_done_with_the_keyboard(person: Person, agent: Agent) -> None:
    await new_pane(agent)
    page = await person.open("/terminals")
    await page.keyboard.press("n")
    await expect(page.locator("article.pane .term")).to_have_attribute("data-typing", "on")
    await page.keyboard.type("echo from''keys\n")
    await expect(page.locator(".term-screen")).to_contain_text("fromkeys")
    await page.keyboard.press("Control+Shift+Enter")
    await expect(page.get_by_role("button", name="Take over")).to_be_focused()
    await tab_to(page, "button", "Search")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("searchbox")).to_be_focused()


async def test_the_page_is_read_by_screen_readers_and_fits_a_phone(
    person: Person, new_person: NewPerson, agent: Agent
) -> None:
    pane_id = await new_pane(agent)
    await agent.call("crux_execute_command", command="printf '\\033[1;32mgreen\\033[0m\\n'; false", pane_id=pane_id)
    page = await open_pane(person, pane_id, "?commands=1&find=green")
    await expect(pane(page, pane_id).locator(".block")).to_have_count(1)
    await axe_in_every_look(page)
    assert not await nameless_controls(page)
    phone = await open_pane(await new_person(size=PHONE), pane_id, "?commands=1")
    await has_no_sideways_scroll(phone)
    await axe(phone)
