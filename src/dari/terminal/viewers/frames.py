"""What whoever looks at windows is told, as data."""

from __future__ import annotations

from msgspec import Struct

from dari.terminal.api.results import PaneInfo


class Rows(Struct, frozen=True):
    """Rows `start` … `end` of a pane, both included; 0 is the top of the screen, negative ones scrolled off it."""

    text: str
    start: int
    end: int
    rows: int
    history: int
    cursor_row: int = 0


class PaneOverview(Struct, frozen=True, kw_only=True):
    info: PaneInfo
    history: int
    history_limit: int
    cursor_col: int
    cursor_row: int
    is_full_screen: bool
    words: list[str]
    """What was started in it."""


class TabOverview(Struct, frozen=True, kw_only=True):
    """`recent` holds the panes by when they had the focus, the focused one first; `layout` is as tmux writes it."""

    id: str
    name: str
    layout: str
    visible_layout: str
    is_zoomed: bool
    panes: list[str]
    recent: list[str]


class WindowOverview(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    cols: int
    rows: int
    active: str
    tabs: list[TabOverview]
    viewers: int = 0


class Overview(Struct, frozen=True):
    """Everything that is open."""

    windows: list[WindowOverview]
    panes: list[PaneOverview]
    active: str = ""
    focused: str = ""
    pid: int = 0
    socket: str = ""
    started_unix: float = 0


class StartedCommand(Struct, frozen=True):
    """A command that was started."""

    command_id: str
    pane_id: str


class CommandOutput(Struct, frozen=True, kw_only=True):
    """Whole lines up to `mark`, and the line that was begun up to `seen`; `lost_bytes` before them were not kept."""

    mark: int
    seen: int
    text: str = ""
    unfinished: str = ""
    lost_bytes: int = 0
    is_running: bool = True
    exit_code: int | None = None


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


class CopyModeResult(Struct, frozen=True):
    """`text` is what was copied, `is_found` whether a search found anything, `is_on` whether the mode goes on."""

    is_on: bool
    text: str = ""
    is_found: bool = True


class TmuxResult(Struct, frozen=True):
    """What a command of tmux printed; `is_for_caller`: nothing was done, the caller has to run it."""

    output: str = ""
    complaint: str = ""
    exit_code: int = 0
    is_for_caller: bool = False
