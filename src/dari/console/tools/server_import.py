"""The page's Servers, part three: servers pasted as JSON or taken from other programs, reviewed before they count."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from dari.bridge.config.importers.plan import ImportChoice, ImportPlan
from dari.bridge.config.importers.sources import PROGRAMS
from dari.bridge.config.pasted import advise, find_literal_secrets, parse_entries
from dari.bridge.config.schema import ProgramName
from dari.console.tools.server_details import ServerDetailTools
from dari.console.tools.servers import SaveLayer, ServerTools
from dari.core.scopes import ADMIN
from dari.core.tool import tool

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends
    from dari.core.tool import Toolkit

MAX_PASTED_CHARS = 1_000_000
Pasted = Annotated[
    str, Meta(description="JSON as a README has it: mcpServers, servers, or one of them", max_length=MAX_PASTED_CHARS)
]
Programs = Annotated[list[ProgramName], Meta(description="Which programs; empty: all that are here")]
Choices = Annotated[
    list[ImportChoice], Meta(description="By ref: under which name, and whether it overwrites", max_length=5000)
]


class ImportCandidate(Struct, frozen=True):
    """`status`: new, duplicate (the same server is there), conflict (the name is taken), broken (with the reason)."""

    ref: str
    name: str
    program: str
    file: str
    line: int
    status: str
    address: str
    reason: str
    notes: list[str]
    free_name: str
    """For a conflict: a name that is not taken."""
    in_clear: list[str]
    """Fields that hold a secret in the clear."""


class ImportReview(Struct, frozen=True):
    candidates: list[ImportCandidate]
    notes: list[str]
    file: str
    """Where they would be written."""


class ImportReply(Struct, frozen=True):
    names: list[str]
    file: str
    notes: list[str]


def server_toolkits(backends: ConsoleBackends) -> Iterable[Toolkit]:
    """Everything of the Servers page."""
    servers = ServerTools(backends)
    return servers, ServerDetailTools(backends, servers), ServerImportTools(backends)


class ServerImportTools:
    """More tools named `dari_servers_<method>`."""

    prefix = "dari_servers"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._bridge = backends.bridge
        self._view = backends.view

    @tool(scope=ADMIN, read_only=True)
    async def review_json(self, text: Pasted) -> ImportReview:
        """Read pasted JSON and tell what would be added; nothing is written."""
        return self._review(self._view.book.plan_entries(parse_entries(text, what="the text")))

    @tool(scope=ADMIN, idempotent=False)
    async def add_json(self, text: Pasted, choices: Choices, layer: SaveLayer = "user") -> ImportReply:
        """Add the chosen servers of pasted JSON."""
        plan = self._view.book.plan_entries(parse_entries(text, what="the text"))
        return self._apply(plan, choices, layer)

    @tool(scope=ADMIN, read_only=True)
    async def review_import(self, programs: Programs = []) -> ImportReview:  # noqa: B006
        """List the servers that other programs on this machine have, and how each stands to those that are here."""
        return self._review(await self._plan(programs))

    @tool(scope=ADMIN, idempotent=False)
    async def import_servers(self, choices: Choices, programs: Programs = [], layer: SaveLayer = "user") -> ImportReply:  # noqa: B006
        """Copy the chosen servers of other programs into mcp.json."""
        return self._apply(await self._plan(programs), choices, layer)

    async def _plan(self, programs: list[ProgramName]) -> ImportPlan:
        chosen = tuple(one for one in PROGRAMS if one in programs) or None
        return await asyncio.to_thread(self._view.book.plan_import, chosen)

    def _review(self, plan: ImportPlan) -> ImportReview:
        candidates = [
            ImportCandidate(
                ref=one.ref,
                name=one.id,
                program=one.program,
                file=one.source.file,
                line=one.source.line,
                status=one.status,
                address=one.address,
                reason=one.reason,
                notes=[*one.notes],
                free_name=one.free_id,
                in_clear=find_literal_secrets(one.entry),
            )
            for one in plan.candidates
        ]
        return ImportReview(candidates, [*plan.notes], str(self._view.around.file_of("user")))

    def _apply(self, plan: ImportPlan, choices: list[ImportChoice], layer: SaveLayer) -> ImportReply:
        names = self._view.book.run_choices(plan, choices, layer)
        file = self._view.around.file_of(layer)
        catalog = self._view.catalog()
        by_ref = {one.ref: one.entry for one in plan.candidates}
        entries = {choice.name: by_ref[choice.ref] for choice in choices}
        for name in names:
            self._bridge.status_changes.publish(name)
        notes = [note for name in names for note in advise(catalog, name, entries[name], file)]
        return ImportReply([*names], str(file), notes)
