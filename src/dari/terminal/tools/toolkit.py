"""All tools of the terminal, by family, and which of them are the 20 of design 002 §3.1."""

from __future__ import annotations

from typing import Literal

from dari.core.model_schema import simplify_tool
from dari.core.tool import Tool, tools_of
from dari.terminal.service import TerminalService
from dari.terminal.tools.clipboard import ClipboardTools
from dari.terminal.tools.commands import CommandTools
from dari.terminal.tools.contexts import ContextTools
from dari.terminal.tools.input_method import InputMethodTools
from dari.terminal.tools.output import sanitize_results
from dari.terminal.tools.output_analysis import OutputAnalysisTools
from dari.terminal.tools.panes import PaneTools
from dari.terminal.tools.screen import ScreenTools
from dari.terminal.tools.sessions import SessionTools
from dari.terminal.tools.workflow import WorkflowTools

SPECIAL_FAMILIES = (OutputAnalysisTools, InputMethodTools, ClipboardTools, WorkflowTools, ContextTools)


ToolSet = Literal["core", "all"]

FAMILIES = (PaneTools, CommandTools, ScreenTools, SessionTools, *SPECIAL_FAMILIES)
CORE = (
    "crux_create_pane",
    "crux_close_pane",
    "crux_focus_pane",
    "crux_list_panes",
    "crux_resize_pane",
    "crux_execute_command",
    "crux_send_keys",
    "crux_send_text",
    "crux_get_output",
    "crux_wait_for_output",
    "crux_get_current_directory",
    "crux_get_running_process",
    "crux_get_pane_state",
    "crux_get_selection",
    "crux_get_scrollback",
    "crux_screenshot_pane",
    "crux_get_raw_text",
    "crux_get_formatted_output",
    "crux_save_session",
    "crux_restore_session",
)
"""In the order of the design."""


class TerminalTools:
    """Tools named `crux_<method>`; each is thin: take arguments, ask the service, show what came back."""

    def __init__(self, terminal: TerminalService) -> None:
        self._terminal = terminal

    def tools(self, which: ToolSet = "all") -> list[Tool]:
        """The 20 of the design first, then those that came later, family by family."""
        made = {
            tool.name: sanitize_results(simplify_tool(tool))
            for family in FAMILIES
            for tool in tools_of(family(self._terminal))
        }
        core = [made.pop(name) for name in CORE]
        return core if which == "core" else [*core, *made.values()]
