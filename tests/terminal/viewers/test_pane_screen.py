"""A pane's screen for pages: rows in our own format, and only those that changed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Literal

import pytest

from dari.terminal.api.watch import WatchApi
from dari.terminal.engine.engine import make_engine
from dari.terminal.viewers.pane_screen import ScreenFrame, encode_row
from tests.support.terminal_service import House, house_in


def _row(data: bytes, prefer: Literal["ghostty", "bittty"], cols: int = 20) -> str:
    engine = make_engine(cols, 3, prefer=prefer)
    try:
        engine.feed(data)
        return encode_row(engine.grid()[0].cells)
    finally:
        engine.close()


ENGINES: tuple[Literal["ghostty", "bittty"], ...] = ("ghostty", "bittty")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("printed", "row"),
    [
        (b"plain", "plain"),
        (b"\x1b[1;31mred\x1b[0m ok", "\x1b[0;1;31mred\x1b[0m ok"),
        ("가b".encode(), "\x01가\x03b"),
        ("e\u0301x".encode(), "\x02e\u0301\x03x"),
        (b"<img src=x>", "<img src=x>"),
        (b"\x1b[44m  \x1b[0m  ", "\x1b[0;44m  "),
        (b"\x1b[38;5;200mx\x1b[38;2;1;2;3my", "\x1b[0;38;5;200mx\x1b[0;38;2;1;2;3my"),
    ],
)
def test_a_row_is_text_with_styles_and_marks_for_wide_cells(
    printed: bytes, row: str, engine: Literal["ghostty", "bittty"]
) -> None:
    assert _row(printed, engine) == row


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\u200b", "\ufeff", "\U000e0041", "\u200f"])
def test_what_hides_or_turns_text_around_is_not_in_a_row(hidden: str, engine: Literal["ghostty", "bittty"]) -> None:
    assert hidden not in _row(f"ab{hidden}cd".encode(), engine)


async def _open(house: House, tmp_path: Path, script: str) -> str:
    path = tmp_path / "script.sh"
    path.write_text(script)
    return (await house.service.scripts.open_pane(["sh", str(path)], where="window", cols=60, rows=10)).id


async def _until(api: WatchApi, pane: str, text: str, frame: ScreenFrame | None = None) -> ScreenFrame:
    frame = frame or await api.watch(pane)
    async with asyncio.timeout(20):
        while not any(text in row for _, row in frame.rows):
            frame = await api.watch(pane, frame.version)
    return frame


async def test_the_first_frame_is_everything_and_the_next_only_what_changed(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        api = house.service.watch
        pane = await _open(house, tmp_path, "stty -echo; echo ready; read line; echo news; exec cat")
        first = await api.watch(pane)
        assert first.is_whole
        assert len(first.rows) == 10
        assert first.facts is not None
        assert (first.facts.cols, first.facts.rows) == (60, 10)
        ready = await _until(api, pane, "ready", first)
        await house.multiplexer.find(pane).write(b"\r")
        news = await _until(api, pane, "news", await api.watch(pane, ready.version))
        assert not news.is_whole
        assert [number for number, _ in news.rows] == [1]


async def test_two_who_follow_get_the_same_and_one_who_missed_frames_gets_what_is_new(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        api = house.service.watch
        pane = await _open(house, tmp_path, "stty -echo; echo ready; while read line; do echo got $line; done")
        ready = await _until(api, pane, "ready")
        for word in (b"one\r", b"two\r"):
            await house.multiplexer.find(pane).write(word)
        late = await api.watch(pane, ready.version)
        await _until(api, pane, "got two", late)
        behind = await api.watch(pane, ready.version)
        assert [row for _, row in behind.rows] == ["got one", "got two"]
        assert (await api.watch(pane)).is_whole


async def test_a_pane_is_followed_by_its_name_too(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(name="build")
        frame = await house.service.watch.watch("build")
        again = await house.service.watch.watch("%1", frame.version - 1 or 0)
        assert again.version >= frame.version
        assert list(house.service.watch._screens) == ["1"]


async def test_a_program_that_prints_without_end_costs_thirty_frames_a_second(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        api = house.service.watch
        pane = await _open(house, tmp_path, "seq 1 100000000")
        frame = await _until(api, pane, "1")
        frames, began = 0, time.monotonic()
        while time.monotonic() - began < 1.0:
            frame = await api.watch(pane, frame.version)
            frames += 1
            assert len(frame.rows) <= 10
        assert frames <= 32


async def test_the_alternate_screen_bells_and_the_end_are_told(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        api = house.service.watch
        script = "read a; printf '\\033[?1049h\\033[2;3Hfull\\a'; read b; printf '\\033[?1049l'; exit 3"
        pane = (await house.service.panes.spawn_pane(argv=["sh", "-c", script])).id
        frame = await api.watch(pane)
        await house.multiplexer.find(pane).write(b"\r")
        frame = await _until(api, pane, "full", frame)
        while frame.facts is None or not frame.facts.is_alternate:
            frame = await asyncio.wait_for(api.watch(pane), 20)
        assert frame.bells == 1
        await house.multiplexer.find(pane).write(b"\r")
        async with asyncio.timeout(20):
            while frame.facts is None or frame.facts.exit_code is None:
                frame = await api.watch(pane, frame.version)
        assert frame.facts.exit_code == 3
        assert frame.cursor is None


async def test_who_follows_a_pane_that_is_closed_hears_that_it_is_over(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        pane = await _open(house, tmp_path, "exec cat")
        frame = await house.service.watch.watch(pane)
        waiting = asyncio.create_task(house.service.watch.watch(pane, frame.version))
        await house.service.panes.close_pane(pane)
        async with asyncio.timeout(20):
            while not (frame := await waiting).is_over:
                waiting = asyncio.create_task(house.service.watch.watch(pane, frame.version))


async def test_hostile_titles_are_shown_as_text_of_one_line(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        api = house.service.watch
        pane = await _open(house, tmp_path, "printf '\\033]0;<b>\\342\\200\\256evil\\007ready'; exec cat")
        frame = await _until(api, pane, "ready")
        assert frame.facts is not None
        assert frame.facts.title.startswith("<b>")
        assert "\u202e" not in frame.facts.title
