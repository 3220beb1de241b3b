"""Waits for output: what they look back at, and what a fault in one of them costs."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from dari.terminal.panes import expect
from dari.terminal.panes.expect import MAX_RECENT_BYTES, RecentOutput, make_matcher
from tests.support.panes import pane_in

PIECE = b"one line\r\n"


def test_pieces_that_follow_each_other_are_kept_as_few() -> None:
    recent = RecentOutput()
    for number in range(50_000):
        recent.add(number * len(PIECE), PIECE)
    kept = recent.since(0)
    assert len(kept) <= 16
    assert b"".join(data for _, data in kept) == PIECE * 50_000
    assert all(start + len(data) == after for (start, data), (after, _) in pairwise(kept))


def test_what_is_kept_is_bounded_and_a_gap_stays_a_gap() -> None:
    recent = RecentOutput()
    recent.add(0, b"before")
    recent.add(100, b"after")
    assert recent.since(0) == [(0, b"before"), (100, b"after")]
    assert recent.since(102) == [(102, b"ter")]
    position = 105
    for _ in range(3 * MAX_RECENT_BYTES // 1000):
        recent.add(position, b"x" * 1000)
        position += 1000
    kept = recent.since(0)
    assert MAX_RECENT_BYTES <= sum(len(data) for _, data in kept) <= 2 * MAX_RECENT_BYTES
    assert kept[-1][0] + len(kept[-1][1]) == position


async def test_a_wait_that_looks_back_searches_many_small_pieces_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = 0

    class Counting:
        def __init__(self, pattern: str, is_regex: bool) -> None:
            self._matcher = make_matcher(pattern, is_regex)

        def search(self, text: str) -> tuple[int, int, tuple[str | None, ...]] | None:
            nonlocal searches
            searches += 1
            return self._matcher.search(text)

    monkeypatch.setattr(expect, "make_matcher", Counting)
    async with pane_in(tmp_path, command=["cat"]) as pane:
        start = pane.position
        for _ in range(20_000):
            pane._show(PIECE)
        pane._show(b"the end\r\n")
        found = await pane.wait_for(r"the (e)nd", is_regex=True, since=start)
        assert (found.match, found.groups) == ("the end", ("e",))
        assert found.position == start + 20_000 * len(PIECE) + len("the end")
    assert searches < 100


async def test_a_fault_in_one_wait_is_its_own_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def __init__(self, pattern: str, is_regex: bool) -> None:
            pass

        def search(self, text: str) -> None:
            raise ValueError("a fault of ours")

    async with pane_in(tmp_path, command=["cat"]) as pane:
        with monkeypatch.context() as patched:
            patched.setattr(expect, "make_matcher", Broken)
            broken = asyncio.create_task(pane.wait_for("x", timeout_s=30))
            await asyncio.sleep(0)
        sound = asyncio.create_task(pane.wait_for("said", timeout_s=30))
        await asyncio.sleep(0)
        pane._show(b"said\r\n")
        assert (await sound).match == "said"
        with pytest.raises(ValueError, match="a fault of ours"):
            await broken
        assert "said" in pane.engine.text(0, 1)
