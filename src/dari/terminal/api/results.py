"""What the desks of the terminal answer, as data; the fields of design 002 §3.1 first, ours after them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct


class Success(Struct, frozen=True):
    success: bool = True


class InputResult(Struct, frozen=True):
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


class ResizeResult(Struct, frozen=True):
    success: bool
    cols: int
    rows: int


class ExecuteResult(Struct, frozen=True, kw_only=True):
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


class PaneOutput(Struct, frozen=True):
    text: str
    line_count: int
    mark: int = 0
    """The place in the output now, for `since` of crux_wait_for_output."""


class WaitResult(Struct, frozen=True, kw_only=True):
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

    waited: WaitResult | None = None


class WorkingDirectory(Struct, frozen=True):
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


class SaveResult(Struct, frozen=True):
    session_id: str
    panes: int = 0
    size_bytes: int = 0


class RestoreResult(Struct, frozen=True):
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


Document: TypeAlias = Any
"""Any JSON value."""


class ParsedOutput(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Output as data: a table has `headers` and `rows`, a list `items`, one thing `value`; reports have both of these.

    `lines` are ranges of lines of the text, counted from 1, that the data came from.
    """

    type: str
    parser: str
    confidence: float
    headers: list[str] | None = None
    rows: list[list[str]] | None = None
    items: list[dict[str, Document]] | None = None
    value: Document = None
    notes: list[str] = []
    lines: list[tuple[int, int]] = []
    pane_id: str = ""
    command: str = ""
    command_id: str = ""
    exit_code: int | None = None
    truncated: bool = False


class EvidenceLine(Struct, frozen=True):
    line: int
    text: str
    rule: str


class DetectedIntent(Struct, frozen=True, kw_only=True):
    intent: str
    confidence: float
    context: dict[str, Document]
    suggested_actions: list[str]
    evidence: list[EvidenceLine]
    alternatives: dict[str, float]
    pane_id: str = ""
    command: str = ""
    command_id: str = ""
    exit_code: int | None = None


class CaptureInfo(Struct, frozen=True, kw_only=True):
    capture_id: str
    pane_id: str
    cols: int
    rows: int
    taken_unix: float


class CaptureList(Struct, frozen=True):
    captures: list[CaptureInfo]


class DiffRow(Struct, frozen=True):
    """A row that changed; `spans` are columns from … to, the last one not included."""

    row: int
    before: str
    after: str
    spans: list[tuple[int, int]]


class DiffBox(Struct, frozen=True):
    left: int
    top: int
    right: int
    bottom: int


class VisualDiff(Struct, frozen=True, kw_only=True):
    """`image` is a PNG in base64: the later capture, faded where nothing changed."""

    is_same: bool
    before: CaptureInfo
    after: CaptureInfo
    cells_changed: int
    pixels_changed: int
    pixels: int
    rows: list[DiffRow]
    rows_changed: int
    boxes: list[DiffBox]
    scrolled: int
    is_cursor_moved: bool
    image: str
    width: int
    height: int
    mime_type: str = "image/png"


class ClipInfo(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`text` is empty for what is no text; `from_pane` for what came from no pane."""

    id: str
    kind: str
    mime_type: str
    size_bytes: int
    copied_unix: float
    origin: Literal["osc52", "tool", "selection"]
    from_pane: str = ""
    from_pane_name: str = ""
    text: str = ""
    truncated: bool = False


class ClipList(Struct, frozen=True):
    """Newest first."""

    entries: list[ClipInfo]
    total: int


class PasteResult(Struct, frozen=True, kw_only=True):
    success: bool
    pane_id: str
    kind: str
    form: str
    text: str
    """What was sent."""
    is_bracketed: bool
    is_safe: bool
    notes: list[str] = []


class WorkspacePane(Struct, frozen=True):
    id: str
    name: str
    command: str = ""


class LoadedWorkspace(Struct, frozen=True, kw_only=True):
    success: bool
    workspace: str
    description: str
    window_id: str
    panes: list[WorkspacePane]
    focused: str


class WorkspaceInfo(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    panes: list[str]
    source: Literal["built-in", "user"]


class WorkspaceList(Struct, frozen=True):
    workspaces: list[WorkspaceInfo]


class StepResult(Struct, frozen=True, kw_only=True):
    """How one step ended; `reason` says why when it is not done or ready."""

    step: int
    pane: str
    pane_id: str = ""
    command: str = ""
    status: Literal["done", "ready", "failed", "timeout", "skipped"]
    exit_code: int | None = None
    matched: str = ""
    output: str = ""
    duration_ms: float = 0.0
    command_id: str = ""
    reason: str = ""
    clean_up: Literal["", "ended", "closed", "still running"] = ""


class StepEvent(Struct, frozen=True, kw_only=True):
    """A step that began, or ended."""

    step: int
    pane: str
    status: Literal["started", "done", "ready", "failed", "timeout"]
    command: str = ""
    matched: str = ""
    exit_code: int | None = None
    reason: str = ""


class StepEvents(Struct, frozen=True):
    events: list[StepEvent]


class WorkflowResult(Struct, frozen=True, kw_only=True):
    success: bool
    status: Literal["done", "aborted"]
    steps: list[StepResult]
    opened: list[str] = []
    """Ids of panes that were opened for it."""


class InjectedContext(Struct, frozen=True, kw_only=True):
    context_id: str
    pane_id: str
    shell: str
    names: list[str]
    commands_left: int | None = None
    """None: until it is removed."""


class ContextList(Struct, frozen=True):
    contexts: list[InjectedContext]


class StreamEvent(Struct, frozen=True, omit_defaults=True, kw_only=True):
    event: Literal["output", "exit"]
    pane_id: str
    text: str = ""
    exit_code: int | None = None
    command_id: str = ""


class StreamChunk(Struct, frozen=True, kw_only=True):
    """What came since a mark; `matched` is the line that the stream was to stop at."""

    events: list[StreamEvent]
    mark: int
    command_id: str = ""
    matched: str = ""
    lost_bytes: int = 0
    rest: str = ""
    """The beginning of a line whose end has not come, for the next call."""


class StreamStart(Struct, frozen=True, kw_only=True):
    pane_id: str
    mark: int
    command_id: str = ""


class StreamResult(Struct, frozen=True, kw_only=True):
    """All that was streamed, the end of it when it is too much."""

    pane_id: str
    text: str
    reason: Literal["exit", "matched", "timeout", "limit"]
    exit_code: int | None = None
    command_id: str = ""
    matched: str = ""
    events: int = 0
    truncated: bool = False
    mark: int = 0
    resource: str = ""
    """Subscribe to it to hear of what comes later."""


class SnapshotInfo(Struct, frozen=True, kw_only=True):
    snapshot_id: str
    panes: int
    size_bytes: int
    taken_unix: float = 0.0


class SnapshotList(Struct, frozen=True):
    snapshots: list[SnapshotInfo]


class InputMethodResult(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`preedits`: what was being composed after each key, which was never sent; only when it was asked for."""

    success: bool
    pane_id: str
    committed: str
    writes: int
    key_count: int
    is_echoed: bool
    preedits: list[str] = []
