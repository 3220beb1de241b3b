"""Prompts of design 002 §1.5 and of its original: what a person picks to begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dari.core.content import PromptMessage, TextContent
from dari.core.context import Context
from dari.core.prompt import Prompt, PromptArgument
from dari.core.registry import Registry

if TYPE_CHECKING:
    from dari.terminal.service import TerminalService

_PANE = PromptArgument("pane_id", "The pane; left out, the focused one")


def add_prompts(registry: Registry, terminal: Callable[[], TerminalService]) -> None:
    """The service is asked for when a prompt needs it, not before."""
    prompts = Prompts(terminal)
    registry.add_prompt(
        Prompt(
            "debug-session",
            prompts.debug_session,
            "Set up multi-pane debugging layout",
            [PromptArgument("project_dir", "The project to debug", required=True)],
        )
    )
    registry.add_prompt(
        Prompt(
            "terminal-debug",
            prompts.terminal_debug,
            "Run a command and find out why it fails",
            [PromptArgument("command", "The command that fails", required=True), _PANE],
        )
    )
    registry.add_prompt(Prompt("pane-overview", prompts.pane_overview, "What happens in every pane, in a few lines"))
    registry.add_prompt(
        Prompt(
            "command-workflow",
            prompts.command_workflow,
            "Run steps one after the other, each checked before the next",
            [PromptArgument("steps", "The steps, one in each line", required=True), _PANE],
        )
    )


class Prompts:
    def __init__(self, terminal: Callable[[], TerminalService]) -> None:
        self._terminal = terminal

    async def debug_session(self, context: Context, given: dict[str, str]) -> list[PromptMessage]:
        place = given["project_dir"]
        return _asked(
            f"Set up a debugging session for the project in {place!r} in my terminal.\n"
            f"1. crux_create_pane with cwd={place!r}, name 'code': look at what the project is and how it is run.\n"
            "2. crux_create_pane with direction 'horizontal', the same cwd, name 'logs': start the program or follow "
            "its log there, and wait with crux_wait_for_output until it is up or has failed.\n"
            "3. crux_create_pane with direction 'vertical', the same cwd, name 'debugger': for the debugger or tests.\n"
            "Then tell me what runs in which pane and what you see. Change no file before I agree."
        )

    async def terminal_debug(self, context: Context, given: dict[str, str]) -> list[PromptMessage]:
        pane = _where(given)
        return _asked(
            f"This command fails in my terminal ({pane}):\n\n{given['command']}\n\n"
            f"Run it with crux_execute_command ({pane}) and read exit code and output. Find the cause: look at "
            "the files, the environment and the versions that it depends on, one check at a time. Tell me the cause "
            "with the lines that show it, then the smallest change that repairs it. Change nothing before I agree."
        )

    async def pane_overview(self, context: Context, given: dict[str, str]) -> list[PromptMessage]:
        from dari.text.sanitize import escape_hidden

        panes = (await self._terminal().panes.list_panes()).panes
        listed = [
            f"- {pane.id} ({escape_hidden(pane.name, one_line=True)}): {escape_hidden(pane.process, one_line=True)} in "
            f"{escape_hidden(pane.cwd, one_line=True)}, {pane.cols}×{pane.rows}{'' if pane.is_alive else ', ended'}"
            f"{', focused' if pane.is_focused else ''}"
            for pane in panes
        ]
        return _asked(
            "These panes are open in my terminal:\n" + ("\n".join(listed) or "(none)") + "\n\n"
            "Read the end of each with crux_get_output (30 lines) and tell me for each in one line what it does, "
            "whether it waits for something, and whether it has failed."
        )

    async def command_workflow(self, context: Context, given: dict[str, str]) -> list[PromptMessage]:
        steps = [step.strip() for step in given["steps"].splitlines() if step.strip()]
        numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
        return _asked(
            f"Do these steps in my terminal ({_where(given)}), in this order:\n{numbered}\n\n"
            "Run each with crux_execute_command. Go on only when its exit code is 0 and its output is what the step "
            "is for; when one still runs, go on waiting with crux_wait_command. At the first failure stop and tell me "
            "the step, its exit code and the lines that matter."
        )


def _where(given: dict[str, str]) -> str:
    return f"pane_id {given['pane_id']!r}" if given.get("pane_id") else "the focused pane"


def _asked(text: str) -> list[PromptMessage]:
    return [PromptMessage("user", TextContent(text=text))]
