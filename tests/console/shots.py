"""Screenshots of every page in both themes and languages, from demonstration data: `./dev console-shots`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from playwright.async_api import Page

from tests.support.console import PAGES, PHONE, Person, chromium, looks, person_at
from tests.support.console_demo import demonstration
from tests.support.console_hub import ConsoleHub, new_home
from tests.support.wire import ROOT

FLOW = ".flow-row:has-text('/api/checkout')"
# Beside the pages themselves: what a person sees after one or two clicks. Behind the address: what is clicked.
DETAILS = {
    "traffic-flow": f"/traffic {FLOW}",
    "traffic-rules": "/traffic/rules",
    "terminals-pane": "/terminals/1",
    "terminals-split": "/terminals/1,2",
    "servers-detail": "/servers/tickets",
    "servers-form": "/servers?add=form",
    "tools-form": "/tools/tickets__search_tickets",
    "knowledge-search": "/knowledge?q=backups+kept",
    "knowledge-documents": "/knowledge/documents",
    "knowledge-health": "/knowledge/health",
    "audit-activity": "/audit/activity",
    "audit-record": "/audit/5",
    "settings-appearance": "/settings/appearance",
}
FOLDER = ROOT / ".dev" / "console-shots"
README_FOLDER = ROOT / "docs" / "images"
README_SHOTS = {"console-traffic.png": f"/traffic {FLOW}", "console-terminals.png": "/terminals/1?commands=1"}
README_SIZE = (1280, 720)
DETAIL_LOOKS = (("dark", "en"), ("light", "ko"))
SETTLE_MS = 1500


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev console-shots", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="default .dev/console-shots")
    parser.add_argument("--only", default="", metavar="PAGE,…", help="some of: home, servers, tools, …")
    parser.add_argument("--readme", action="store_true", help="make the pictures of README.md instead, in docs/images")
    given = parser.parse_args()
    with new_home() as home:
        asyncio.run(_shoot(ConsoleHub(home), given))
    return 0


async def _shoot(hub: ConsoleHub, given: argparse.Namespace) -> None:
    try:
        async with demonstration(hub), chromium() as browser:
            if given.readme:
                async with person_at(browser, hub, size=README_SIZE, theme="dark") as person:
                    await _shoot_readme(person)
                return
            names = [name for name in given.only.split(",") if name]
            pages = {_name(path): path for path in PAGES}
            shots = {name: path for name, path in {**pages, **DETAILS}.items() if not names or _stem(name) in names}
            given.folder.mkdir(parents=True, exist_ok=True)
            async with person_at(browser, hub) as person:
                await _shoot_pages(person, shots, given.folder)
            async with person_at(browser, hub, size=PHONE) as person:
                await _shoot_phone(person, shots, given.folder)
    finally:
        await hub.stop()
    print(f"screenshots are in {README_FOLDER if given.readme else given.folder}")


async def _shoot_pages(person: Person, shots: dict[str, str], folder: Path) -> None:
    for name, path in shots.items():
        page = await _open(person, path)
        async for theme, language in looks(page):
            if name not in DETAILS or (theme, language) in DETAIL_LOOKS:
                await page.screenshot(path=folder / f"{name}-{theme}-{language}.png")
        await page.close()
        _report(person, path)


async def _shoot_phone(person: Person, shots: dict[str, str], folder: Path) -> None:
    for name, path in shots.items():
        page = await _open(person, path)
        await page.screenshot(path=folder / f"{name}-phone.png")
        await page.close()
        _report(person, path)


async def _shoot_readme(person: Person) -> None:
    README_FOLDER.mkdir(parents=True, exist_ok=True)
    for name, path in README_SHOTS.items():
        page = await _open(person, path)
        file = README_FOLDER / name
        file.write_bytes(_shrink(await page.screenshot()))
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")
        await page.close()


async def _open(person: Person, place: str) -> Page:
    path, _, click = place.partition(" ")
    page = await person.open(path)
    if click:
        await page.locator(click).first.click()
    await page.wait_for_timeout(SETTLE_MS)
    return page


def _shrink(picture: bytes) -> bytes:
    """To 200 colours: a screenshot of text has few, and a README is loaded by everybody."""
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(
        200, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    ).save(out, "PNG", optimize=True)
    return out.getvalue()


def _name(path: str) -> str:
    return path.strip("/") or "home"


def _stem(name: str) -> str:
    return name.partition("-")[0]


def _report(person: Person, path: str) -> None:
    for problem in person.problems.left():
        print(f"{path}: {problem}", file=sys.stderr)
    person.problems.seen.clear()


if __name__ == "__main__":
    raise SystemExit(main())
