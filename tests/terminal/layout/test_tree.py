from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.errors import Conflict, InvalidInput, NotFound
from dari.terminal.layout.cells import Cell, Leaf
from dari.terminal.layout.notation import read_layout, write_layout
from dari.terminal.layout.presets import PRESETS, arrange, find_preset
from dari.terminal.layout.tree import Tree

Draw = st.DataObject


def _assert_tiles(tree: Tree) -> None:
    """Every cell of the root belongs to one pane or is border, and no pane is empty."""
    owner: dict[tuple[int, int], str] = {}
    for pane, area in tree.areas().items():
        assert area.cols >= 1 and area.rows >= 1
        assert area.left >= 0 and area.right <= tree.root.cols and area.top >= 0 and area.bottom <= tree.root.rows
        for col in range(area.left, area.right):
            for row in range(area.top, area.bottom):
                assert owner.setdefault((col, row), pane) == pane
    _assert_sums(tree.root)
    borders = tree.root.cols * tree.root.rows - len(owner)
    assert borders == _borders(tree.root)


def _assert_sums(cell: Cell) -> None:
    if isinstance(cell, Leaf):
        return
    sizes = [child.cols if cell.orientation == "horizontal" else child.rows for child in cell.children]
    assert sum(sizes) + len(sizes) - 1 == (cell.cols if cell.orientation == "horizontal" else cell.rows)
    across = {child.rows if cell.orientation == "horizontal" else child.cols for child in cell.children}
    assert across == {cell.rows if cell.orientation == "horizontal" else cell.cols}
    for child in cell.children:
        _assert_sums(child)


def _borders(cell: Cell) -> int:
    if isinstance(cell, Leaf):
        return 0
    own = (len(cell.children) - 1) * (cell.rows if cell.orientation == "horizontal" else cell.cols)
    return own + sum(_borders(child) for child in cell.children)


def _grown(data: Draw, steps: int) -> Tree:
    tree = Tree.of("p0", data.draw(st.integers(3, 60)), data.draw(st.integers(3, 30)))
    for number in range(1, steps):
        tree = _split(data, tree, f"p{number}") or tree
    return tree


def _split(data: Draw, tree: Tree, new: str) -> Tree | None:
    try:
        return tree.split(
            data.draw(st.sampled_from(tree.panes)),
            new,
            data.draw(st.sampled_from(["horizontal", "vertical"])),
            size=data.draw(st.none() | st.integers(1, 30)),
            is_before=data.draw(st.booleans()),
            is_full=data.draw(st.booleans()),
        )
    except Conflict:
        return None


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(1, 9))
def test_panes_tile_the_window_exactly_after_any_operation(data: Draw, steps: int) -> None:
    tree = _grown(data, steps)
    _assert_tiles(tree)
    pane = data.draw(st.sampled_from(tree.panes))
    _assert_tiles(tree.resize_pane(pane, cols=data.draw(st.integers(1, 80)), rows=data.draw(st.integers(1, 40))))
    _assert_tiles(
        tree.push(pane, data.draw(st.sampled_from(["left", "right", "up", "down"])), data.draw(st.integers(1, 50)))
    )
    _assert_tiles(tree.swap(pane, data.draw(st.sampled_from(tree.panes))))
    _assert_tiles(arrange(tree, data.draw(st.sampled_from(PRESETS))))
    closed = tree.close(pane)
    assert (closed is None) == (len(tree.panes) == 1)
    if closed is not None:
        _assert_tiles(closed)
        assert set(closed.panes) == set(tree.panes) - {pane}


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(1, 8))
def test_closing_a_pane_that_was_just_split_off_gives_back_what_was_there(data: Draw, steps: int) -> None:
    tree = _grown(data, steps)
    pane = data.draw(st.sampled_from(tree.panes))
    orientation = data.draw(st.sampled_from(["horizontal", "vertical"]))
    try:
        # Before the first sibling the space goes to another neighbour, as in tmux; after one it comes back.
        split = tree.split(pane, "new", orientation, size=data.draw(st.none() | st.integers(1, 30)))
    except Conflict:
        return
    assert split.close("new") == tree


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(1, 8), st.integers(1, 120), st.integers(1, 60))
def test_a_window_of_any_size_is_tiled(data: Draw, steps: int, cols: int, rows: int) -> None:
    tree = _grown(data, steps).resize(cols, rows)
    _assert_tiles(tree)
    assert (tree.cols, tree.rows) == (cols, rows)
    # Only where the panes at their smallest do not fit, the tree is larger than the window.
    if tree.root.cols > cols:
        assert tree.resize(1, rows).root.cols == tree.root.cols
    else:
        assert tree.root.cols == cols
    if tree.root.rows > rows:
        assert tree.resize(cols, 1).root.rows == tree.root.rows
    else:
        assert tree.root.rows == rows


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 8))
def test_the_text_of_a_layout_is_read_back(data: Draw, steps: int) -> None:
    tree = _grown(data, steps)
    text = write_layout(tree.root, lambda pane: int(pane[1:]))
    assert read_layout(text, tree.panes) == Tree(tree.root, tree.root.cols, tree.root.rows)


def test_a_pane_across_the_whole_window_takes_no_cell_of_a_nested_split_that_has_none_to_give() -> None:
    tree = Tree.of("p0", 5, 25).split("p0", "p1", "horizontal", is_full=True)
    tree = tree.split("p0", "p2", "vertical", size=1, is_before=True, is_full=True)
    tree = tree.split("p2", "p3", "horizontal", size=1, is_full=True)
    _assert_tiles(tree)
    tree = tree.split("p0", "p4", "vertical", is_full=True)
    _assert_tiles(tree)
    _assert_tiles(tree.resize(1, 1))


def test_an_operation_leaves_the_old_tree_as_it_was() -> None:
    tree = Tree.of("a", 80, 24)
    tree.split("a", "b", "horizontal")
    assert tree == Tree.of("a", 80, 24)


def test_half_of_eighty_columns_is_forty_and_thirty_nine_with_the_border_between() -> None:
    tree = Tree.of("a", 80, 24).split("a", "b", "horizontal")
    assert [(area.left, area.cols) for area in tree.areas().values()] == [(0, 40), (41, 39)]


@pytest.mark.parametrize("text", ["", "zzzz,1x1,0,0,0", "0000,80x24,0,0,0", "b25d", "b25d,80x24,0,0,0{"])
def test_a_layout_with_a_wrong_checksum_or_form_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_layout(text, ("a",))


def test_mistakes_are_named() -> None:
    tree = Tree.of("a", 2, 1)
    with pytest.raises(NotFound):
        tree.split("x", "b", "horizontal")
    with pytest.raises(Conflict):
        tree.split("a", "b", "horizontal")
    with pytest.raises(Conflict):
        tree.split("a", "a", "horizontal")
    with pytest.raises(InvalidInput):
        Tree.of("a", 0, 5)
    with pytest.raises(InvalidInput):
        find_preset("main")
    assert find_preset("main-v") == "main-vertical"
