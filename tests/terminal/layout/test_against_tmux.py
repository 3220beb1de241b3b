"""The tree against tmux itself: the same operations, the same `window_layout`, character by character."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator

import pytest

from dari.errors import Conflict
from dari.terminal.layout.cells import Side
from dari.terminal.layout.notation import read_layout, write_layout
from dari.terminal.layout.presets import PRESETS, arrange
from dari.terminal.layout.tree import Tree
from tests.support.tmux_server import Tmux

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

SIDES: dict[str, Side] = {"-L": "left", "-R": "right", "-U": "up", "-D": "down"}


@pytest.fixture
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    server = Tmux(tmp_path_factory.mktemp("t"))
    try:
        yield server
    finally:
        server.kill()


def _start(tmux: Tmux, cols: int, rows: int) -> Tree:
    first = tmux.run("new-session", "-d", "-P", "-F", "#{pane_id}", "-x", str(cols), "-y", str(rows), "cat")
    tmux.run("set-option", "-g", "default-command", "cat")
    tmux.run("set-option", "-g", "window-size", "manual")
    return Tree.of(first, cols, rows)


def _shown(tree: Tree) -> str:
    return write_layout(tree.root, lambda pane: int(pane[1:]))


def _step(chance: random.Random, tmux: Tmux, tree: Tree) -> tuple[Tree, str]:
    """Do one random thing in tmux and to the tree; the tree after it and what was done."""
    pane = chance.choice(tree.panes)
    way = chance.choice(["split"] * 5 + ["close", "push", "size", "window", "swap", "preset", "rotate"])
    if way == "split":
        orientation = chance.choice(["horizontal", "vertical"])
        size = chance.choice([None, None, chance.randint(1, 40)])
        is_before, is_full = chance.random() < 0.3, chance.random() < 0.2
        if is_before and size is not None:
            # tmux counts without a sign here: a size too large becomes one cell. Ours becomes as large as can be.
            area = tree.area(pane)
            size = min(size, max(1, (area.cols if orientation == "horizontal" else area.rows) - 2))
        flags = ["-h" if orientation == "horizontal" else "-v"]
        flags += ["-l", str(size)] if size is not None else []
        flags += ["-b"] if is_before else []
        flags += ["-f"] if is_full else []
        try:
            new = tmux.run("split-window", "-d", "-t", pane, *flags, "-P", "-F", "#{pane_id}")
        except RuntimeError:
            with pytest.raises(Conflict):
                tree.split(pane, "%9999", orientation, size=size, is_before=is_before, is_full=is_full)  # type: ignore[arg-type]
            return tree, f"split {pane} {flags} refused"
        split = tree.split(pane, new, orientation, size=size, is_before=is_before, is_full=is_full)  # type: ignore[arg-type]
        return split, f"split {pane} {flags}"
    if way == "close" and len(tree.panes) > 1:
        tmux.run("kill-pane", "-t", pane)
        closed = tree.close(pane)
        assert closed is not None
        return closed, f"close {pane}"
    if way == "push":
        flag, amount = chance.choice(list(SIDES)), chance.randint(1, 12)
        tmux.run("resize-pane", "-t", pane, flag, str(amount))
        return tree.push(pane, SIDES[flag], amount), f"push {pane} {flag} {amount}"
    if way == "size":
        cols, rows = chance.randint(1, 90), chance.randint(1, 30)
        tmux.run("resize-pane", "-t", pane, "-x", str(cols), "-y", str(rows))
        return tree.resize_pane(pane, cols=cols, rows=rows), f"size {pane} {cols}x{rows}"
    if way == "window":
        cols, rows = chance.randint(20, 200), chance.randint(8, 60)
        tmux.run("resize-window", "-t", pane, "-x", str(cols), "-y", str(rows))
        return tree.resize(cols, rows), f"window {cols}x{rows}"
    if way == "swap":
        other = chance.choice(tree.panes)
        tmux.run("swap-pane", "-d", "-s", pane, "-t", other)
        return (tree.swap(pane, other) if pane != other else tree), f"swap {pane} {other}"
    if way == "preset":
        preset = chance.choice(PRESETS)
        tmux.run("select-layout", "-t", pane, preset)
        return arrange(tree, preset), f"preset {preset}"
    if way == "rotate" and len(tree.panes) > 1:
        tmux.run("rotate-window", "-t", pane, "-D")
        return tree.rotate(1), "rotate"
    return tree, "nothing"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(8))
def test_random_operations_leave_the_same_layout_as_tmux(seed: int, tmux: Tmux) -> None:
    chance = random.Random(seed)
    tree = _start(tmux, chance.randint(40, 200), chance.randint(15, 60))
    history = []
    for _ in range(40):
        tree, done = _step(chance, tmux, tree)
        history.append(done)
        assert _shown(tree) == tmux.run("display-message", "-p", "#{window_layout}"), history
        if len(tree.panes) > 14:
            break


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("count", [2, 3, 5, 7])
def test_a_preset_is_what_select_layout_makes(preset: str, count: int, tmux: Tmux) -> None:
    tree = _start(tmux, 133, 41)
    for _ in range(count - 1):
        new = tmux.run("split-window", "-d", "-P", "-F", "#{pane_id}")
        tree = arrange(tree.split(tree.panes[0], new, "vertical"), "tiled")
        tmux.run("select-layout", "tiled")
    tmux.run("select-layout", preset)
    assert _shown(arrange(tree, preset)) == tmux.run("display-message", "-p", "#{window_layout}")  # type: ignore[arg-type]


def test_a_layout_of_tmux_is_read_back_and_tmux_reads_ours(tmux: Tmux) -> None:
    tree = _start(tmux, 120, 40)
    for orientation in ("horizontal", "vertical", "horizontal"):
        new = tmux.run("split-window", "-d", "-h" if orientation == "horizontal" else "-v", "-P", "-F", "#{pane_id}")
        tree = tree.split(tree.panes[0], new, orientation)  # type: ignore[arg-type]
    text = tmux.run("display-message", "-p", "#{window_layout}")
    assert read_layout(text, tree.panes) == tree
    changed = arrange(tree, "main-vertical")
    tmux.run("select-layout", _shown(changed))
    assert tmux.run("display-message", "-p", "#{window_layout}") == _shown(changed)
