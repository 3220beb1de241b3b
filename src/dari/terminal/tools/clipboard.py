"""The clipboard: design 002 §3.2.4."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.errors import InvalidInput
from dari.terminal.api.clipboard import ClipInfo, ClipList, Form, PasteResult
from dari.terminal.service import TerminalService
from dari.terminal.tools.approval import with_approval
from dari.terminal.tools.arguments import MaxTokens, PaneId
from dari.terminal.tools.output import CHARS_PER_TOKEN, DEFAULT_TOKENS, limit_output

WHOLE_TOKENS = 50_000


class ClipboardTools:
    prefix = "crux"

    def __init__(self, terminal: TerminalService) -> None:
        self._approvals = terminal.approvals
        self._clipboard = terminal.clipboard
        self._screen = terminal.screen

    @tool()
    async def clipboard_context(
        self,
        limit: Annotated[int, Meta(description="how many clips, newest first")] = 10,
        kind: Annotated[str, Meta(description="only these: text, lines, json, url, files, code")] | None = None,
        pane_id: Annotated[str, Meta(description="only what was copied from this pane, by id or name")] | None = None,
        clip_id: Annotated[str, Meta(description="only this one, with its whole text")] | None = None,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> ClipList:
        """List what was copied, newest first, with kind, time and source pane: {entries, total}."""
        limit_output("", max_tokens)
        chars = min(max_tokens, WHOLE_TOKENS) * CHARS_PER_TOKEN // max(1, 1 if clip_id else limit)
        found = await self._clipboard.history(limit, kind or "", pane_id or "", clip_id or "", chars)
        return replace(found, entries=[_shown(entry) for entry in found.entries])

    @tool(scope="control", idempotent=False)
    async def clipboard_copy(
        self,
        text: Annotated[str, Meta(description="what to copy; left out: the selection of the pane")] | None = None,
        pane_id: PaneId | None = None,
    ) -> ClipInfo:
        """Put a text on the clipboard, or without one what is selected in a pane; returns {id, kind}."""
        if text is not None:
            return _shown(await self._clipboard.copy(text, pane_id or ""))
        selected = await self._screen.get_selection(pane_id or "")
        if not selected.text:
            raise InvalidInput("nothing is selected there", "give text, or select with crux_set_selection")
        return _shown(await self._clipboard.copy(selected.text, pane_id or "", "selection"))

    @tool(scope="control", idempotent=False, destructive=True, open_world=True, timeout_s=INNER_LIMITS_ONLY)
    async def paste_smart(
        self,
        context: Context,
        pane_id: PaneId | None = None,
        clip_id: Annotated[str, Meta(description="clip_id of crux_clipboard_context; left out: the latest")]
        | None = None,
        text: Annotated[str, Meta(description="paste this instead of a clip")] | None = None,
        form: Annotated[Form, Meta(description="how to shape it; auto decides by what reads it")] = "auto",
        enter: Annotated[bool, Meta(description="true: press Enter after it")] = False,
        allow_lines: Annotated[bool, Meta(description="true: also where every line end would run something")] = False,
    ) -> PasteResult:
        """Paste a clip or text as suits the place: JSON formatted, words quoted for a shell, lines as one paste."""
        pasted = await with_approval(
            self._approvals,
            context,
            lambda: self._clipboard.paste(pane_id or "", clip_id or "", text or "", form, enter, allow_lines),
        )
        return replace(pasted, text=limit_output(pasted.text, 1000).text)


def _shown(entry: ClipInfo) -> ClipInfo:
    return replace(
        entry,
        text=limit_output(entry.text, WHOLE_TOKENS).text,
        from_pane_name=limit_output(entry.from_pane_name, 50).text,
    )
