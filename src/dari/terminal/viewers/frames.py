"""What whoever looks at windows is told, as data."""

from __future__ import annotations

from msgspec import Struct


class FramePane(Struct, frozen=True, kw_only=True):
    """Where a pane is in the frame."""

    id: str
    left: int
    top: int
    cols: int
    rows: int
    name: str = ""


class FrameRow(Struct, frozen=True, array_like=True):
    """One row of one pane: text with SGR, exactly as wide as the pane."""

    pane: str
    row: int
    text: str


class FrameCursor(Struct, frozen=True):
    col: int
    row: int
    shape: str
    is_blinking: bool


class FrameModes(Struct, frozen=True, kw_only=True):
    """What the focused program asks of the terminal; the viewer's own terminal does the same meanwhile."""

    application_cursor: bool = False
    application_keypad: bool = False
    bracketed_paste: bool = False
    focus: bool = False
    mouse: str = "off"
    kitty_keyboard: int = 0


class FrameTab(Struct, frozen=True):
    id: str
    name: str


class ViewFrame(Struct, frozen=True, kw_only=True):
    """What changed since the last frame of this viewer; with `is_whole`, everything is drawn anew."""

    version: int
    is_whole: bool = False
    is_over: bool = False
    """Nothing is left to look at."""
    cols: int = 0
    rows: int = 0
    panes: list[FramePane] = []
    focused: str = ""
    changed: list[FrameRow] = []
    cursor: FrameCursor | None = None
    modes: FrameModes = FrameModes()
    title: str = ""
    window: str = ""
    window_id: str = ""
    window_number: int = 1
    window_count: int = 1
    tabs: list[FrameTab] = []
    tab: str = ""
    """The id of the tab that is shown."""
    is_zoomed: bool = False
    scrolled: int = 0
    """Rows that the focused pane is scrolled back."""
    is_copying: bool = False
    """The focused pane is in copy mode; `cursor` is the cursor of that mode."""
    approvals: int = 0
    """Questions of agents that wait for a person."""
    ended: int | None = None
    """The exit code of the focused pane's program, once it has one."""
    has_bell: bool = False
    clipboard: str = ""
    """What a program copied (OSC 52), in base64."""
