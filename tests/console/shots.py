"""Screenshots of every page in both themes and languages, from demonstration data: `./dev console-shots`."""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser, Page

from tests.console.shots_list import DETAILS, EMPTY, Scene, Stage
from tests.support.console import (
    LANGUAGES,
    PAGES,
    PHONE,
    THEMES,
    WIDE,
    Language,
    Person,
    Theme,
    chromium,
    person_at,
    set_language,
    set_theme,
)
from tests.support.console_demo import demonstration
from tests.support.console_hub import ConsoleHub, new_home
from tests.support.wire import ROOT

FOLDER = ROOT / ".dev" / "console-shots"
README_FOLDER = ROOT / "docs" / "images"
README_SHOTS = {"console-traffic.png": DETAILS["traffic-flow"], "console-terminals.png": DETAILS["terminals-commands"]}
README_SIZE = (1280, 720)
Look = tuple[Theme, Language]
EVERY_LOOK: tuple[Look, ...] = tuple((theme, language) for language in LANGUAGES for theme in THEMES)
# The other two are those of the phone: a sub-page is seen in every theme and language.
DETAIL_LOOKS: tuple[Look, ...] = (("dark", "en"), ("light", "ko"))
PHONE_LOOKS: tuple[Look, ...] = (("light", "en"), ("dark", "ko"))
SETTLE_MS = 1000
REDRAW_MS = 150
MAX_HEIGHT = 1700
COLUMN_HEIGHT = 1000
GAP = 12


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev console-shots", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="default .dev/console-shots")
    parser.add_argument("--only", default="", metavar="NAME,…", help="a page (traffic) or a picture (traffic-rules)")
    parser.add_argument("--readme", action="store_true", help="make the pictures of README.md instead, in docs/images")
    given = parser.parse_args()
    asyncio.run(_shoot(given))
    return 0


async def _shoot(given: argparse.Namespace) -> None:
    async with chromium() as browser:
        if given.readme:
            with new_home() as home:
                await _shoot_readme(browser, ConsoleHub(home))
            return
        given.folder.mkdir(parents=True, exist_ok=True)
        names = [name for name in given.only.split(",") if name]
        pages = {_name(path): Scene(path) for path in PAGES}
        for scenes, is_full in (({**pages, **DETAILS}, True), (EMPTY, False)):
            wanted = {name: scene for name, scene in scenes.items() if not names or _is_wanted(name, names)}
            if wanted:
                with new_home() as home:
                    await _shoot_scenes(browser, ConsoleHub(home), wanted, given.folder, is_full)
        if not names or "login" in names:
            await _shoot_login(browser, given.folder)
    print(f"{len(list(given.folder.glob('*.png')))} screenshots are in {given.folder}")


async def _shoot_scenes(
    browser: Browser, hub: ConsoleHub, scenes: dict[str, Scene], folder: Path, is_full: bool
) -> None:
    try:
        if not is_full:
            await hub.start()
            await _shoot_each(browser, hub, scenes, folder)
            return
        async with demonstration(hub):
            await _shoot_each(browser, hub, scenes, folder)
    finally:
        await hub.stop()


async def _shoot_each(browser: Browser, hub: ConsoleHub, scenes: dict[str, Scene], folder: Path) -> None:
    async with hub.agent("shots") as agent, person_at(browser, hub) as person:
        for name, scene in scenes.items():
            stage = Stage(await person.context.new_page(), hub, agent)
            try:
                await person.go(stage.page, scene.path)
                await set_language(stage.page, "en")  # the last scene's is remembered
                await _play(stage, scene)
                looks = DETAIL_LOOKS if name in DETAILS or name in EMPTY else EVERY_LOOK
                await _shoot_looks(stage.page, folder / name, looks)
            except Exception as error:  # the other pictures are wanted all the same
                print(f"{name}: {error}", file=sys.stderr)
            for task in stage.tasks:
                task.cancel()
            await stage.page.close()
            _report(person, name)


async def _play(stage: Stage, scene: Scene) -> None:
    if scene.step:
        await scene.step(stage)
    await stage.page.wait_for_timeout(SETTLE_MS)


async def _shoot_looks(page: Page, stem: Path, looks: tuple[Look, ...]) -> None:
    for look in looks:
        stem.with_name(f"{stem.name}-{look[0]}-{look[1]}.png").write_bytes(await _picture(page, look))
    await page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    await page.wait_for_timeout(SETTLE_MS / 2)
    phones = [await _picture(page, look) for look in PHONE_LOOKS]
    stem.with_name(f"{stem.name}-phone.png").write_bytes(_in_columns(phones))


async def _picture(page: Page, look: Look) -> bytes:
    theme, language = look
    await set_language(page, language)
    await set_theme(page, theme)
    await page.evaluate("scrollTo(0, 0)")
    await page.wait_for_timeout(REDRAW_MS)
    if await page.locator("dialog[open]").count():  # over the window, not over all of a page
        return await page.screenshot()
    size = page.viewport_size or {"width": WIDE[0], "height": WIDE[1]}
    height = await page.evaluate("document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(max(height, size["height"]), MAX_HEIGHT)}
    return await page.screenshot(full_page=True, clip=clip)  # type: ignore[arg-type]


def _in_columns(pictures: list[bytes]) -> bytes:
    """Tall ones cut into columns, all side by side: a phone's page is read from left to right."""
    columns = []
    for picture in pictures:
        image = Image.open(io.BytesIO(picture)).convert("RGB")
        tops = range(0, image.height, COLUMN_HEIGHT)
        columns += [image.crop((0, top, image.width, min(top + COLUMN_HEIGHT, image.height))) for top in tops]
    width = sum(column.width + GAP for column in columns) - GAP
    sheet = Image.new("RGB", (width, max(column.height for column in columns)), "#888888")
    left = 0
    for column in columns:
        sheet.paste(column, (left, 0))
        left += column.width + GAP
    out = io.BytesIO()
    sheet.save(out, "PNG")
    return out.getvalue()


async def _shoot_login(browser: Browser, folder: Path) -> None:
    """What somebody sees who has no cookie."""
    with new_home() as home:
        hub = ConsoleHub(home)
        await hub.start()
        try:
            async with person_at(browser, hub, is_logged_in=False, theme="dark") as person:
                page = await person.context.new_page()
                await page.goto(hub.origin)
                await page.screenshot(path=folder / "login-dark.png")
                await page.emulate_media(color_scheme="light")
                await page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
                await page.screenshot(path=folder / "login-phone.png")
        finally:
            await hub.stop()


async def _shoot_readme(browser: Browser, hub: ConsoleHub) -> None:
    README_FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        async with (
            demonstration(hub),
            hub.agent("shots") as agent,
            person_at(browser, hub, size=README_SIZE, theme="dark") as person,
        ):
            for name, scene in README_SHOTS.items():
                stage = Stage(await person.open(scene.path), hub, agent)
                await _play(stage, scene)
                file = README_FOLDER / name
                file.write_bytes(_shrink(await stage.page.screenshot()))
                print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")
    finally:
        await hub.stop()


def _shrink(picture: bytes) -> bytes:
    """To 200 colours: a screenshot of text has few, and a README is loaded by everybody."""
    out = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(
        200, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    ).save(out, "PNG", optimize=True)
    return out.getvalue()


def _name(path: str) -> str:
    return path.strip("/") or "home"


def _is_wanted(name: str, names: list[str]) -> bool:
    return name in names or name.partition("-")[0] in names


def _report(person: Person, name: str) -> None:
    for problem in person.problems.left():
        print(f"{name}: {problem}", file=sys.stderr)
    person.problems.seen.clear()


if __name__ == "__main__":
    raise SystemExit(main())
