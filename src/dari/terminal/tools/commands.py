"""Command tools of design 002 §3.1.2, and those that go on with a command that still runs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.errors import InvalidInput
from dari.terminal.api.commands import ExecuteResult, InputResult, WaitResult
from dari.terminal.api.screen import PaneOutput, Scrollback
from dari.terminal.limits import DEFAULT_WAIT_MS, MAX_WAIT_MS, to_seconds
from dari.terminal.service import TerminalService
from dari.terminal.tools.approval import runs_commands, with_approval
from dari.terminal.tools.arguments import CommandId, MaxTokens, PaneId, Regex, WaitMs
from dari.terminal.tools.output import DEFAULT_TOKENS, limit_lines, limit_output

MAX_TEXT_CHARS = 1_000_000


class CommandTools:
    prefix = "crux"

    def __init__(self, terminal: TerminalService) -> None:
        self._approvals = terminal.approvals
        self._commands = terminal.commands
        self._screen = terminal.screen

    @runs_commands
    async def execute_command(
        self,
        context: Context,
        command: Annotated[str, Meta(description="a line of shell, or several, such as make test")],
        pane_id: PaneId | None = None,
        timeout_ms: Annotated[
            int, Meta(description=f"milliseconds, 0 to {MAX_WAIT_MS}; left out: as crux.toml says, {DEFAULT_WAIT_MS}")
        ]
        | None = None,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> ExecuteResult:
        """Run a command in a pane's shell; returns {exit_code, stdout}, or status "running" with a command_id."""
        timeout_s = None if timeout_ms is None else to_seconds(timeout_ms)
        return _shown(
            await with_approval(
                self._approvals,
                context,
                lambda: self._commands.execute(command, pane_id or "", timeout_s),
            ),
            max_tokens,
        )

    @runs_commands
    async def send_keys(
        self,
        context: Context,
        keys: Annotated[str, Meta(description='key names and text: Enter, C-c, M-x, F5, "Up Up Enter", ":wq<Enter>"')],
        pane_id: PaneId | None = None,
    ) -> InputResult:
        """Press keys in a pane: Enter, C-c, M-x, F5, "Up Up Enter", ":wq<Enter>", or text; returns {success, mark}."""
        return await with_approval(
            self._approvals, context, lambda: self._commands.send_keys(keys, pane_id or "", False)
        )

    @runs_commands
    async def send_text(
        self,
        context: Context,
        text: Annotated[str, Meta(description="what to type; a line end in it is Enter; at most 1000000 characters")],
        pane_id: PaneId | None = None,
        paste: Annotated[
            bool, Meta(description="true: as one paste, in which line ends run nothing where the program knows pastes")
        ] = False,
        enter: Annotated[bool, Meta(description="true: press Enter after it")] = False,
    ) -> InputResult:
        """Type text into a pane; a line end in it is Enter, enter=true adds one. Returns {success, mark}."""
        if len(text) > MAX_TEXT_CHARS:
            raise InvalidInput(
                f"{len(text)} characters are too many to type",
                f"send at most {MAX_TEXT_CHARS} at a time, or write a file",
            )
        return await with_approval(
            self._approvals,
            context,
            lambda: self._commands.send_text(text, pane_id or "", paste, enter),
        )

    @tool(output="as_is")
    async def get_output(
        self,
        pane_id: PaneId | None = None,
        lines: Annotated[int, Meta(description="how many of the last lines, 1 to 20000")] = 50,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> PaneOutput:
        """Return the last lines of a pane as text: {text, line_count}, and a mark to wait from."""
        found = await self._screen.get_output(pane_id or "", lines)
        return replace(found, text=limit_output(found.text, max_tokens).text)

    @tool(timeout_s=INNER_LIMITS_ONLY, output="as_is")
    async def wait_for_output(
        self,
        pattern: Annotated[str, Meta(description="regular expression, such as ^ready; at most 1024 characters")],
        timeout_ms: WaitMs = DEFAULT_WAIT_MS,
        pane_id: PaneId | None = None,
        regex: Regex = True,
        since: Annotated[
            int, Meta(description="mark of an earlier answer; 0: all of the pane; left out: the last input")
        ]
        | None = None,
        mark: Annotated[int, Meta(description="the same as since")] | None = None,
    ) -> WaitResult:
        """Wait for output since the last input or the start of the running command; returns {matched, text, mark}."""
        found = await self._commands.wait_for(
            pattern, pane_id or "", regex, to_seconds(timeout_ms), mark if since is None else since
        )
        return sanitize_wait(found)

    @tool(timeout_s=INNER_LIMITS_ONLY, output="as_is")
    async def wait_command(
        self,
        command_id: CommandId,
        timeout_ms: WaitMs = DEFAULT_WAIT_MS,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> ExecuteResult:
        """Go on waiting for a command that was still running; returns what crux_execute_command returns."""
        return _shown(await self._commands.wait_command(command_id, to_seconds(timeout_ms)), max_tokens)

    @tool(scope="control", destructive=True, output="as_is")
    async def interrupt_command(self, command_id: CommandId) -> ExecuteResult:
        """Press ^C for a running command; returns its result, with status "running" when it goes on all the same."""
        return _shown(await self._commands.interrupt_command(command_id), DEFAULT_TOKENS)

    @tool(output="as_is")
    async def get_command_output(
        self,
        command_id: CommandId,
        offset: Annotated[int, Meta(description="first line, 0 for the first one")] = 0,
        limit: Annotated[int, Meta(description="how many lines")] = 1000,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> Scrollback:
        """Return lines of what a command printed, from offset; next_offset tells where to go on."""
        if offset < 0 or limit < 1:
            raise InvalidInput(
                f"offset must be 0 or more and limit 1 or more, got {offset} and {limit}", "both count lines"
            )
        return fit_page(await self._commands.command_output(command_id, offset, limit), max_tokens)


def fit_page(found: Scrollback, max_tokens: int) -> Scrollback:
    """No more lines than fit; the next call goes on with the first that did not."""
    if not found.line_count:
        return found
    text, count = limit_lines(found.text, max_tokens)
    if count >= found.line_count:
        return replace(found, text=text)
    return replace(found, text=text, line_count=count, next_offset=found.offset + count)


def sanitize_wait(found: WaitResult) -> WaitResult:
    return replace(found, text=limit_output(found.text).text, match=limit_output(found.match).text)


def _shown(result: ExecuteResult, max_tokens: int) -> ExecuteResult:
    cleaned = limit_output(result.stdout, max_tokens)
    return replace(result, stdout=cleaned.text, truncated=result.truncated or cleaned.is_truncated)
