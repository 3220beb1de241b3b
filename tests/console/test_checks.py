"""What fails a test of the console by itself does so: each check is shown something that is wrong."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page

from tests.support.console import Person, axe, focus_is_visible, has_no_sideways_scroll, nameless_controls, tab_to
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
ADD = """(made) => {
    const el = Object.assign(document.createElement(made.tag), made);
    document.querySelector("main").prepend(el);
}"""


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("console.error('it broke')", "console: it broke"),
        ("setTimeout(() => { throw new Error('nobody catches this') })", "exception: .*nobody catches this"),
        ("fetch('http://127.0.0.1:9/').catch(() => null)", "CSP: connect-src"),
        (
            "setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<b>x</b>'))",
            "CSP: require-trusted-types-for",
        ),
        (
            "document.head.append(Object.assign(document.createElement('link'), {rel: 'stylesheet', href: 'data:,'}))",
            "CSP: style",
        ),
        ("fetch('/static/none.js')", "404"),
    ],
)
async def test_what_a_page_reports_is_seen(script: str, problem: str, person: Person, console_page: Page) -> None:
    person.problems.allow(".")
    await console_page.evaluate(f"() => {{ {script}; return null; }}")
    await until(lambda: any(re.search(problem, one) for one in person.problems.seen), lambda: person.problems.seen)


async def test_axe_finds_what_is_wrong(console_page: Page) -> None:
    await axe(console_page)
    await console_page.evaluate(ADD, {"tag": "img", "src": "/static/icon.svg"})
    with pytest.raises(pytest.fail.Exception, match="image-alt"):
        await axe(console_page)


async def test_a_page_that_is_too_wide_is_found(console_page: Page) -> None:
    await has_no_sideways_scroll(console_page)
    await console_page.evaluate(ADD, {"tag": "pre", "textContent": "wide"})
    await console_page.evaluate("() => { document.querySelector('main pre').style.width = '3000px' }")
    with pytest.raises(AssertionError, match="pre"):
        await has_no_sideways_scroll(console_page)


async def test_a_control_without_a_name_is_found(console_page: Page) -> None:
    assert await nameless_controls(console_page) == []
    await console_page.evaluate(ADD, {"tag": "button"})
    assert await nameless_controls(console_page) == ["- button"]


async def test_a_focus_that_cannot_be_seen_is_found(console_page: Page) -> None:
    await console_page.evaluate(ADD, {"tag": "button", "textContent": "Plain"})
    await tab_to(console_page, "button", "Plain")
    await console_page.evaluate("() => { document.activeElement.style.outline = 'none' }")
    with pytest.raises(AssertionError, match="cannot be seen"):
        await focus_is_visible(console_page)
