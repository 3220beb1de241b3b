"""Workspaces, steps across panes and streams: design 002 §3.2.5, §3.2.6 and §3.2.7."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from secrets import token_hex
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.errors import DariError
from dari.terminal.api.streams import StreamEvent
from dari.terminal.api.workflow import StepEvent, StepEvents, StepResult, WorkflowResult, WorkflowStep
from dari.terminal.api.workspaces import LoadedWorkspace, WorkspaceList
from dari.terminal.limits import MAX_WAIT_MS, to_seconds
from dari.terminal.service import TerminalService
from dari.terminal.tools.approval import runs_commands, with_approval
from dari.terminal.tools.arguments import MaxTokens, PaneId, Regex
from dari.terminal.tools.output import CHARS_PER_TOKEN, DEFAULT_TOKENS, limit_output

BEAT_S = 5.0
"""A client that gives up on silent calls hears from a long one this often."""
BEAT = 0.001
"""Progress has to grow with each notification, also with those that tell of nothing new."""

Follow = Callable[[int, float], Awaitable[StepEvents]]


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


class StepReport:
    def __init__(self, context: Context, steps: int) -> None:
        self._context = context
        self._steps = steps
        self._seen = 0
        self._beats = 0
        self._ended: set[int] = set()

    async def during(self, work: Awaitable[WorkflowResult], follow: Follow) -> WorkflowResult:
        """`work`, with progress as it goes on; what `follow` did not bring in time comes from the result."""
        if not self._context.wants_progress:
            return await work
        following = asyncio.create_task(self._follow(follow))
        try:
            done = await work
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        for result in done.steps:
            if result.status != "skipped" and result.step not in self._ended:
                await self._tell(result.step, _outcome(result))
        return done

    async def _follow(self, follow: Follow) -> None:
        with suppress(DariError):  # the call itself says what is wrong
            while True:
                events = (await follow(self._seen, BEAT_S)).events
                for event in events:
                    await self._tell(event.step, _outcome(event))
                    if event.status != "started":
                        self._ended.add(event.step)
                if not events:
                    self._beats += 1
                    await self._progress(f"{self._beats * BEAT_S:g} s")

    async def _tell(self, step: int, what: str) -> None:
        self._seen += 1
        await self._progress(f"step {step} of {self._steps}: {what}")

    async def _progress(self, message: str) -> None:
        done = self._seen + self._beats * BEAT
        await self._context.progress(done, 2 * self._steps, limit_output(message, 200).text)


def _outcome(event: StepEvent | StepResult) -> str:
    where = f"{event.pane} " if event.pane else ""
    if event.status == "started":
        return f"{where}started {event.command}".rstrip()
    why = event.matched or event.reason or ("" if event.exit_code is None else f"exit code {event.exit_code}")
    return f"{where}{event.status}: {why}" if why else f"{where}{event.status}"


STREAM_POLL_S = 10.0
MAX_EVENTS = 10_000


class WorkflowTools:
    prefix = "crux"

    def __init__(self, terminal: TerminalService) -> None:
        self._approvals = terminal.approvals
        self._workspaces = terminal.workspaces
        self._workflow = terminal.workflow
        self._streams = terminal.streams

    @tool(scope="control", idempotent=False, destructive=True, open_world=True, timeout_s=INNER_LIMITS_ONLY)
    async def load_workspace(
        self,
        context: Context,
        name: Annotated[str, Meta(description="name of crux_list_workspaces, or the path of a .toml file")],
        cwd: Annotated[str, Meta(description="directory of its panes; left out: as the workspace says")] | None = None,
        run: Annotated[bool, Meta(description="false: open the panes without running their commands")] = True,
        replace: Annotated[bool, Meta(description="true: close the panes that are open")] = False,
        commands: Annotated[
            dict[str, str], Meta(description="pane name to command, in place of those of the workspace")
        ]
        | None = None,
    ) -> LoadedWorkspace:
        """Open named panes in a layout (debug-session, full-stack, agent-team-3, monitoring, or a file of yours)."""
        return await with_approval(
            self._approvals,
            context,
            lambda: self._workspaces.load_workspace(name, cwd or "", run, replace, commands),
        )

    @tool()
    async def list_workspaces(self) -> WorkspaceList:
        """List the workspaces that can be loaded, with their panes: {workspaces}."""
        return await self._workspaces.list_workspaces()

    @runs_commands
    async def coordinate_panes(
        self,
        context: Context,
        steps: Annotated[list[WorkflowStep], Meta(description="what to do, in order; see Step")],
        go_on: Annotated[bool, Meta(description="true: do the rest also when a step fails")] = False,
        clean_up: Annotated[
            bool, Meta(description="false: leave running what the steps started when one fails")
        ] = True,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> WorkflowResult:
        """Run steps in panes in order, each until its wait_for text came or it ended; returns {success, steps}."""
        limit_output("", max_tokens)
        watch = token_hex(8)
        report = StepReport(context, len(steps))
        done = await report.during(
            with_approval(
                self._approvals,
                context,
                lambda: self._workflow.coordinate(steps, go_on, clean_up, watch),
            ),
            lambda seen, patience_s: self._workflow.follow_steps(watch, seen, patience_s),
        )
        each = max(1, max_tokens // len(done.steps))
        return replace(done, steps=[_shown(step, each) for step in done.steps])

    @runs_commands
    async def stream_output(
        self,
        context: Context,
        pane_id: PaneId | None = None,
        command: Annotated[str, Meta(description="run this and stream it; left out: what the pane prints")]
        | None = None,
        until: Annotated[str, Meta(description="stop at output that matches, such as ^done")] | None = None,
        regex: Regex = True,
        timeout_ms: Annotated[int, Meta(description=f"milliseconds to stream, 1 to {MAX_WAIT_MS}")] = 60_000,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> StreamResult:
        """Stream a pane's output as progress while it comes, until exit, a match or the time; returns {text}."""
        timeout_s = to_seconds(timeout_ms, min_ms=1)
        limit_output("", max_tokens)
        start = await with_approval(
            self._approvals,
            context,
            lambda: self._streams.begin(pane_id or "", command or "", until or "", regex),
        )
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        gathered = _Gathered(context, max_tokens * CHARS_PER_TOKEN)
        now = StreamResult(
            pane_id=start.pane_id,
            text="",
            reason="timeout",
            command_id=start.command_id,
            mark=start.mark,
            resource=f"crux://pane/{start.pane_id}/scrollback",
        )
        rest = ""
        while (left_s := deadline - loop.time()) > 0 and now.reason == "timeout":
            news = await self._streams.follow(
                start.pane_id, now.mark, now.command_id, min(left_s, STREAM_POLL_S), until or "", regex, rest
            )
            now, rest = replace(now, mark=news.mark, command_id=news.command_id or now.command_id), news.rest
            for event in news.events:
                await gathered.tell(event)
                if event.event == "exit":
                    now = replace(now, reason="exit", exit_code=event.exit_code)
            if news.matched:
                now = replace(now, reason="matched", matched=limit_output(news.matched, 500).text)
            elif gathered.count >= MAX_EVENTS:
                now = replace(now, reason="limit")
        return replace(
            now,
            text=limit_output(gathered.text, max_tokens).text,
            events=gathered.count,
            truncated=gathered.is_truncated,
        )


class _Gathered:
    """Events sent to the caller, and the end of their text."""

    def __init__(self, context: Context, most_chars: int) -> None:
        self._context = context
        self._most_chars = most_chars
        self.text = ""
        self.count = 0
        self.is_truncated = False

    async def tell(self, event: StreamEvent) -> None:
        """As `{"event": "output", "data": {"pane_id": …, "text": …}}`, which is what the design's SSE events carry."""
        self.count += 1
        cleaned = limit_output(event.text).text
        data: dict[str, object] = {"pane_id": event.pane_id}
        if event.event == "output":
            data["text"] = cleaned
        else:
            data["exit_code"] = event.exit_code
        message = msgspec.json.encode({"event": event.event, "data": data}).decode()
        await self._context.progress(self.count, message=message)
        whole = self.text + event.text
        self.is_truncated = self.is_truncated or len(whole) > self._most_chars
        self.text = whole[-self._most_chars :]


def _shown(step: StepResult, max_tokens: int) -> StepResult:
    return replace(
        step,
        output=limit_output(step.output, max_tokens).text,
        matched=limit_output(step.matched, 500).text,
        reason=limit_output(step.reason, 500).text,
    )
