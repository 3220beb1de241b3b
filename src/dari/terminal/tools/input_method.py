"""Typing with an input method: design 002 §3.2.3."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.errors import InvalidInput
from dari.terminal.api.input_method import InputMethodResult
from dari.terminal.input_methods.japanese import Script
from dari.terminal.input_methods.plan import Language, Mode
from dari.terminal.service import TerminalService
from dari.terminal.tools.approval import with_approval
from dari.terminal.tools.arguments import PaneId
from dari.terminal.tools.output import limit_output


class InputMethodTools:
    prefix = "crux"

    def __init__(self, terminal: TerminalService) -> None:
        self._approvals = terminal.approvals
        self._input_method = terminal.input_method

    @tool(scope="control", idempotent=False, destructive=True, open_world=True, timeout_s=INNER_LIMITS_ONLY)
    async def type_with_ime(
        self,
        context: Context,
        text: Annotated[str, Meta(description="the text itself (안녕), or the keys that make it (dkssud)")],
        language: Annotated[Language, Meta(description="whose input method")] = "korean",
        mode: Annotated[Mode, Meta(description="what text is: keys, text, or auto to find out")] = "auto",
        script: Annotated[Script, Meta(description="what Japanese keys become")] = "hiragana",
        enter: Annotated[bool, Meta(description="true: press Enter after it")] = False,
        preedit: Annotated[
            bool, Meta(description="true: leave the last syllable open, as an input method does")
        ] = False,
        pane_id: PaneId | None = None,
        timeout_ms: Annotated[int, Meta(description="milliseconds to wait for the echo, 0 to 60000")] = 2000,
    ) -> InputMethodResult:
        """Type Korean, Japanese or Chinese by keys ("gksrmf" is 한글) or as text; returns {committed, is_echoed}."""
        if not text:
            raise InvalidInput("text is empty", "give the keys, or the text that shall arrive")
        done = await with_approval(
            self._approvals,
            context,
            lambda: self._input_method.type_with_ime(
                text, language, pane_id or "", mode, script, enter, preedit, timeout_ms / 1000
            ),
        )
        return replace(done, committed=limit_output(done.committed.replace("\r", "\n")).text)
