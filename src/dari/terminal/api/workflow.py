"""Steps across panes: one after the other or several at once, each until it is done or its output says it is up."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from dari.daemon.stub import expose
from dari.errors import Conflict, DariError, InvalidInput, NotFound
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.api.commands import start_command
from dari.terminal.input_policy import PendingText, check_all
from dari.terminal.limits import DEFAULT_WAIT_S, MAX_WAIT_MS, MAX_WAIT_S
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.panes.commands import CommandRecord
from dari.terminal.panes.expect import QUIET_S, make_matcher
from dari.terminal.panes.pane import Pane
from dari.terminal.window_manager import PanePlacement

MAX_STEPS = 50
MAX_OUTPUT_CHARS = 8000
END_S = 3.0


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


class WorkflowStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step: a command in a pane, text to wait for, or both.

    With `wait_for` it is ready when that text was printed and the command goes on; without, it is done when the command
    has ended with exit code 0. Steps that follow each other with the same `group` run at the same time.
    """

    pane: Annotated[str, Meta(description="id or name; a name that no pane has opens one; empty: the focused one")] = ""
    command: Annotated[str, Meta(description="a line of shell, such as npm start")] = ""
    wait_for: Annotated[str, Meta(description="text that makes the step ready, such as listening on")] = ""
    regex: Annotated[bool, Meta(description="true: wait_for is a regular expression")] = False
    timeout_ms: Annotated[int, Meta(description=f"milliseconds for this step, 1 to {MAX_WAIT_MS}")] = 120_000
    group: Annotated[str, Meta(description="neighbours of one group run at the same time")] = ""
    cwd: Annotated[str, Meta(description="directory of a pane that is opened for the step")] = ""
    allow_failure: Annotated[bool, Meta(description="true: the rest goes on when it fails")] = False


@dataclass(slots=True)
class _Run:
    """What one call has started."""

    opened: dict[str, str] = field(default_factory=dict)
    """Panes by the name that the steps use."""
    started: list[tuple[int, Pane, CommandRecord]] = field(default_factory=list)
    results: dict[int, StepResult] = field(default_factory=dict)
    agreed: dict[str, str] = field(default_factory=dict)
    step_log: _StepLog = field(default_factory=lambda: _StepLog())


class _StepLog:
    """What happened to the steps of one call, for who follows them."""

    def __init__(self) -> None:
        self.events: list[StepEvent] = []
        self.users = 0
        self._news = asyncio.Event()

    def add(self, event: StepEvent) -> None:
        self.events.append(event)
        self._news.set()
        self._news = asyncio.Event()

    async def after(self, seen: int, timeout_s: float) -> list[StepEvent]:
        if len(self.events) <= seen:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._news.wait()
            except TimeoutError:
                pass
        return self.events[seen:]


class WorkflowApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer
        self._opening = asyncio.Lock()
        self._step_logs: dict[str, _StepLog] = {}

    @expose("crux:pane/coordinate", "control", ends_with_caller=True)
    @partial(approvable, unhashed=("watch",))
    async def coordinate(
        self, steps: list[WorkflowStep], go_on: bool = False, clean_up: bool = True, watch: str = ""
    ) -> WorkflowResult:
        """Do the steps in order; the first that fails skips the rest, unless `go_on`.

        Then, and when the caller leaves, what the steps started and still runs is ended, unless not `clean_up`. All
        commands are judged before the first one runs. `watch` is a word of the caller's for `follow_steps`.
        """
        self._check(steps)
        run = _Run(
            agreed=check_all(
                self._all.guard, [self._intended(step) for step in steps if step.command], approved_message()
            )
        )
        try:
            with self._open_step_log(watch) as run.step_log:
                is_whole = await self._do(steps, run, go_on)
        except BaseException:
            if clean_up:
                await asyncio.shield(self._end(run))
            raise
        if not is_whole and clean_up and not go_on:
            await self._end(run)
        results = [run.results.get(at) or _skipped(at, step) for at, step in enumerate(steps, 1)]
        return WorkflowResult(
            success=is_whole,
            status="done" if is_whole or go_on else "aborted",
            steps=results,
            opened=list(run.opened.values()),
        )

    @expose("crux:pane/coordinate-steps", "read", ends_with_caller=True)
    async def follow_steps(self, watch: str, seen: int = 0, timeout_s: float = DEFAULT_WAIT_S) -> StepEvents:
        """What happened after the first `seen` events to the steps of the call with that word, before or after it came.

        Empty after the time, and when there was no such call.
        """
        with self._open_step_log(watch) as step_log:
            return StepEvents(await step_log.after(max(0, seen), min(max(0.0, timeout_s), MAX_WAIT_S)))

    @contextmanager
    def _open_step_log(self, watch: str) -> Iterator[_StepLog]:
        step_log = self._step_logs.setdefault(watch, _StepLog()) if watch else _StepLog()
        step_log.users += 1
        try:
            yield step_log
        finally:
            step_log.users -= 1
            if not step_log.users and watch:
                self._step_logs.pop(watch, None)

    async def _do(self, steps: Sequence[WorkflowStep], run: _Run, go_on: bool) -> bool:
        is_whole = True
        for _, group in groupby(enumerate(steps, 1), lambda pair: pair[1].group or pair[0]):
            together = list(group)
            tasks = [asyncio.create_task(self._step(at, step, run)) for at, step in together]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            failed = [at for at, step in together if not _is_fine(run.results[at]) and not step.allow_failure]
            is_whole = is_whole and not failed
            if failed and not go_on:
                break
        return is_whole

    async def _step(self, at: int, step: WorkflowStep, run: _Run) -> None:
        began = time.perf_counter()
        run.step_log.add(StepEvent(step=at, pane=step.pane, status="started", command=step.command))
        try:
            result = await self._carry_out(at, step, run)
        except DariError as error:
            reason = f"{error.message}; {error.hint}" if error.hint else error.message
            result = StepResult(step=at, pane=step.pane, command=step.command, status="failed", reason=reason)
        run.results[at] = replace(result, duration_ms=round((time.perf_counter() - began) * 1000, 3))
        run.step_log.add(step_event(result))

    async def _carry_out(self, at: int, step: WorkflowStep, run: _Run) -> StepResult:
        pane = await self._pane(step, run)
        begin = StepResult(step=at, pane=step.pane, pane_id=pane.id, command=step.command, status="done")
        limit_s = step.timeout_ms / 1000
        mark = pane.position
        record: CommandRecord | None = None
        if step.command:
            # The directory may be another one than when all were judged.
            record = await start_command(self._all, pane, step.command, run.agreed.get(step.command, ""))
            run.started.append((at, pane, record))
            begin = replace(begin, command_id=f"{pane.id}:{record.id}")
        if step.wait_for:
            return await self._await_text(begin, step, pane, record, mark, limit_s)
        assert record is not None
        try:
            async with asyncio.timeout(limit_s):
                await record.done.wait()
        except TimeoutError:
            return _ended(begin, record, "timeout", f"it still runs after {limit_s:g} s")
        if record.exit_code:
            return _ended(begin, record, "failed", f"exit code {record.exit_code}")
        return _ended(begin, record, "done")

    async def _await_text(
        self, begin: StepResult, step: WorkflowStep, pane: Pane, record: CommandRecord | None, mark: int, limit_s: float
    ) -> StepResult:
        since = mark if record is not None else pane.answer_mark
        waiting = asyncio.create_task(pane.wait_for(step.wait_for, is_regex=step.regex, timeout_s=limit_s, since=since))
        ending = asyncio.create_task(record.done.wait()) if record is not None else None
        try:
            either: set[asyncio.Task[Any]] = {waiting} if ending is None else {waiting, ending}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                # What may be the beginning of an echo is looked at again after a moment.
                await asyncio.wait({waiting}, timeout=3 * QUIET_S)
            if waiting.done() and (error := waiting.exception()) is None:
                return replace(_ended(begin, record, "ready"), matched=waiting.result().line)
            if not waiting.done():
                reason = f"the command ended before {step.wait_for!r} came"
                return _ended(begin, record, "failed", reason)
            if isinstance(error, InvalidInput):
                raise error
            is_late = not isinstance(error, Conflict)
            return _ended(begin, record, "timeout" if is_late else "failed", str(error))
        finally:
            for task in (waiting, ending):
                if task is not None:
                    task.cancel()
            await asyncio.gather(*(task for task in (waiting, ending) if task is not None), return_exceptions=True)

    async def _pane(self, step: WorkflowStep, run: _Run) -> Pane:
        if not step.pane:
            return await self._all.find_or_open()
        async with self._opening:
            if step.pane in run.opened:
                return self._all.find(run.opened[step.pane])
            try:
                return self._all.find(step.pane)
            except NotFound:
                if _is_id(step.pane):
                    raise
            pane = await self._all.open(spot=PanePlacement(focus=False), cwd=step.cwd, name=step.pane)
            run.opened[step.pane] = pane.id
        return pane

    async def _end(self, run: _Run) -> None:
        """What still runs is ended: ^C, and where that does not help the pane is closed if it was opened for this."""
        outcomes = await asyncio.gather(*(self._end_one(pane, record, run) for _, pane, record in run.started))
        for (at, _, _), outcome in zip(run.started, outcomes, strict=True):
            if at in run.results:
                run.results[at] = replace(run.results[at], clean_up=outcome)

    async def _end_one(self, pane: Pane, record: CommandRecord, run: _Run) -> str:
        if record.done.is_set():
            return ""
        try:
            await pane.interrupt(record.id, END_S)
        except (DariError, ProcessLookupError):
            pass
        if record.done.is_set():
            return "ended"
        if pane.id in run.opened.values():
            await self._all.close(pane.id, force=True)
            return "closed"
        return "still running"

    # Checks before anything is done

    def _check(self, steps: Sequence[WorkflowStep]) -> None:
        if not 1 <= len(steps) <= MAX_STEPS:
            raise InvalidInput(
                f"a call must have 1…{MAX_STEPS} steps, got {len(steps)}", "split them into several calls"
            )
        for at, step in enumerate(steps, 1):
            if not step.command and not step.wait_for:
                raise InvalidInput(f"step {at} has no command and nothing to wait for", "give one of them, or both")
            if not 0 < step.timeout_ms <= MAX_WAIT_MS:
                raise InvalidInput(
                    f"step {at}: timeout_ms must be 1…{MAX_WAIT_MS}, got {step.timeout_ms}", "correct it"
                )
            if step.wait_for:
                make_matcher(step.wait_for, step.regex)
            if step.pane and _is_id(step.pane):
                self._all.find(step.pane)
        for _, group in groupby(enumerate(steps, 1), lambda pair: pair[1].group or pair[0]):
            panes = [step.pane for _, step in group if step.command]
            if len(set(panes)) < len(panes):
                raise InvalidInput("two commands of one group are for the same pane", "give each a pane of its own")

    def _intended(self, step: WorkflowStep) -> PendingText:
        try:
            pane = self._all.find(step.pane)
        except NotFound:
            focused = self._all.focused
            place = step.cwd or (self._all.find(focused).cwd() if focused else self._all.start_place)
            return PendingText(step.command, os.path.abspath(os.path.expanduser(place)))
        return PendingText(step.command, pane.cwd(), pane.kind or "bash")


def step_event(result: StepResult) -> StepEvent:
    """How a step ended, as an event."""
    assert result.status != "skipped"
    return StepEvent(
        step=result.step,
        pane=result.pane,
        status=result.status,
        command=result.command,
        matched=result.matched,
        exit_code=result.exit_code,
        reason=result.reason,
    )


def _is_id(name: str) -> bool:
    return name.removeprefix("%").isdigit()


def _is_fine(result: StepResult) -> bool:
    return result.status in ("done", "ready")


def _skipped(at: int, step: WorkflowStep) -> StepResult:
    return StepResult(
        step=at, pane=step.pane, command=step.command, status="skipped", reason="a step before it did not succeed"
    )


def _ended(begin: StepResult, record: CommandRecord | None, status: str, reason: str = "") -> StepResult:
    changes: dict[str, object] = {"status": status, "reason": reason}
    if record is not None:
        changes |= {"exit_code": record.exit_code, "output": record.output[-MAX_OUTPUT_CHARS:]}
    return replace(begin, **changes)
