"""The lexical index: what is found, what a commit keeps, what a reader sees."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from dari.errors import Conflict, Unavailable
from dari.knowledge.index.analyzer import index_terms, phrase_terms, words_of
from dari.knowledge.index.lexical import LexicalIndex
from tests.support.waiting import PATIENCE_S

TEXTS = {
    1: "The backup runs every night at two and is kept for thirty days.",
    2: "백업은 매일 밤 두 시에 실행되고 30일 동안 보관됩니다.",
    3: "A restore of the database needs the key of the vault.",
    4: "The key of the night watch opens the vault.",
}


def index_of(path: Path, texts: dict[int, str] = TEXTS, revision: int = 1) -> LexicalIndex:
    index = LexicalIndex.open(path, writable=True)
    for number, text in texts.items():
        index.add(number, number, text)
    index.commit(revision)
    return index


def found(index: LexicalIndex, query: str, k: int = 10, allowed: set[int] | None = None) -> list[int]:
    terms = dict.fromkeys(index_terms(words_of(query)).split(), 1.0)
    return [number for number, _ in index.search(terms, k, allowed)]


def test_the_best_match_comes_first_in_either_language(tmp_path: Path) -> None:
    index = index_of(tmp_path / "lexical")
    assert found(index, "nightly backups")[0] == 1
    assert found(index, "백업 보관")[0] == 2


def test_a_phrase_is_found_only_where_its_words_stand_together(tmp_path: Path) -> None:
    index = index_of(tmp_path / "lexical")
    phrase = [phrase_terms(words_of("the key of the vault")).split()]
    assert [number for number, _ in index.search({"vault": 1.0}, 10, None, phrase)] == [3]
    assert index.chunks_with_phrases(phrase, 10) == [3]


def test_a_title_makes_its_chunk_findable_and_an_empty_one_changes_no_score(tmp_path: Path) -> None:
    bare, titled = LexicalIndex.open(tmp_path / "a", True), LexicalIndex.open(tmp_path / "b", True)
    bare.add(1, 1, "Turn the wheel left.", "")
    titled.add(1, 1, "Turn the wheel left.", "Steering")
    for index in (bare, titled):
        index.add(2, 2, "Turn the page.", "")
        index.commit(1)
    assert found(titled, "steering") == [1]
    assert found(bare, "steering") == []
    plain = LexicalIndex.open(tmp_path / "c", True)
    plain.add(1, 1, "Turn the wheel left.")
    plain.add(2, 2, "Turn the page.")
    plain.commit(1)
    assert plain.search(["wheel", "turn"], 5) == bare.search(["wheel", "turn"], 5)


@pytest.mark.parametrize("size", [3, 5000])
def test_a_filter_narrow_or_wide_keeps_the_order_of_what_it_lets_through(tmp_path: Path, size: int) -> None:
    texts = {number: "common " * (number % 7 + 1) + f"word{number}" for number in range(1, 7001)}
    index = index_of(tmp_path / "lexical", texts)
    everything = found(index, "common", 7000)
    allowed = set(everything[1::2][:size])
    assert found(index, "common", 20, allowed) == [number for number in everything if number in allowed][:20]


def test_a_filter_that_allows_nothing_finds_nothing(tmp_path: Path) -> None:
    assert found(index_of(tmp_path / "lexical"), "backup", 10, set()) == []


def test_a_commit_carries_its_revision_and_a_lost_one_leaves_the_old(tmp_path: Path) -> None:
    index = index_of(tmp_path / "lexical", revision=7)
    index.add(9, 9, "uncommitted")
    index.rollback()
    index.close()
    again = LexicalIndex.open(tmp_path / "lexical", writable=True)
    assert (again.revision, again.chunk_count, found(again, "uncommitted")) == (7, 4, [])


def test_deleting_and_adding_again_leaves_one_chunk(tmp_path: Path) -> None:
    index = index_of(tmp_path / "lexical")
    for _ in range(2):
        index.delete(3)
        index.add(3, 3, "restored text")
    index.commit(2)
    assert found(index, "restored") == [3]
    assert found(index, "database") == []
    assert index.chunk_count == 4


def with_an_undone_merge(folder: Path) -> Path:
    """An index of eight segments, enough for a merge, as a writer leaves it that is killed after a commit.

    Chunk 1 is in a segment that the last commit deleted from (chunk 2); the largest segment is one that it did not.
    """
    index, other = LexicalIndex.open(folder / "a", writable=True), LexicalIndex.open(folder / "b", writable=True)
    for part in range(7):
        for number in range(part * 10 + 1, part * 10 + 7):
            index.add(number, number, f"common word{number}")
        if part == 6:
            index.delete(2)
        index.commit(part + 1)
    for number in range(101, 110):
        other.add(number, number, f"common word{number}")
    other.commit(7)
    index.close()
    other.close()
    for path in other.path.glob("[0-9a-f]*.*"):
        shutil.copy(path, index.path)
    meta, more = (json.loads((one.path / "meta.json").read_text()) for one in (index, other))
    meta["segments"] += more["segments"]
    assert len(meta["segments"]) == 8
    (index.path / "meta.json").write_text(json.dumps(meta))
    return index.path


@pytest.mark.parametrize("is_rolled_back", [False, True])
def test_the_first_deletion_after_a_kill_is_kept_when_the_undone_merge_is_made_up_for(
    tmp_path: Path, is_rolled_back: bool
) -> None:
    index = LexicalIndex.open(with_an_undone_merge(tmp_path), writable=True)
    if is_rolled_back:
        index.add(500, 500, "lost")
        index.rollback()
    index.delete(1)
    index.add(1, 1, "common again")
    index.commit(8)
    index.close()
    meta = json.loads((index.path / "meta.json").read_text())
    assert len(meta["segments"]) == 2  # the eight were merged
    reader = LexicalIndex.open(index.path)
    assert (reader.revision, reader.chunk_count) == (8, 7 * 6 - 1 + 9)
    assert found(reader, "word1") == []
    assert found(reader, "again") == [1]


def test_a_commit_that_was_killed_before_its_end_can_be_made_again(tmp_path: Path) -> None:
    def change(path: Path) -> None:
        index = LexicalIndex.open(path, writable=True)
        index.delete(1)
        index.add(5, 5, "A new chunk.")
        index.commit(2)
        index.close()

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    index_of(killed).close()
    shutil.copytree(killed, whole)
    change(whole)
    for path in whole.iterdir():
        if path.name != "meta.json":  # the file that a commit writes last
            shutil.copy(path, killed)
    assert list(killed.glob("*.del"))
    change(killed)
    reader = LexicalIndex.open(killed)
    assert (reader.revision, reader.chunk_count) == (2, 4)


def test_a_reader_follows_the_writer_after_a_reload(tmp_path: Path) -> None:
    writer = index_of(tmp_path / "lexical")
    reader = LexicalIndex.open(tmp_path / "lexical")
    writer.add(5, 5, "a fresh passage")
    assert not reader.has_changed
    writer.commit(2)
    assert found(reader, "fresh") == []
    assert reader.has_changed
    reader.reload()
    assert found(reader, "fresh") == [5]
    assert (reader.revision, reader.has_changed) == (2, False)


def test_a_reader_cannot_write_and_a_second_writer_is_refused(tmp_path: Path) -> None:
    writer = index_of(tmp_path / "lexical")
    with pytest.raises(Conflict):
        LexicalIndex.open(tmp_path / "lexical").add(1, 1, "x")
    with pytest.raises(Conflict):
        LexicalIndex.open(tmp_path / "lexical", writable=True)
    writer.close()
    LexicalIndex.open(tmp_path / "lexical", writable=True).close()


def test_a_missing_index_is_unavailable_to_a_reader(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        LexicalIndex.open(tmp_path / "lexical")


@pytest.mark.parametrize("damage", ["meta", "version", "segment"])
def test_a_writer_replaces_an_unreadable_index_by_an_empty_one(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "lexical"
    index_of(path, revision=3).close()
    if damage == "meta":
        (path / "meta.json").write_text("{")
    elif damage == "version":
        (path / "index_version").write_text("of another time")
    else:
        for segment in path.glob("*.term"):
            segment.unlink()
    index = LexicalIndex.open(path, writable=True)
    assert (index.was_reset, index.revision, index.chunk_count) == (True, 0, 0)
    index.add(1, 1, "again")
    index.commit(4)
    assert found(index, "again") == [1]


def test_idf_is_zero_for_an_unknown_term_and_higher_for_a_rarer_one(tmp_path: Path) -> None:
    index = index_of(tmp_path / "lexical")
    idf = index.idf(["the", "backup", "nowhere"])
    assert idf["nowhere"] == 0.0 < idf["the"] < idf["backup"] <= index.highest_idf


class SlowIndex:
    """The index of one reader; its first caller has the searcher of a commit, and puts it in place late."""

    def __init__(self, index: Any) -> None:
        self._index = index
        self.is_slow = True
        self.has_searcher, self.may_go_on = threading.Event(), threading.Event()

    def reload(self) -> None:
        self._index.reload()

    def searcher(self) -> Any:
        found, is_slow, self.is_slow = self._index.searcher(), self.is_slow, False
        if is_slow:
            self.has_searcher.set()
            assert self.may_go_on.wait(PATIENCE_S)
        return found


def test_a_slow_reload_never_puts_an_older_commit_back(tmp_path: Path) -> None:
    index = index_of(tmp_path / "lexical")
    reader = LexicalIndex.open(tmp_path / "lexical")
    index.commit(2)
    slow = SlowIndex(reader._index)
    reader._index = slow
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(reader.reload)
        assert slow.has_searcher.wait(PATIENCE_S)
        index.commit(3)
        second = threads.submit(reader.reload)
        wait([second], timeout=0.2)  # it ends before the slow one, or waits for it
        slow.may_go_on.set()
        for one in (first, second):
            one.result(PATIENCE_S)
    assert (reader.revision, reader.has_changed) == (3, False)
