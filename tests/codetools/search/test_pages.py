"""Pages of a search: budgets, order, and cursors that belong to one search."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from dari.codetools.search import ripgrep_events
from dari.codetools.search.query import CodeQuery
from dari.codetools.search.rows import BYTES_PER_TOKEN, SearchMatch
from dari.errors import InvalidInput
from tests.support.code_searches import ENGINES, PLAIN, EngineName, search


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names whose order by bytes is not the order of a walk: a/z, a-b, a.txt."""
    root = tmp_path_factory.mktemp("tree")
    for number in range(40):
        folder = root / ("a", "a-b", "b/deep/down", "Z")[number % 4]
        folder.mkdir(parents=True, exist_ok=True)
        lines = (f"needle {number} {line}" if line % 3 else "hay" for line in range(number))
        (folder / f"file{number}.txt").write_text("\n".join(lines))
    (root / "a.txt").write_text("needle in a.txt\n")
    return root


def all_pages(root: Path, query: CodeQuery, engine: EngineName) -> list[list[SearchMatch]]:
    pages: list[list[SearchMatch]] = []
    cursor: str | None = None
    while True:
        page = search(root, query, engine, cursor)
        assert isinstance(page.matches, list)
        pages.append(page.matches)
        if not page.truncated:
            assert not isinstance(page.cursor, str)
            return pages
        assert isinstance(page.cursor, str)
        cursor = page.cursor


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("context", [0, 1])
def test_pages_join_to_the_whole_without_overlap(tree: Path, engine: EngineName, context: int) -> None:
    query = replace(PLAIN, pattern="needle", context=context)
    (whole,) = all_pages(tree, replace(query, max_matches=2000), engine)
    pages = all_pages(tree, replace(query, max_matches=37), engine)
    assert [len(page) for page in pages[:-1]] == [37] * (len(pages) - 1)
    places = [(one.path, one.line, one.text) for page in pages for one in page]
    assert places == [(one.path, one.line, one.text) for one in whole]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_come_folder_by_folder(tree: Path, engine: EngineName) -> None:
    found = search(tree, replace(PLAIN, pattern="needle", output="files", max_matches=2000), engine).files
    assert isinstance(found, list)
    assert found == sorted(found, key=lambda path: path.split("/"))


def test_a_search_with_many_matches_is_ordered_by_ripgrep_itself(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same pages, whether we put them in order or ripgrep does, from the first page or after a cursor."""
    query = replace(PLAIN, pattern="needle", max_matches=50, context=1)
    expected = all_pages(tree, query, "ripgrep")
    monkeypatch.setattr(ripgrep_events, "MAX_UNORDERED_BYTES", 1000)
    assert all_pages(tree, query, "ripgrep") == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_a_page_keeps_to_its_tokens_and_has_at_least_one_row(tree: Path, engine: EngineName) -> None:
    query = replace(PLAIN, pattern="needle", max_tokens=100)
    pages = all_pages(tree, query, engine)
    for page in pages:
        assert len(page) == 1 or len(msgspec.json.encode(page)) <= 100 * BYTES_PER_TOKEN + 2
    tiny = search(tree, replace(query, max_tokens=1), engine).matches
    assert isinstance(tiny, list) and len(tiny) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("output", ["files", "counts"])
def test_names_and_counts_have_pages_too(tree: Path, engine: EngineName, output: str) -> None:
    query = replace(PLAIN, pattern="needle", output=output)
    whole = search(tree, query, engine)
    first = search(tree, replace(query, max_matches=15), engine)
    assert first.truncated and isinstance(first.cursor, str)
    rest = search(tree, query, engine, first.cursor)
    if output == "files":
        assert isinstance(first.files, list) and isinstance(rest.files, list)
        assert first.files + rest.files == whole.files
    else:
        assert isinstance(first.counts, dict) and isinstance(rest.counts, dict)
        assert first.counts | rest.counts == whole.counts


def test_a_cursor_of_another_search_is_refused(tree: Path) -> None:
    page = search(tree, replace(PLAIN, pattern="needle", max_matches=5))
    assert isinstance(page.cursor, str)
    for other in ({"pattern": "hay"}, {"case": "sensitive"}, {"globs": ("*.txt",)}, {"include_hidden": True}):
        query = replace(PLAIN, **{"pattern": "needle", **other})
        with pytest.raises(InvalidInput, match="another search"):
            search(tree, query, cursor=page.cursor)
    with pytest.raises(InvalidInput, match="another search"):
        search(tree, replace(PLAIN, pattern="needle"), cursor=page.cursor, below="a")
    # Another size of page is the same search.
    assert search(tree, replace(PLAIN, pattern="needle", max_matches=9), cursor=page.cursor).matches


@pytest.mark.parametrize("cursor", ["nonsense", "AAAA", "ksQJ", "\ud55c", "=" * 50, "k" * 5000])
def test_what_is_not_a_cursor_is_refused(tree: Path, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="cursor must be one"):
        search(tree, replace(PLAIN, pattern="needle"), cursor=cursor)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cursor_goes_on_where_it_was_when_files_came_and_went(tmp_path: Path, engine: EngineName) -> None:
    for name in "bcd":
        (tmp_path / f"{name}.txt").write_text("needle 1\nneedle 2\n")
    query = replace(PLAIN, pattern="needle", max_matches=3)
    first = search(tmp_path, query, engine)
    assert isinstance(first.cursor, str)
    (tmp_path / "a.txt").write_text("needle\n")
    (tmp_path / "c.txt").unlink()
    rest = search(tmp_path, query, engine, first.cursor).matches
    assert isinstance(rest, list)
    assert [(one.path, one.line) for one in rest] == [("d.txt", 1), ("d.txt", 2)]
