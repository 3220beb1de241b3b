"""A search within bounds: cancelled, out of time, on huge input, and with links swapped in under it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from dari.codetools.engines.locate import EngineProgram
from dari.codetools.search import line_search, ripgrep_events
from dari.codetools.search import search as search_module
from dari.codetools.search.cursor import SearchPosition
from dari.codetools.search.line_search import SearchClock, make_matcher, search_file
from dari.codetools.search.query import path_key
from dari.codetools.search.ripgrep import check_hits
from dari.codetools.search.ripgrep_events import FileHits, RipgrepReader
from dari.codetools.search.search import run_search
from dari.codetools.workspace import Workspace
from dari.errors import TimedOut
from dari.process.children import Children
from tests.support.code_searches import ENGINES, PLAIN, EngineName, make_session, rows, search


def make_large(root: Path, files: int = 200) -> None:
    for number in range(files):
        (root / f"{number}.txt").write_text("hay " * 20_000 + "\n" + "needle\n" * 20)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cancelled_search_leaves_no_process_and_no_thread(tmp_path: Path, engine: EngineName) -> None:
    make_large(tmp_path)

    async def cancel() -> None:
        async with Children() as children:
            session = make_session([tmp_path], children, engine)
            query = replace(PLAIN, pattern=r"(h|n)(a|e)+[a-z ]*z", mode="regex")
            task = asyncio.create_task(run_search(session, Workspace([tmp_path]), query, None))
            for _ in range(3):
                await asyncio.sleep(0)  # the program, or the thread, has begun
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert all(child.has_ended for child in children.running)
        await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(cancel())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_search_out_of_time_says_how_to_narrow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: EngineName
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    make_large(root)
    # The real one may be done before a busy machine looks at the clock.
    slow = tmp_path / "rg"
    slow.write_text('#!/bin/sh\ncase "$*" in *--version*) echo "ripgrep 14.1.0"; exit;; esac\nexec sleep 60\n')
    slow.chmod(0o755)
    if engine == "ripgrep":
        monkeypatch.setattr(search_module, "find_ripgrep", lambda *_: EngineProgram("rg", (str(slow),), "dari"))
    monkeypatch.setattr(search_module, "SEARCH_TIMEOUT_S", 0.001)
    with pytest.raises(TimedOut, match="took more than") as refused:
        search(root, replace(PLAIN, pattern="nothing of the kind", case="insensitive"), engine)
    assert "paths" in refused.value.hint


@pytest.mark.parametrize("engine", ENGINES)
def test_the_event_loop_stays_free_while_a_search_runs(tmp_path: Path, engine: EngineName) -> None:
    make_large(tmp_path, 60)

    async def count() -> int:
        async with Children() as children:
            session = make_session([tmp_path], children, engine)
            query = replace(PLAIN, pattern="needle", max_matches=2000)
            task = asyncio.create_task(run_search(session, Workspace([tmp_path]), query, None))
            turns = 0
            while not task.done():
                await asyncio.sleep(0.001)
                turns += 1
            await task
            return turns

    assert asyncio.run(count()) > 3


@pytest.mark.parametrize("engine", ENGINES)
def test_a_minified_line_of_5_mb_is_one_small_row(tmp_path: Path, engine: EngineName) -> None:
    (tmp_path / "app.min.js").write_text("var a=1;" * 300_000 + "needle();" + "var b=2;" * 300_000)
    (found,) = rows(tmp_path, replace(PLAIN, pattern="needle"), engine)
    assert found[1:4] == (1, 2_400_001, 2_400_007) and len(found[4]) < 410
    everywhere = search(tmp_path, replace(PLAIN, pattern="var"), engine).matches
    assert isinstance(everywhere, list)
    assert len(everywhere) == 1 and len(everywhere[0].more) <= 20


def test_a_line_too_long_for_the_stream_is_searched_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("needle first\n" + "x" * 200_000 + "needle\nneedle last\n")
    (tmp_path / "b.txt").write_text("needle\n")
    expected = rows(tmp_path, replace(PLAIN, pattern="needle"))
    monkeypatch.setattr(ripgrep_events, "MAX_EVENT_BYTES", 10_000)
    assert rows(tmp_path, replace(PLAIN, pattern="needle")) == expected
    assert [row[:2] for row in expected] == [("a.txt", 1), ("a.txt", 2), ("a.txt", 3), ("b.txt", 1)]


def test_a_line_longer_than_memory_should_hold_is_searched_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("x" * 300_000 + "needle" + "x" * 300_000 + "\nneedle\n")
    monkeypatch.setattr(line_search, "MAX_LINE_CHARS", 100_000)
    assert len(rows(tmp_path, replace(PLAIN, pattern="needle"), "python")) == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_of_a_gigabyte_is_no_trouble(tmp_path: Path, engine: EngineName) -> None:
    """Sparse: NULs from the first block on make it binary, which both engines see at once."""
    with (tmp_path / "huge.bin").open("wb") as file:
        file.truncate(1 << 30)
    (tmp_path / "z.txt").write_text("needle\n")
    assert [row[0] for row in rows(tmp_path, replace(PLAIN, pattern="needle"), engine)] == ["z.txt"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_of_which_every_line_matches_ends_at_the_page(tmp_path: Path, engine: EngineName) -> None:
    (tmp_path / "log.txt").write_text("needle\n" * 500_000)
    query = replace(PLAIN, pattern="needle", max_matches=100)
    first = search(tmp_path, query, engine)
    assert isinstance(first.matches, list) and isinstance(first.cursor, str)
    second = search(tmp_path, query, engine, first.cursor).matches
    assert isinstance(second, list)
    assert [first.matches[-1].line, second[0].line, second[-1].line] == [100, 101, 200]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_deep_folder_is_walked_to_its_end(tmp_path: Path, engine: EngineName) -> None:
    deep = tmp_path.joinpath(*["d"] * 300)
    deep.mkdir(parents=True)
    (deep / "a.txt").write_text("needle\n")
    assert len(rows(tmp_path, replace(PLAIN, pattern="needle"), engine)) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_folder_that_may_not_be_read_is_passed_over(tmp_path: Path, engine: EngineName) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "a.txt").write_text("needle\n")
    assert len(rows(tmp_path, replace(PLAIN, pattern="needle"), engine)) == 1


def events_of(path: str, lines: Sequence[str]) -> list[str]:
    """What ripgrep prints of one file."""
    where = {"path": {"text": path}}
    printed = [{"type": "begin", "data": where}]
    for number, line in enumerate(lines, 1):
        found = {"lines": {"text": f"{line}\n"}, "line_number": number, "absolute_offset": 0, "submatches": []}
        printed.append({"type": "match", "data": {**where, **found}})
    return [json.dumps(one, separators=(",", ":")) for one in (*printed, {"type": "end", "data": where})]


def hits_of(path: Path, line: str) -> FileHits:
    reader = RipgrepReader(lambda _: True, lambda _: False, 10, 0, None, is_ordered=False, may_restart=False)
    reader.feed("".join(f"{event}\n" for event in events_of(str(path), [line])).encode())
    (hits,) = reader.files()
    return hits


def test_what_was_read_through_a_link_that_was_swapped_in_is_not_shown(tmp_path: Path) -> None:
    """ripgrep opened folder/file.txt while folder was a link to a place outside; now it is a folder again, or not."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "folder").mkdir(parents=True)
    outside.mkdir()
    (outside / "file.txt").write_text("key of somebody\n")
    clock, query = SearchClock(10), replace(PLAIN, pattern="key")
    hits = hits_of(root / "folder/file.txt", "key of somebody")
    assert check_hits(hits, query, None, clock) == []  # there is no such file
    (root / "folder/file.txt").write_text("nothing\n")
    hits = hits_of(root / "folder/file.txt", "key of somebody")
    assert check_hits(hits, query, None, clock) == []  # there is, with other words
    (root / "folder/file.txt").unlink()
    (root / "folder").rmdir()
    (root / "folder").symlink_to(outside)
    hits = hits_of(root / "folder/file.txt", "key of somebody")
    assert check_hits(hits, query, None, clock) == []  # the link is still there
    assert search_file(str(root / "folder/file.txt"), make_matcher(query), clock) == []


def test_a_file_that_changed_since_is_searched_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("new\nkey moved\n")
    hits = hits_of(path, "key moved")
    (found,) = check_hits(hits, replace(PLAIN, pattern="key"), None, SearchClock(10))
    assert (found.line, found.text) == (2, "key moved")


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_the_stream_may_come_in_pieces_of_any_size(tmp_path: Path, size: int) -> None:
    events = [event for name in "bac" for event in events_of(f"/{name}", ["key"] * 3)]
    stream = "".join(f"{event}\n" for event in (*events, '{"data":{"stats":{}},"type":"summary"}')).encode()
    since = SearchPosition(path_key("/a"), 2)
    reader = RipgrepReader(lambda _: True, lambda _: False, 4, 0, since, is_ordered=False, may_restart=True)
    told = [reader.feed(stream[at : at + size]) for at in range(0, len(stream), size)]
    assert told == [False] * (len(told) - 1) + [True]  # at the summary
    found = [(hits.path, [line.line for line in hits.lines()]) for hits in reader.files()]
    assert found == [("/a", [3]), ("/b", [1, 2, 3]), ("/c", [1, 2, 3])]
    assert reader.is_complete and reader.file_count == 3
