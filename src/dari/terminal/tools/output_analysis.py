"""Output as data, as an intent, and as a difference: design 002 §3.2.1, §3.2.2 and §3.2.10."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import asdict, replace

from dari.core.content import ImageContent, TextContent, ToolResult
from dari.core.context import Context
from dari.core.tool import tool
from dari.errors import InvalidInput
from dari.struct_types import ready
from dari.terminal.api.output_analysis import CaptureInfo, CaptureList, DetectedIntent, ParsedOutput
from dari.terminal.limits import DEFAULT_WAIT_MS, to_seconds
from dari.terminal.service import TerminalService
from dari.terminal.tools.approval import runs_commands, with_approval
from dari.terminal.tools.arguments import CommandId, FirstLine, LineCount, MaxTokens, PaneId, WaitMs
from dari.terminal.tools.output import CHARS_PER_TOKEN, DEFAULT_TOKENS, MAX_TOKENS, limit_output
from dari.text.sanitize import escape_hidden, sanitize_value_for_terminal


class OutputAnalysisTools:
    prefix = "crux"

    def __init__(self, terminal: TerminalService) -> None:
        self._approvals = terminal.approvals
        self._analysis = terminal.output_analysis
        self._commands = terminal.commands

    @tool(output="as_is")
    async def parse_output_structured(
        self,
        pane_id: PaneId | None = None,
        command_id: CommandId | None = None,
        offset: FirstLine | None = None,
        limit: LineCount = 0,
        hint: Annotated[str, Meta(description="name of a parser, such as docker_ps; keeps the others out")]
        | None = None,
        command: Annotated[str, Meta(description="the command that printed it, where the pane does not know")]
        | None = None,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> ParsedOutput:
        """Return the last command's output (or lines from offset) as data: {type, headers, rows | items | value}."""
        found = await self._analysis.parse(pane_id or "", command_id or "", offset, limit, hint or "", command or "")
        return _fitted(_cleaned(found), max_tokens)

    @tool()
    async def detect_intent(
        self,
        pane_id: PaneId | None = None,
        command_id: CommandId | None = None,
        offset: FirstLine | None = None,
        limit: LineCount = 0,
    ) -> DetectedIntent:
        """Tell what the last command's output means: {intent, confidence, context, suggested_actions, evidence}."""
        found = await self._analysis.detect_intent(pane_id or "", command_id or "", offset, limit)
        return msgspec.convert(sanitize_value_for_terminal(msgspec.to_builtins(found)), ready(DetectedIntent))

    @tool(scope="control", idempotent=False, output="as_is")
    async def capture_pane(
        self,
        pane_id: PaneId | None = None,
        history_rows: Annotated[int, Meta(description="rows of history above the screen, 0 to 1000")] = 0,
    ) -> CaptureInfo:
        """Keep what a pane shows now, for crux_visual_diff; returns {capture_id}."""
        return await self._analysis.capture(pane_id or "", history_rows)

    @tool()
    async def list_captures(self) -> CaptureList:
        """List captures that are kept, oldest first: {captures}."""
        return await self._analysis.list_captures()

    @runs_commands
    async def visual_diff(
        self,
        context: Context,
        before: Annotated[
            str, Meta(description="capture_id of crux_capture_pane; left out: the latest, or the screen before command")
        ]
        | None = None,
        after: Annotated[str, Meta(description="capture_id to compare with; left out: the screen now")] | None = None,
        pane_id: PaneId | None = None,
        command: Annotated[str, Meta(description="run this in between, and compare before and after it")] | None = None,
        timeout_ms: WaitMs = DEFAULT_WAIT_MS,
        structured: Annotated[
            bool, Meta(description="false: leave the copy of the picture out of the structured result")
        ] = True,
    ) -> ToolResult:
        """Compare two captures, or a pane before and after a command that is run; returns an image and what changed."""
        if command is not None and (before or after):
            raise InvalidInput("both a command and captures were given", "give command alone, or before and after")
        if command is not None:
            timeout_s = to_seconds(timeout_ms)
            begin = await self._analysis.capture(pane_id or "")
            await with_approval(
                self._approvals,
                context,
                lambda: self._commands.execute(command, begin.pane_id, timeout_s),
            )
            before, pane_id = begin.capture_id, begin.pane_id
        found = await self._analysis.visual_diff(before or "", after or "", pane_id or "")
        plain: dict[str, Any] = sanitize_value_for_terminal(msgspec.to_builtins(replace(found, image="")))
        image = ImageContent(data=found.image, mime_type=found.mime_type)
        structured_result = (
            {**plain, "image": found.image} if structured else {k: v for k, v in plain.items() if k != "image"}
        )
        return ToolResult([image, TextContent(text=_describe(plain))], structured_result)


def _describe(diff: dict[str, Any]) -> str:
    if diff["is_same"]:
        return "nothing changed"
    lines = [
        f"{diff['cells_changed']} cells and {diff['pixels_changed']} of {diff['pixels']} pixels changed "
        f"in {diff['rows_changed']} rows"
    ]
    if diff["scrolled"]:
        lines.append(f"the text moved {'up' if diff['scrolled'] > 0 else 'down'} by {abs(diff['scrolled'])} rows")
    for row in diff["rows"][:40]:
        lines += [f"row {row['row']}", f"- {row['before']}", f"+ {row['after']}"]
    return "\n".join(lines)


def _cleaned(found: ParsedOutput) -> ParsedOutput:
    """With nothing in any text that hides."""
    return msgspec.convert(sanitize_value_for_terminal(asdict(found)), ready(ParsedOutput))


def _fitted(found: ParsedOutput, max_tokens: int) -> ParsedOutput:
    """No more rows or items than fit into about so many tokens, and a note of how many were left out."""
    if not 1 <= max_tokens <= MAX_TOKENS:
        raise InvalidInput(f"max_tokens must be between 1 and {MAX_TOKENS}, got {max_tokens}", "ask for less")
    budget = max_tokens * CHARS_PER_TOKEN
    size = _size(found)
    if size <= budget:
        return found
    for name in ("rows", "items"):
        entries: list[Any] = getattr(found, name) or []
        if not entries:
            continue
        kept, used = [], _size(replace(found, **{name: None}))
        for entry in entries:
            used += len(msgspec.json.encode(entry)) + 1
            if used > budget:
                break
            kept.append(entry)
        notes = [*found.notes, f"{len(entries) - len(kept)} of {len(entries)} {name} left out: raise max_tokens"]
        found = replace(found, notes=notes, truncated=True, **{name: kept})
    if _size(found) <= budget + 500:
        return found
    text = found.value if isinstance(found.value, str) else msgspec.json.encode(found.value).decode()
    notes = [*found.notes, "value is cut, as text: raise max_tokens"]
    return replace(found, value=limit_output(text, max_tokens).text, notes=notes, truncated=True)


def _size(found: ParsedOutput) -> int:
    return len(escape_hidden(msgspec.json.encode(found).decode()))
