"""Tools: a person finds one, fills its form or its JSON, runs it, reads what comes back, and runs it again."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support import playground_server
from tests.support.console import PHONE, NewPerson, Person, axe_in_every_look, has_no_sideways_scroll, tab_to
from tests.support.console_hub import ConsoleHub, Json
from tests.support.playground_server import BIDI, BIG_ROWS, MARKUP

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]
SERVER = Path(playground_server.__file__)


def playground() -> Json:
    return {"command": sys.executable, "args": [str(SERVER)]}


@pytest.fixture(scope="module", autouse=True)
def servers(hub: ConsoleHub) -> Iterator[None]:
    hub.write_servers(play=playground())
    yield


# Runs the tool, and types beside it until the server asks.
TYPES_BESIDE_A_CALL = """() => new Promise((done) => {
    const press = () => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "x", bubbles: true}));
    const typing = setInterval(press, 50);
    new MutationObserver((_, watching) => {
        if (!document.querySelector(".card.ask")) return;
        watching.disconnect();
        clearInterval(typing);
        done();
    }).observe(document.body, {childList: true, subtree: true});
    [...document.querySelectorAll(".tool-run .btn")].find((one) => one.textContent === "Run").click();
    press();
})"""

# Clicks the second "Run again", and once more when the list has moved down under the pointer; the state after it.
RUNS_AGAIN_TWICE = """() => new Promise((done) => {
    const second = () => document.querySelectorAll(".call")[1].lastElementChild;
    new MutationObserver((_, watching) => {
        watching.disconnect();
        second().click();
        done(document.querySelector(".tool-run").dataset.state);
    }).observe(document.querySelector(".tools-history").parentElement, {childList: true});
    second().click();
})"""


async def open_tool(person: Person, name: str, query: str = "") -> Page:
    page = await person.open(f"/tools/play__{name}{query}")
    await expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    return page


def json_box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="JSON", exact=True)


async def json_of(page: Page) -> Json:
    return dict(json.loads(await json_box(page).input_value()))


async def run(page: Page, state: str = "ok") -> Locator:
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.locator(".tool-run")).to_have_attribute("data-state", state)
    return page.get_by_role("region", name="Result")


async def test_tools_are_listed_by_part_and_server_and_filtered_while_typing(person: Person) -> None:
    page = await person.open("/tools")
    listed = page.get_by_role("navigation", name="Tools by server")
    await expect(listed.get_by_role("button", name=re.compile("^play"))).to_be_visible()
    await expect(listed.get_by_role("button", name=re.compile("^Terminals"))).to_be_visible()
    await page.keyboard.press("/")
    await page.keyboard.type("rich")
    await expect(listed.get_by_role("link")).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="rich", exact=True)).to_be_visible()
    assert urlsplit(page.url).path == "/tools/play__rich"
    await page.get_by_role("searchbox", name="Filter tools").fill("ㅌㅁㄴㅇㅅ")
    await expect(listed.get_by_role("link")).to_have_count(1)
    await page.get_by_role("searchbox", name="Filter tools").fill("no such thing")
    await expect(listed).to_contain_text("No tool fits")


async def test_form_and_json_follow_each_other(person: Person) -> None:
    page = await open_tool(person, "rich")
    await page.get_by_label(re.compile("^name")).fill("다리")
    await page.get_by_label(re.compile("^size")).select_option("large")
    await page.get_by_role("button", name="Add tags").click()
    await page.get_by_role("button", name="Add item").first.click()
    await page.get_by_label(re.compile(r"^\[0\]")).fill("one")
    value = await json_of(page)
    assert (value["name"], value["size"], value["tags"]) == ("다리", "large", ["one"])
    assert value["shape"] == {"kind": "circle"}
    await page.get_by_label(re.compile("^Kind of shape")).select_option("square")
    assert (await json_of(page))["shape"] == {"kind": "square"}
    changed = {"name": "Ada", "count": 5, "note": None, "labels": {"a": "b"}, "shape": {"kind": "circle", "r": 2}}
    await json_box(page).fill(json.dumps(changed))
    await expect(page.get_by_label(re.compile("^name"))).to_have_value("Ada")
    await expect(page.get_by_label(re.compile("^count"))).to_have_value("5")
    await expect(page.get_by_role("checkbox", name="null")).to_be_checked()
    await expect(page.get_by_label("Name", exact=True)).to_have_value("a")
    await expect(page.get_by_label(re.compile("^Kind of shape"))).to_have_value("0")


async def test_broken_json_stays_as_typed_says_where_and_is_not_sent(person: Person) -> None:
    page = await open_tool(person, "rich")
    await json_box(page).fill('{\n  "name": "Ada",\n  "count": tru\n}')
    await expect(page.get_by_text(re.compile("^Line 3, column 1"))).to_be_visible()
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.locator(".tool-run")).to_have_attribute("data-state", "idle")
    assert "tru\n" in await json_box(page).input_value()


async def test_what_is_missing_or_wrong_is_named_at_its_field(person: Person) -> None:
    page = await open_tool(person, "rich")
    await expect(page.get_by_text("is required")).to_have_count(0)
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.get_by_label(re.compile("^name"))).to_have_attribute("aria-invalid", "true")
    await expect(page.locator("[data-path='shape.r']").get_by_text("is required")).to_be_visible()
    count = page.get_by_label(re.compile("^count"))
    await count.fill("12")
    await expect(page.locator("[data-path=count]")).to_contain_text("must be ≤ 9, got 12")
    await count.fill("four")
    await expect(page.locator("[data-path=count]")).to_contain_text('must be integer, got "four"')


async def test_a_call_is_run_with_the_keyboard_and_its_result_is_text_tree_and_message(person: Person) -> None:
    page = await open_tool(person, "rich")
    await page.get_by_label(re.compile("^name")).fill("Ada")
    await page.get_by_label(re.compile(r"^r\b")).fill("2.5")
    await page.keyboard.press("Control+Enter")
    result = page.get_by_role("region", name="Result")
    await expect(result).to_have_attribute("data-state", "ok")
    tree = result.get_by_role("tree")
    await expect(tree.get_by_role("treeitem").first).to_be_visible()
    await expect(tree).to_contain_text('name: "Ada"')
    await result.get_by_role("tab", name="Text").click()
    await expect(result.locator("pre")).to_contain_text('"name": "Ada"')
    await result.get_by_role("tab", name="Message").click()
    await expect(result.get_by_role("tree")).to_contain_text("structuredContent")
    assert parse_qs(urlsplit(page.url).query)["view"] == ["raw"]


async def test_a_list_of_objects_is_a_table(person: Person) -> None:
    page = await open_tool(person, "rows")
    result = await run(page)
    await result.get_by_role("tab", name="Table").click()
    await expect(result.get_by_role("columnheader")).to_have_text(["city", "n"])
    await expect(result.get_by_role("cell", name=MARKUP)).to_be_visible()


async def test_pictures_sounds_links_and_files_are_shown_and_a_false_type_is_not(person: Person) -> None:
    page = await open_tool(person, "media")
    result = await run(page)
    picture = result.get_by_role("img", name="image/png")
    await expect(picture).to_be_visible()
    assert await picture.evaluate("(each) => each.naturalWidth") == 1
    await expect(result.locator("audio")).to_have_count(1)
    await expect(result.get_by_role("button", name="Download text/html")).to_be_visible()
    await expect(result.get_by_text(MARKUP, exact=True)).to_be_visible()
    await result.get_by_role("link", name=re.compile("^link")).click()
    await expect(page.get_by_role("heading", name="counter")).to_be_visible()


async def test_a_result_that_breaks_its_schema_says_where(person: Person) -> None:
    page = await open_tool(person, "liar")
    result = await run(page)
    await expect(result.locator("[data-state=mismatch]")).to_contain_text('$.total must be integer, got "many"')
    page = await open_tool(person, "honest")
    await expect(await run(page)).to_contain_text("fits the output schema")


async def test_a_failure_of_a_tool_is_shown_as_one(person: Person) -> None:
    page = await open_tool(person, "fails")
    result = await run(page, "error")
    await expect(result).to_contain_text("it failed")


async def test_progress_is_shown_and_a_call_is_cancelled(person: Person) -> None:
    page = await open_tool(person, "slow")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("progressbar")).to_have_attribute("max", "100")
    await expect(page.get_by_text(re.compile(r"/ 100 · step"))).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator(".tool-run")).to_have_attribute("data-state", "cancelled")
    await expect(page.get_by_role("region", name="Calls")).to_contain_text("cancelled")


async def test_a_server_that_asks_is_answered_beside_the_call(person: Person) -> None:
    page = await open_tool(person, "asks")
    await page.get_by_role("button", name="Run", exact=True).click()
    question = page.get_by_role("group", name="play asks")
    await expect(question).to_contain_text(f"Who are you? {MARKUP}")
    await question.get_by_role("button", name="Send").click()
    await expect(question.get_by_label(re.compile("^name"))).to_have_attribute("aria-invalid", "true")
    await question.get_by_label(re.compile("^name")).fill("Ada")
    await page.keyboard.press("Enter")
    await expect(page.locator(".tool-run")).to_have_attribute("data-state", "ok")
    await expect(page.get_by_role("region", name="Result")).to_contain_text("accept")
    await expect(page.get_by_role("region", name="Result")).to_contain_text('"Ada"')
    await page.get_by_role("button", name="Run", exact=True).click()
    await question.get_by_role("button", name="Decline").click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("decline")


async def test_a_second_click_runs_no_other_call_again(person: Person) -> None:
    page = await open_tool(person, "nothing")
    calls = page.get_by_role("region", name="Calls").locator(".call")
    before = await calls.count()
    for done in (1, 2):
        await page.get_by_role("button", name="Run", exact=True).click()
        await expect(calls).to_have_count(before + done)
    await expect(calls.first.get_by_role("button", name="Run again")).to_be_enabled()
    assert await page.evaluate(RUNS_AGAIN_TWICE) == "ok"
    await expect(calls).to_have_count(before + 3)


async def test_a_question_does_not_take_what_a_person_types_elsewhere(person: Person) -> None:
    page = await open_tool(person, "asks")
    search = page.get_by_role("searchbox").first
    await search.focus()
    await page.evaluate(TYPES_BESIDE_A_CALL)
    question = page.get_by_role("group", name="play asks")
    await expect(question).to_be_visible()
    await expect(search).to_be_focused()
    await question.get_by_role("button", name="Decline").click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("decline")


async def test_a_server_that_wants_a_models_answer_gets_the_persons(person: Person) -> None:
    page = await open_tool(person, "asks_model")
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.get_by_role("textbox", name="Your answer").fill("Seoul")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text('"Seoul"')


async def test_an_address_that_a_server_wants_opened_is_shown_first(person: Person) -> None:
    page = await open_tool(person, "opens")
    await page.get_by_role("button", name="Run", exact=True).click()
    link = page.get_by_role("link", name="Open example.com")
    assert await link.get_attribute("rel") == "noopener noreferrer"
    await page.get_by_role("button", name="I did it").click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("accept")


async def test_calls_are_kept_without_secrets_pinned_filled_in_and_run_again(person: Person) -> None:
    page = await open_tool(person, "rich")
    given = {"name": "Ada", "count": 4, "apiKey": "s3cret-value", "shape": {"kind": "square"}}
    await json_box(page).fill(json.dumps(given))
    await run(page)
    calls = page.get_by_role("region", name="Calls")
    await expect(calls.get_by_role("listitem")).to_have_count(1)
    await expect(calls).not_to_contain_text("s3cret")
    await calls.get_by_role("button", name="Pin").click()
    await page.get_by_role("button", name="Reset").click()
    await expect(page.get_by_label(re.compile("^name"))).to_have_value("")
    assert (await json_of(page))["shape"] == {"kind": "circle"}
    await calls.get_by_role("button", name="Run again").click()
    await expect(calls.get_by_role("listitem")).to_have_count(2)
    await expect(page.get_by_label(re.compile("^count"))).to_have_value("4")
    assert "s3cret" not in page.url
    assert "s3cret" not in await page.evaluate("JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
    await calls.get_by_role("button", name="Clear").click()
    await expect(calls.get_by_role("listitem")).to_have_count(1)
    await page.get_by_role("status").get_by_role("button", name="Undo").click()
    await expect(calls.get_by_role("listitem")).to_have_count(2)


async def test_a_link_fills_the_form_warns_and_runs_nothing(person: Person) -> None:
    args = quote(json.dumps({"name": "Eve", "shape": {"kind": "square"}}))
    page = await open_tool(person, "rich", f"?args={args}")
    await expect(page.get_by_label(re.compile("^name"))).to_have_value("Eve")
    await expect(page.locator("[data-state=from-link]")).to_be_visible()
    await expect(page.locator(".tool-run")).to_have_attribute("data-state", "idle")
    await page.get_by_label(re.compile("^name")).fill("Ada")
    await expect(page).to_have_url(re.compile("Ada"))
    await page.reload()
    await expect(page.get_by_label(re.compile("^name"))).to_have_value("Ada")
    await expect(page.locator("[data-state=from-link]")).to_have_count(0)


async def test_a_call_is_copied_for_other_programs(person: Person, hub: ConsoleHub) -> None:
    await person.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await open_tool(person, "rich")
    await json_box(page).fill(json.dumps({"name": "it's", "count": 1, "shape": {"kind": "square"}}))
    copied = {}
    for kind in ("mcp", "curl", "python", "cli"):
        await page.get_by_label("Copy as …").select_option(kind)
        await expect(page.get_by_role("status").filter(has_text="Copied").first).to_be_visible()
        copied[kind] = await page.evaluate("navigator.clipboard.readText()")
    assert json.loads(copied["mcp"])["params"]["name"] == "play__rich"
    assert copied["curl"].startswith(f"curl -s {hub.url}") and "$DARI_TOKEN" in copied["curl"]
    assert hub.token not in "".join(copied.values())
    assert 'client.call_tool("play__rich", arguments)' in copied["python"]
    assert copied["cli"].startswith("dari remote call-tool rich --server play --params '{\"name\":\"it'\\''s\"")


async def test_annotations_are_badges_and_malformed_entries_a_warning(person: Person) -> None:
    page = await open_tool(person, "nothing")
    await expect(page.get_by_text("read-only", exact=True)).to_be_visible()
    await expect(page.get_by_text("This takes no arguments.")).to_be_visible()
    page = await open_tool(person, "remove_all")
    await expect(page.get_by_text("destructive", exact=True)).to_be_visible()
    await expect(page.get_by_text("open world", exact=True)).to_be_visible()
    bad = page.locator("[data-state=malformed]")
    await bad.locator("summary").click()
    await expect(bad).to_contain_text("'bare' needs an inputSchema")
    await expect(bad).to_contain_text("an item must be an object")


async def test_text_of_a_hostile_server_is_text(person: Person) -> None:
    page = await person.open("/tools?q=evil")
    listed = page.get_by_role("navigation", name="Tools by server")
    await listed.get_by_role("link").first.click()
    await expect(page.locator(".tools-about")).to_contain_text(MARKUP)
    shown = await page.locator("main").inner_text()
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", shown)
    assert await page.locator("main img, main script, main [onerror]").count() == 0
    await run(page)
    assert BIDI not in await page.locator("main").inner_text()


@pytest.mark.parametrize("name", ["deep", "wide", "cyclic"])
async def test_a_schema_that_makes_no_form_is_filled_in_as_json(person: Person, name: str) -> None:
    page = await open_tool(person, name)
    if name != "cyclic":
        await expect(page.get_by_text("Write the arguments as JSON.")).to_be_visible()
    await json_box(page).fill("{}")
    await expect(await run(page)).to_contain_text(f"called {name}")


async def test_ten_megabytes_of_json_open_as_a_tree_and_are_searched(person: Person) -> None:
    page = await open_tool(person, "big")
    await page.get_by_role("button", name="Run", exact=True).click()
    result = page.get_by_role("region", name="Result")
    await expect(result).to_have_attribute("data-state", "ok")
    await result.get_by_role("tab", name="Tree").click()
    await expect(result.get_by_role("tree")).to_contain_text(f"{BIG_ROWS:,} items")
    await result.get_by_role("searchbox", name="Search in JSON").fill(f"row {BIG_ROWS - 1}")
    match = result.locator("[role=treeitem][data-state=match]")
    await expect(match).to_contain_text(f"row {BIG_ROWS - 1}")
    assert await result.locator("[role=treeitem]").count() < 500
    await result.get_by_role("tab", name="Table").click()
    await expect(result.get_by_role("row")).to_have_count(101)
    await result.get_by_role("tab", name="Text").click()
    assert len(await result.locator("pre").inner_text()) <= 20_000


async def test_a_tree_is_walked_with_arrow_keys(person: Person) -> None:
    page = await open_tool(person, "rows")
    result = await run(page)
    first = result.get_by_role("treeitem").first
    await first.focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowRight")
    await expect(page.locator(":focus")).to_contain_text("Seoul")
    await expect(result.locator(".json-path")).to_have_text("$.rows[0].city")
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("ArrowLeft")
    await expect(page.locator(":focus")).to_have_attribute("aria-expanded", "false")


async def test_a_tool_is_run_with_the_keyboard_alone(person: Person) -> None:
    page = await person.open("/tools")
    await page.keyboard.press("/")
    await page.keyboard.type("honest")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="honest")).to_be_visible()
    await tab_to(page, "button", "Run", exact=True)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("region", name="Result")).to_contain_text("fits the output schema")


async def test_a_tool_that_is_not_there_says_what_to_do(person: Person) -> None:
    page = await person.open("/tools/no_such_tool")
    await expect(page.get_by_role("heading", name="no_such_tool is not listed")).to_be_visible()


async def test_the_page_is_right_for_screen_readers_in_both_themes_and_languages(person: Person) -> None:
    page = await open_tool(person, "rich")
    await json_box(page).fill(json.dumps({"name": "A", "count": 1, "tags": ["a"], "shape": {"kind": "square"}}))
    await axe_in_every_look(page)


async def test_a_result_is_right_for_screen_readers_in_both_themes_and_languages(person: Person) -> None:
    page = await open_tool(person, "rows")
    await run(page)
    await axe_in_every_look(page)


async def test_the_page_fits_a_phone(new_person: NewPerson) -> None:
    person = await new_person(size=PHONE)
    page = await open_tool(person, "rich")
    await has_no_sideways_scroll(page)
    page = await open_tool(person, "rows")
    await run(page)
    await has_no_sideways_scroll(page)
