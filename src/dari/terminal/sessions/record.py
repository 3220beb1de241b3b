"""A saved session as data: windows with their split trees, and panes with what it takes to bring them back."""

from __future__ import annotations

from msgspec import Struct

from dari.errors import InvalidInput
from dari.terminal.layout.cells import Cell, Leaf, Orientation, Split

FORMAT = 1


class SavedCell(Struct, frozen=True, omit_defaults=True):
    """A pane (`pane` is its id when it was saved) or a split of several."""

    cols: int
    rows: int
    pane: str = ""
    orientation: Orientation = "horizontal"
    children: tuple[SavedCell, ...] = ()


class SavedTab(Struct, frozen=True):
    root: SavedCell
    recent: tuple[str, ...]
    """Panes by when they had the focus, the focused one first."""
    name: str = ""
    is_zoomed: bool = False


class SavedWindow(Struct, frozen=True):
    cols: int
    rows: int
    tabs: tuple[SavedTab, ...]
    active: int = 0
    name: str = ""


class SavedPane(Struct, frozen=True, kw_only=True):
    """`screen` is a snapshot of the engine, compressed; `command` was running in the shell."""

    id: str
    name: str
    cwd: str
    argv: tuple[str, ...] = ()
    shell: str = ""
    env: dict[str, str] = {}
    command: str = ""
    screen: bytes = b""


class SavedSession(Struct, frozen=True, kw_only=True):
    format: int = FORMAT
    name: str = ""
    saved_unix: float = 0
    windows: tuple[SavedWindow, ...] = ()
    panes: tuple[SavedPane, ...] = ()
    focused: str = ""


def to_saved(cell: Cell) -> SavedCell:
    if isinstance(cell, Leaf):
        return SavedCell(cell.cols, cell.rows, cell.pane)
    return SavedCell(cell.cols, cell.rows, "", cell.orientation, tuple(map(to_saved, cell.children)))


def to_cell(saved: SavedCell, names: dict[str, str]) -> Cell:
    """The tree with the panes' new ids."""
    if not saved.children:
        if saved.pane not in names:
            raise InvalidInput(f"the session's layout names pane {saved.pane!r}, which it does not hold", "save anew")
        return Leaf(names[saved.pane], saved.cols, saved.rows)
    return Split(saved.orientation, tuple(to_cell(child, names) for child in saved.children), saved.cols, saved.rows)


def panes_in(saved: SavedCell) -> list[str]:
    if not saved.children:
        return [saved.pane]
    return [pane for child in saved.children for pane in panes_in(child)]
