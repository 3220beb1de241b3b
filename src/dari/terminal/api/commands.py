"""Input to panes (commands, text, keys, pastes), and waits for their output."""

from __future__ import annotations

import asyncio
import time
from base64 import b64decode

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, InvalidInput, NotFound, TimedOut
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.api.screen import Scrollback, last_lines
from dari.terminal.engine.keys import parse_keys, type_text
from dari.terminal.limits import DEFAULT_WAIT_S, check_wait
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.panes.commands import CommandRecord, CommandResult
from dari.terminal.panes.execution import PROMPT_S, check_command
from dari.terminal.panes.pane import Pane
from dari.terminal.typed_input import from_keys, from_paste, from_text

SHOWN_LINES = 20


class Success(Struct, frozen=True):
    success: bool = True


class InputResult(Struct, frozen=True):
    success: bool = True
    mark: int = 0
    """The place in the output before it was typed, for `since` of crux_wait_for_output."""


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
    """How the end is known: "shell" (its hooks report it), "mark" (marks around the command: ssh, docker exec, another
    user's shell), "idle" (its prompt came back: no exit code); empty while it runs."""
    mark: int = 0
    """The place in the pane's output where it began, for `since` of crux_wait_for_output."""


class WaitResult(Struct, frozen=True, kw_only=True):
    """`text` is the line with the match, or the last lines of the screen when it did not come."""

    matched: bool
    text: str
    match: str = ""
    groups: list[str | None] = []
    elapsed_ms: float = 0.0
    mark: int = 0
    reason: str = ""


class CommandsApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer

    @expose("crux:command/execute", "control", ends_with_caller=True)
    @approvable
    async def execute(self, command: str, pane_id: str = "", timeout_s: float | None = None) -> ExecuteResult:
        """Run a command at the prompt of a shell; after the time it goes on, with status "running"."""
        check_command(command)
        pane = await self._all.find_or_open(pane_id)
        self._all.guard.check(command, pane.cwd(), pane.kind or "bash", approved_message())
        if pane.kind is not None and pane.commands.zone == "unknown":
            await pane.commands.ready(PROMPT_S)  # it was only just opened: its start is not the command's time
        limit_s = self._all.security.command_timeout_ms / 1000 if timeout_s is None else timeout_s
        result = await pane.execute(command, check_wait(limit_s))
        return _executed(pane, result)

    @expose("crux:command/wait", "read", ends_with_caller=True)
    async def wait_command(self, command_id: str, timeout_s: float = DEFAULT_WAIT_S) -> ExecuteResult:
        """Go on waiting for a command that was still running."""
        pane, own_id = self._command(command_id)
        return _executed(pane, await pane.wait_command(own_id, check_wait(timeout_s)))

    @expose("crux:command/interrupt", "control")
    async def interrupt_command(self, command_id: str) -> ExecuteResult:
        """^C; the result tells whether it has ended."""
        pane, own_id = self._command(command_id)
        result = await pane.interrupt(own_id)
        return _executed(pane, result or await pane.wait_command(own_id, 0.0))

    @expose("crux:command/output", "read")
    async def command_output(self, command_id: str, offset: int = 0, limit: int = 0) -> Scrollback:
        """Lines of what a command printed; a limit of 0 returns all of them."""
        pane, own_id = self._command(command_id)
        lines = pane.commands.find(own_id).output.split("\n")
        shown = lines[offset : offset + limit] if limit else lines[offset:]
        end = offset + len(shown)
        return Scrollback("\n".join(shown), len(lines), offset, len(shown), end if end < len(lines) else None)

    @expose("crux:pane/send-text", "control")
    @approvable
    async def send_text(self, text: str, pane_id: str = "", paste: bool = False, enter: bool = False) -> InputResult:
        """Text at the cursor; a line end in it is Enter, unless it is pasted into a program that knows pastes."""
        pane = await self._all.find_or_open(pane_id)
        inputs = [from_paste(text, pane.engine) if paste else from_text(text)]
        if enter:
            inputs.append(from_keys(parse_keys("Enter"), pane.engine))
        admitted = self._all.input_guard(pane).admit(inputs, approved_message())
        mark = pane.mark_input()
        await admitted.send()
        return InputResult(mark=mark)

    @expose("crux:pane/send-keys", "control")
    @approvable
    async def send_keys(self, keys: str, pane_id: str = "", literal: bool = False) -> InputResult:
        """Keys by name (`C-c`, `Enter`, `Up Up Enter`, `:wq<Enter>`); with `literal` every character as it is."""
        pressed = type_text(keys) if literal else parse_keys(keys)
        if not pressed:
            raise InvalidInput("no key was named", "name one, such as Enter or C-c")
        pane = await self._all.find_or_open(pane_id)
        admitted = self._all.input_guard(pane).admit([from_keys(pressed, pane.engine)], approved_message())
        mark = pane.mark_input()
        await admitted.send()
        return InputResult(mark=mark)

    @expose("crux:pane/write", "admin")
    async def write(self, data: str, pane_id: str = "") -> Success:
        """Bytes (base64) as a person types them; nothing is judged, so agents' tokens do not have this scope."""
        pane = self._all.find(pane_id)
        raw = b64decode(data, validate=True)
        typed = self._all.input_guard(pane)
        await pane.write(raw, lambda: typed.note(raw.decode(errors="replace")))
        return Success()

    @expose("crux:pane/wait-for", "read", ends_with_caller=True)
    async def wait_for(
        self,
        pattern: str,
        pane_id: str = "",
        is_regex: bool = True,
        timeout_s: float = DEFAULT_WAIT_S,
        since: int | None = None,
    ) -> WaitResult:
        """Wait for output that matches, also what came already: since the last input or the begin of the running
        command, or since the mark `since`. What was typed does not count."""
        return await wait_for_text(self._all.find(pane_id), pattern, is_regex, timeout_s, since)

    @expose("crux:pane/wait-exit", "read", ends_with_caller=True)
    async def wait_exit(self, pane_id: str = "", timeout_s: float = DEFAULT_WAIT_S) -> int | None:
        """The exit code of the pane's program; None when it still runs after the time."""
        pane = self._all.find(pane_id)
        try:
            return await asyncio.wait_for(pane.exited(), check_wait(timeout_s))
        except TimeoutError:
            return None

    def _command(self, command_id: str) -> tuple[Pane, str]:
        pane_id, colon, own_id = command_id.partition(":")
        if not colon or pane_id not in self._all.panes:
            raise NotFound(f"no command has the id {command_id!r}", "use the command_id that crux_execute_command gave")
        return self._all.panes[pane_id], own_id


async def wait_for_text(pane: Pane, pattern: str, is_regex: bool, timeout_s: float, since: int | None) -> WaitResult:
    """What crux_wait_for_output answers."""
    since = pane.answer_mark if since is None else since
    began = time.perf_counter()
    reason = ""
    try:
        found = await pane.wait_for(pattern, is_regex=is_regex, timeout_s=check_wait(timeout_s), since=since)
    except TimedOut:
        reason = "timeout"
    except Conflict:
        reason = f"exited {pane.exit_code}"
    elapsed_ms = round((time.perf_counter() - began) * 1000, 3)
    if reason:
        text = last_lines(pane.engine, SHOWN_LINES)
        return WaitResult(matched=False, text=text, elapsed_ms=elapsed_ms, mark=pane.mark(), reason=reason)
    return WaitResult(
        matched=True,
        text=found.line,
        match=found.match,
        groups=list(found.groups),
        elapsed_ms=elapsed_ms,
        mark=pane.mark(found.position),
    )


def _executed(pane: Pane, result: CommandResult) -> ExecuteResult:
    if result.status == "done":
        pane.mark_answered()
    return ExecuteResult(
        exit_code=result.exit_code,
        stdout=result.output,
        status=result.status,
        command_id=f"{pane.id}:{result.command_id}",
        duration_ms=round(result.duration_s * 1000, 3),
        cwd=result.cwd,
        truncated=result.is_truncated,
        pane_id=pane.id,
        end_known_by=result.end_known_by,
        mark=result.mark,
    )


async def start_command(multiplexer: Multiplexer, pane: Pane, command: str, approved: str = "") -> CommandRecord:
    """Judge the command where the pane is now and start it; a shell that has just been opened is waited for."""
    check_command(command)
    multiplexer.guard.check(command, pane.cwd(), pane.kind or "bash", approved)
    if pane.kind is not None and pane.commands.zone != "running":
        await pane.commands.ready(PROMPT_S)
    sent = await pane.execute(command, 0.0)
    return pane.commands.find(sent.command_id)
