"""Typing with an input method: design 002 §3.2.3."""

from __future__ import annotations

from msgspec.structs import replace

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.errors import InvalidInput
from dari.terminal.desks.special_answers import TypedWithIme
from dari.terminal.ime.japanese import Script
from dari.terminal.ime.plan import Language, Mode
from dari.terminal.service import TerminalService
from dari.terminal.tools.approval import with_approval
from dari.terminal.tools.presentation import shown


class ImeTools:
    prefix = "crux"

    def __init__(self, terminal: TerminalService) -> None:
        self._approvals = terminal.approvals
        self._ime = terminal.special.ime

    @tool(scope="control", idempotent=False, destructive=True, open_world=True, timeout_s=INNER_LIMITS_ONLY)
    async def type_with_ime(
        self,
        context: Context,
        text: str,
        language: Language = "korean",
        mode: Mode = "auto",
        script: Script = "hiragana",
        enter: bool = False,
        preedit: bool = False,
        pane_id: str | None = None,
        timeout_ms: int = 2000,
    ) -> TypedWithIme:
        """Type Korean, Japanese or Chinese by keys ("gksrmf" is 한글) or as text; returns {committed, is_echoed}."""
        if not text:
            raise InvalidInput("there is nothing to type", "give the keys, or the text that shall arrive")
        done = await with_approval(
            self._approvals,
            context,
            lambda approved: self._ime.type_with_ime(
                text, language, pane_id or "", mode, script, enter, preedit, timeout_ms / 1000, approved
            ),
        )
        return replace(done, committed=shown(done.committed.replace("\r", "\n")).text)
