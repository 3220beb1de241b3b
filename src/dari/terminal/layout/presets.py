"""The presets of tmux's select-layout: all panes of a tab in a new tree, in their order."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal, get_args

from dari.errors import InvalidInput
from dari.terminal.layout.cells import MIN_PANE_CELLS, Cell, Leaf, Orientation, Split, adjust, size_along
from dari.terminal.layout.tree import Tree

Preset = Literal["even-horizontal", "even-vertical", "main-horizontal", "main-vertical", "tiled"]
PRESETS: tuple[Preset, ...] = get_args(Preset)

MAIN_COLS = 80
MAIN_ROWS = 24


def find_preset(name: str) -> Preset:
    """The preset by its name or the start of it that only it has, as tmux takes it."""
    found = [preset for preset in PRESETS if preset.startswith(name)] if name else []
    exact = [preset for preset in found if preset == name]
    if len(exact or found) != 1:
        raise InvalidInput(f"layout must be one of {', '.join(PRESETS)}, got {name!r}", "choose one of them")
    return (exact or found)[0]


def arrange(tree: Tree, preset: Preset, main_size: int | str | None = None) -> Tree:
    """The panes in that preset; `main_size` is cells or a text such as "60%" for the main pane of `main-…`."""
    panes = tree.panes
    if len(panes) <= 1:
        return tree
    if preset == "tiled":
        return replace(tree, root=_tiled(panes, tree.cols, tree.rows))
    if preset in ("even-horizontal", "even-vertical"):
        way: Orientation = "horizontal" if preset == "even-horizontal" else "vertical"
        return replace(tree, root=_even(panes, way, tree.cols, tree.rows))
    return replace(tree, root=_main(panes, preset, tree, main_size))


def cells_of(size: int | str, whole: int) -> int:
    """A size in cells: a number, or a percentage of `whole`."""
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*(\d{1,5})\s*(%?)\s*", size)
    if match is None:
        raise InvalidInput(f"size must be cells such as 20 or a share such as 30%, got {size!r}", "correct the size")
    return whole * min(int(match[1]), 100) // 100 if match[2] else int(match[1])


def spread(cell: Split) -> Split:
    """Children of equal size; what is left over goes to the last one."""
    way = cell.orientation
    count = len(cell.children)
    size = size_along(cell, way)
    each = (size - (count - 1)) // count
    if each < 1:
        return cell
    sizes = [each] * (count - 1) + [size - (each + 1) * (count - 1)]
    children = [
        adjust(child, way, wanted - size_along(child, way)) for child, wanted in zip(cell.children, sizes, strict=True)
    ]
    return replace(cell, children=tuple(children))


def _even(panes: tuple[str, ...], way: Orientation, cols: int, rows: int) -> Cell:
    least = len(panes) * (MIN_PANE_CELLS + 1) - 1
    cols, rows = (max(cols, least), rows) if way == "horizontal" else (cols, max(rows, least))
    return spread(Split(way, tuple(Leaf(pane, cols, rows) for pane in panes), cols, rows))


def _main(panes: tuple[str, ...], preset: Preset, tree: Tree, main_size: int | str | None) -> Cell:
    across: Orientation = "vertical" if preset == "main-horizontal" else "horizontal"
    along: Orientation = "horizontal" if preset == "main-horizontal" else "vertical"
    window = {"horizontal": tree.cols, "vertical": tree.rows}
    room = window[across] - 1
    default = MAIN_ROWS if preset == "main-horizontal" else MAIN_COLS
    main = cells_of(default if main_size is None else main_size, room)
    if main + MIN_PANE_CELLS >= room:
        main = MIN_PANE_CELLS if room <= 2 * MIN_PANE_CELLS else room - MIN_PANE_CELLS
        other = MIN_PANE_CELLS
    else:
        main = max(main, MIN_PANE_CELLS)
        other = room - main
    length = max(window[along], (len(panes) - 1) * (MIN_PANE_CELLS + 1) - 1)

    def sized(part: int) -> tuple[int, int]:
        return (length, part) if across == "vertical" else (part, length)

    first = Leaf(panes[0], *sized(main))
    rest: Cell
    if len(panes) == 2:
        rest = Leaf(panes[1], *sized(other))
    else:
        cols, rows = sized(other)
        small = (MIN_PANE_CELLS, rows) if along == "horizontal" else (cols, MIN_PANE_CELLS)
        rest = spread(Split(along, tuple(Leaf(pane, *small) for pane in panes[1:]), cols, rows))
    return Split(across, (first, rest), *sized(main + other + 1))


def _tiled(panes: tuple[str, ...], window_cols: int, window_rows: int) -> Cell:
    lines = columns = 1
    while lines * columns < len(panes):
        lines += 1
        if lines * columns < len(panes):
            columns += 1
    width = max(MIN_PANE_CELLS, (window_cols - (columns - 1)) // columns)
    height = max(MIN_PANE_CELLS, (window_rows - (lines - 1)) // lines)
    cols = max(window_cols, (width + 1) * columns - 1)
    rows = max(window_rows, (height + 1) * lines - 1)
    made: list[Cell] = []
    for line in range(lines):
        here = panes[line * columns : (line + 1) * columns]
        if not here:
            break
        if len(here) == 1:
            made.append(Leaf(here[0], cols, height))
            continue
        children: list[Cell] = [Leaf(pane, width, height) for pane in here]
        used = len(here) * (width + 1) - 1
        children[-1] = adjust(children[-1], "horizontal", cols - used)
        made.append(Split("horizontal", tuple(children), cols, height))
    used = len(made) * (height + 1) - 1
    made[-1] = adjust(made[-1], "vertical", rows - used)
    return Split("vertical", tuple(made), cols, rows)
