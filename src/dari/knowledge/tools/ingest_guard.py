"""What an agent may ingest: files inside the configured folders. For anything else a person has to agree.

The call waits in the one queue of approvals (`dari approvals`); the agent gets `needs_approval` with the id, and makes
the same call again once a person has answered.
"""

from __future__ import annotations

import os

from dari.core.approval_service import ApprovalService
from dari.core.context import Context
from dari.errors import InvalidInput
from dari.knowledge.api import KnowledgeApi

_PART = "kebab"
_SHOWN_CHARS = 300


class IngestGuard:
    def __init__(self, api: KnowledgeApi, approvals: ApprovalService) -> None:
        self._api = api
        self._approvals = approvals

    async def check_file(self, path: str, context: Context) -> str:
        """The file itself, links followed. Returns at once inside the configured folders; else raises NeedsApproval
        until a person has approved this very call."""
        if not os.path.isabs(path):
            raise InvalidInput(f"path must be absolute, got {path[:200]!r}", "begin it with /")
        if "\0" in path:
            raise InvalidInput(f"path must not hold a NUL character, got {path[:200]!r}", "name the file as it is")
        real = os.path.realpath(path)
        if not await self._api.is_inside_roots(real):
            message = f"index {real}, which lies outside of the configured folders"
            await self._ask("ingest_file", {"path": real}, message, context)
        return real

    async def check_text(self, text: str, title: str, source_uri: str | None, context: Context) -> None:
        """A text of an agent comes from no configured folder: a person has to approve it."""
        arguments = {"title": title, "source_uri": source_uri, "text": text}
        head = " ".join(text[:_SHOWN_CHARS].split())
        await self._ask(
            "ingest_stdin", arguments, f"index a text of {len(text)} characters, '{title}': {head}", context
        )

    async def _ask(self, tool: str, arguments: dict[str, str | None], message: str, context: Context) -> None:
        await self._approvals.ask(
            server=_PART,
            tool=tool,
            arguments=arguments,
            who=context.who,
            session=context.session_key,
            client=context.agent,
            message=message,
        )
