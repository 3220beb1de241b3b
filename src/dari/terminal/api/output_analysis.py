"""Output understood: as data, as an intent, and as a difference between two moments of a screen."""

from __future__ import annotations

import asyncio
import secrets
from base64 import b64encode
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from dari.daemon.stub import expose
from dari.errors import InvalidInput, NotFound
from dari.terminal.api.screen import all_lines, check_history, last_lines
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.panes.pane import Pane

if TYPE_CHECKING:
    from dari.terminal.screenshot.diff import ScreenCapture
    from dari.terminal.screenshot.painter import Painter

MAX_READ_CHARS = 2_000_000
"""Of one output; parsers get its end when it is longer."""
MAX_CAPTURES = 64
MAX_CAPTURES_BYTES = 16 << 20
MAX_ROWS_SHOWN = 200


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


@dataclass(frozen=True, slots=True)
class PaneText:
    """A text of a pane, with the command that printed it where that is known."""

    pane_id: str
    text: str
    command: str = ""
    command_id: str = ""
    exit_code: int | None = None
    is_truncated: bool = False


class OutputAnalysisApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer
        self._captures: OrderedDict[str, tuple[CaptureInfo, bytes]] = OrderedDict()
        self._painter: Painter | None = None
        self._painting = asyncio.Lock()

    @expose("crux:output/parse", "read", is_slow=True)
    async def parse(
        self,
        pane_id: str = "",
        command_id: str = "",
        offset: int | None = None,
        limit: int = 0,
        hint: str = "",
        command: str = "",
    ) -> ParsedOutput:
        """Output as data: of a command, of `limit` lines from `offset`, else of the last command."""
        from dari.terminal.output_parsers.registry import parse_structured

        passage = self._passage(pane_id, command_id, offset, limit)
        named = command or passage.command
        found = await asyncio.to_thread(parse_structured, passage.text, command=named, hint=hint or None)
        return ParsedOutput(
            **asdict(found),
            pane_id=passage.pane_id,
            command=named,
            command_id=passage.command_id,
            exit_code=passage.exit_code,
            truncated=passage.is_truncated,
        )

    @expose("crux:output/intent", "read", is_slow=True)
    async def detect_intent(
        self, pane_id: str = "", command_id: str = "", offset: int | None = None, limit: int = 0
    ) -> DetectedIntent:
        """What a command and its output mean, and what could be run next. Nothing is run."""
        from dari.terminal.output_parsers.intents import detect_intent

        passage = self._passage(pane_id, command_id, offset, limit)
        cwd = self._all.find(passage.pane_id).cwd()
        found = await asyncio.to_thread(detect_intent, passage.command, passage.text, passage.exit_code, cwd)
        return DetectedIntent(
            intent=found.intent,
            confidence=found.confidence,
            context=found.context,
            suggested_actions=found.suggested_actions,
            evidence=[EvidenceLine(item.line, item.text, item.rule) for item in found.evidence],
            alternatives=found.alternatives,
            pane_id=passage.pane_id,
            command=passage.command,
            command_id=passage.command_id,
            exit_code=passage.exit_code,
        )

    @expose("crux:pane/capture", "read")
    async def capture(self, pane_id: str = "", history_rows: int = 0) -> CaptureInfo:
        """Keep what the pane shows now, for a comparison later; the oldest captures go first."""
        check_history(history_rows)
        pane = self._all.find(pane_id)
        return self._keep(pane, history_rows)[0]

    @expose("crux:pane/list-captures", "read")
    async def list_captures(self) -> CaptureList:
        """Oldest first."""
        return CaptureList([info for info, _ in self._captures.values()])

    @expose("crux:pane/visual-diff", "read", is_slow=True)
    async def visual_diff(self, before: str = "", after: str = "", pane_id: str = "") -> VisualDiff:
        """Compare two captures; without `after` the pane as it is now, without `before` its last capture."""
        from dari.terminal.screenshot.diff import ScreenCapture, visual_diff

        old_info, old = self._find(before) if before else self._last_of(self._all.find(pane_id))
        new_info, new = self._find(after) if after else self._keep(self._all.find(pane_id or old_info.pane_id), 0)
        async with self._painting:
            painter = await self._ready_painter()
            found = await asyncio.to_thread(
                lambda: visual_diff(ScreenCapture.load(old), ScreenCapture.load(new), painter)
            )
        rows = [DiffRow(row.row, row.before, row.after, list(row.spans)) for row in found.rows[:MAX_ROWS_SHOWN]]
        return VisualDiff(
            is_same=found.is_same,
            before=old_info,
            after=new_info,
            cells_changed=len(found.cells),
            pixels_changed=found.pixels_changed,
            pixels=found.pixels,
            rows=rows,
            rows_changed=len(found.rows),
            boxes=[DiffBox(box.left, box.top, box.right, box.bottom) for box in found.boxes],
            scrolled=found.scrolled,
            is_cursor_moved=found.cursor_before != found.cursor_after,
            image=b64encode(found.picture.png).decode(),
            width=found.picture.width,
            height=found.picture.height,
        )

    # Passages

    def _passage(self, pane_id: str, command_id: str, offset: int | None, limit: int) -> PaneText:
        if command_id:
            if offset is not None or limit:
                raise InvalidInput("both a command and lines were given", "give command_id, or offset and limit")
            return self._of_command(command_id)
        pane = self._all.find(pane_id)
        if offset is not None or limit:
            return _cut(PaneText(pane.id, _lines(pane, offset, limit)))
        if pane.commands.records and not pane.engine.is_alternate:
            return self._of_record(pane, pane.commands.records[-1].id)
        return _cut(PaneText(pane.id, last_lines(pane.engine, pane.engine.rows)))

    def _of_command(self, command_id: str) -> PaneText:
        pane_id, colon, own_id = command_id.partition(":")
        if not colon or pane_id not in self._all.panes:
            raise NotFound(f"no command has the id {command_id!r}", "use the command_id that crux_execute_command gave")
        return self._of_record(self._all.panes[pane_id], own_id)

    def _of_record(self, pane: Pane, own_id: str) -> PaneText:
        record = pane.commands.find(own_id)
        return _cut(
            PaneText(
                pane.id, record.output, record.command, f"{pane.id}:{own_id}", record.exit_code, record.is_truncated
            )
        )

    # Captures

    def _keep(self, pane: Pane, history_rows: int) -> tuple[CaptureInfo, bytes]:
        from dari.terminal.screenshot.diff import ScreenCapture

        capture: ScreenCapture = ScreenCapture.of(pane.engine, pane.id, -min(history_rows, pane.engine.history))
        data = capture.stored()
        info = CaptureInfo(
            capture_id=f"cap-{secrets.token_hex(4)}",
            pane_id=pane.id,
            cols=capture.grid.cols,
            rows=len(capture.grid),
            taken_unix=capture.taken,
        )
        self._captures[info.capture_id] = (info, data)
        while len(self._captures) > MAX_CAPTURES or (
            len(self._captures) > 2 and sum(len(kept) for _, kept in self._captures.values()) > MAX_CAPTURES_BYTES
        ):
            self._captures.popitem(last=False)
        return info, data

    def _find(self, capture_id: str) -> tuple[CaptureInfo, bytes]:
        if capture_id not in self._captures:
            raise NotFound(
                f"no capture has the id {capture_id!r}",
                f"take one with crux_capture_pane; the newest {MAX_CAPTURES} are kept",
            )
        return self._captures[capture_id]

    def _last_of(self, pane: Pane) -> tuple[CaptureInfo, bytes]:
        for info, data in reversed(self._captures.values()):
            if info.pane_id == pane.id:
                return info, data
        raise NotFound(f"pane {pane.id} has no capture", "take one with crux_capture_pane first")

    async def _ready_painter(self) -> Painter:
        if self._painter is None:
            from dari.terminal.screenshot.painter import Painter

            self._painter = await asyncio.to_thread(Painter)
        return self._painter


def _lines(pane: Pane, offset: int | None, limit: int) -> str:
    if limit < 0 or (offset is not None and offset < 0):
        raise InvalidInput(
            f"offset and limit must be 0 or more, got {offset} and {limit}", "count from 0, the oldest line"
        )
    if offset is None:
        return last_lines(pane.engine, limit)
    lines = all_lines(pane.engine)[offset:]
    return "\n".join(lines[:limit] if limit else lines)


def _cut(passage: PaneText) -> PaneText:
    if len(passage.text) <= MAX_READ_CHARS:
        return passage
    text = passage.text[-MAX_READ_CHARS:]
    return PaneText(
        passage.pane_id,
        text[text.find("\n") + 1 :],
        passage.command,
        passage.command_id,
        passage.exit_code,
        is_truncated=True,
    )
