"""What the desks of the terminal answer, as data; the fields of design 002 §3.1 first, ours after them."""

from __future__ import annotations

from msgspec import Struct


class Success(Struct, frozen=True):
    success: bool = True


class Typed(Struct, frozen=True):
    success: bool = True
    mark: int = 0
    """The place in the output before it was typed, for `since` of crux_wait_for_output."""


class PaneInfo(Struct, frozen=True, kw_only=True):
    id: str
    pid: int
    cwd: str
    name: str = ""
    title: str = ""
    tty: str = ""
    cols: int
    rows: int
    left: int = 0
    top: int = 0
    window_id: str = ""
    tab_id: str = ""
    is_focused: bool = False
    is_zoomed: bool = False
    is_alive: bool = True
    exit_code: int | None = None
    shell: str = ""
    """bash, zsh, fish or sh; empty for any other program, in which commands cannot be executed."""
    process: str = ""
    is_at_prompt: bool = False
    mark: int = 0
    """The place in the output now, or for a new pane where it begins: for `since` of crux_wait_for_output."""


class PaneList(Struct, frozen=True):
    panes: list[PaneInfo]
    focused: str = ""


class Resized(Struct, frozen=True):
    success: bool
    cols: int
    rows: int


class Executed(Struct, frozen=True, kw_only=True):
    """`exit_code` is None while `status` is running."""

    exit_code: int | None
    stdout: str
    status: str
    command_id: str
    duration_ms: float
    cwd: str
    truncated: bool = False
    pane_id: str = ""
    end_known_by: str = ""
    """How the end is known: "shell" (its hooks told), "mark" (marks around the command told: ssh, docker exec, another
    user's shell), "idle" (its prompt came back: no exit code); empty while it runs."""
    mark: int = 0
    """The place in the pane's output where it began, for `since` of crux_wait_for_output."""


class Output(Struct, frozen=True):
    text: str
    line_count: int
    mark: int = 0
    """The place in the output now, for `since` of crux_wait_for_output."""


class Waited(Struct, frozen=True, kw_only=True):
    """`text` is the line with the match, or the last lines of the screen when it did not come."""

    matched: bool
    text: str
    match: str = ""
    groups: list[str | None] = []
    elapsed_ms: float = 0.0
    mark: int = 0
    reason: str = ""


class CreatedPane(PaneInfo, frozen=True, kw_only=True):
    """`waited` is what crux_wait_for_output would say, when there was something to wait for."""

    waited: Waited | None = None


class Directory(Struct, frozen=True):
    cwd: str


class RunningProcess(Struct, frozen=True):
    name: str
    pid: int
    command_line: str = ""
    is_shell: bool = False


class CursorState(Struct, frozen=True):
    col: int
    row: int
    shape: str = "block"
    is_visible: bool = True


class PaneState(Struct, frozen=True, kw_only=True):
    cols: int
    rows: int
    cursor: CursorState
    scroll_pos: int
    """Rows that the view is scrolled back."""
    id: str
    name: str = ""
    title: str = ""
    cwd: str = ""
    pid: int = 0
    tty: str = ""
    is_alive: bool = True
    exit_code: int | None = None
    is_at_prompt: bool = False
    is_asking_secret: bool = False
    is_full_screen: bool = False
    """A program draws on the alternate screen: an editor, a pager."""
    is_focused: bool = False
    is_zoomed: bool = False
    total_rows: int = 0
    mark: int = 0
    """The place in the output now, for `since` of crux_wait_for_output."""
    running_command: str = ""
    running_command_id: str = ""
    """For crux_wait_command and crux_interrupt_command."""
    last_exit_code: int | None = None


class PlainText(Struct, frozen=True):
    text: str


class Scrollback(Struct, frozen=True):
    text: str
    total_lines: int
    offset: int = 0
    line_count: int = 0
    next_offset: int | None = None


class Screenshot(Struct, frozen=True):
    """`image` is a PNG in base64."""

    image: str
    width: int
    height: int
    mime_type: str = "image/png"


class Saved(Struct, frozen=True):
    session_id: str
    panes: int = 0
    size_bytes: int = 0


class Restored(Struct, frozen=True):
    success: bool
    panes: list[str] = []
    """Ids of the panes, in the order of the session."""


class SessionInfo(Struct, frozen=True):
    session_id: str
    name: str
    saved_unix: float
    panes: int
    size_bytes: int


class SessionList(Struct, frozen=True):
    sessions: list[SessionInfo]


class ServerInfo(Struct, frozen=True, kw_only=True):
    pid: int
    version: str
    socket: str
    panes: int
    clients: int = 0
    uptime_s: float = 0.0
