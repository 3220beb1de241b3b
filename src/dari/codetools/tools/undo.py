"""`crewx_tools_undo`: take a write back."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from dari.codetools.edits.write import take_back
from dari.codetools.session import CodeSession
from dari.core.context import Context
from dari.core.scopes import CONTROL
from dari.core.tool import tool


class UndoResult(Struct, frozen=True, rename="camel"):
    undo_token: str
    what: str
    restored: list[str]
    """Files that have their old content again."""
    unchanged: list[str]
    """Files that had it already."""


class UndoTools:
    prefix = "crewx_tools"

    def __init__(self, session: CodeSession) -> None:
        self._session = session

    @tool(scope=CONTROL, camel_case=True, idempotent=False, destructive=True, output="code")
    async def undo(
        self,
        context: Context,
        undo_token: Annotated[
            str, Meta(description="undoToken of a write, or 'last' for the newest one in this workspace")
        ],
        force: Annotated[bool, Meta(description="also restore files that changed after the write")] = False,
    ) -> UndoResult:
        """Bring every file of a write back byte for byte; returns {undoToken, what, restored, unchanged}."""
        workspace = await self._session.workspace(context)
        record, restored, unchanged = await take_back(self._session.undo, undo_token, workspace, force=force)
        return UndoResult(record.token, record.what, restored, unchanged)
