"""Snapshots: every pane as it is now (layout, screens, directories, variables, what runs), to come back to later."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dari.daemon.stub import expose
from dari.terminal.desks.answers import Restored, Success
from dari.terminal.desks.sessions import SessionDesk
from dari.terminal.desks.special_answers import SnapshotInfo, SnapshotList
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.sessions.store import SessionStore

MOST_UNNAMED = 20


class SnapshotDesk:
    """Kept apart from sessions. Those without a name are bounded: the oldest one goes when there are too many."""

    def __init__(self, multiplexer: Multiplexer, folder: Path) -> None:
        self._store = SessionStore(folder, "snapshot")
        self._sessions = SessionDesk(multiplexer, self._store)

    @expose("crux:snapshot/create", "control", is_slow=True)
    async def create(self, name: str = "") -> SnapshotInfo:
        """Write all panes to a file; one of the same name is replaced."""
        saved = await self._sessions.save_session(name, True)
        kept = (await self._sessions.list_sessions()).sessions
        for old in [info for info in kept if not info.name][MOST_UNNAMED:]:
            await asyncio.to_thread(self._store.remove, old.session_id)
        return SnapshotInfo(
            snapshot_id=saved.session_id,
            panes=saved.panes,
            size_bytes=saved.size_bytes,
            taken_unix=next((info.saved_unix for info in kept if info.session_id == saved.session_id), 0.0),
        )

    @expose("crux:snapshot/restore", "control", is_slow=True)
    async def restore(
        self, snapshot_id: str, commands: bool = False, instead: bool = False, approved: str = ""
    ) -> Restored:
        """Open its panes in windows of their own; `commands` runs what was running, `instead` ends what is open."""
        return await self._sessions.restore_session(snapshot_id, commands, instead, approved)

    @expose("crux:snapshot/list", "read")
    async def list_snapshots(self) -> SnapshotList:
        """Newest first."""
        found = (await self._sessions.list_sessions()).sessions
        return SnapshotList(
            [
                SnapshotInfo(
                    snapshot_id=info.session_id,
                    panes=info.panes,
                    size_bytes=info.size_bytes,
                    taken_unix=info.saved_unix,
                )
                for info in found
            ]
        )

    @expose("crux:snapshot/remove", "control")
    async def remove(self, snapshot_id: str) -> Success:
        await asyncio.to_thread(self._store.remove, snapshot_id)
        return Success()
