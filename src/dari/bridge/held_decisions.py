"""What servers changed and what projects want to run, as entries of the one approval queue.

Both wait in stores of their own (`pins`, `trust.json`) for as long as it takes, so their entries do not expire, and
they are made anew whenever somebody looks. The id is a hash of exactly what the person would agree to: another text,
another id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, structs

from dari.bridge.config.catalog import summarize_profile
from dari.bridge.config.service import ConfigService
from dari.bridge.config.trust import TrustState
from dari.bridge.decisions import Decisions
from dari.bridge.trust.diff_text import diff, heading
from dari.bridge.trust.pin_store import HeldItem
from dari.core.approvals import Approval
from dari.core.jcs import digest
from dari.errors import DariError, NotFound

if TYPE_CHECKING:
    from dari.bridge.service import Bridge

MAX_NAMES = 5
ID_CHARS = 24
"""An id stands for content that a stranger writes: of eight letters they could find another content with the same id,
and have a person approve what that person did not see."""
_SEE = "see dari approvals list"


class HeldPins:
    """One entry for each server that shows something else than before."""

    prefix = "pin-"

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def pending(self) -> list[Approval]:
        return [self._entry(items) for items in self._held()]

    def describe(self, id: str) -> Approval:
        """With the differences."""
        items = self._find(id)
        entry, pins = self._entry(items), self._bridge.pins
        shown = [{"item": heading(one), "diff": diff(*pins.contents(one))} for one in items]
        return structs.replace(entry, arguments={**entry.arguments, "changes": shown})

    def decide(self, id: str, *, approves: bool, by: str, reason: str) -> Approval:
        items = self._find(id)
        Decisions(self._bridge, by).decide_on(items, approves=approves)
        return structs.replace(self._entry(items), state="approved" if approves else "denied", by=by, reason=reason)

    def _held(self) -> Iterator[list[HeldItem]]:
        by_server: dict[str, list[HeldItem]] = {}
        for one in self._bridge.pins.held():
            if not one.rejected_by:
                by_server.setdefault(one.server, []).append(one)
        yield from by_server.values()

    def _find(self, id: str) -> list[HeldItem]:
        found = next((items for items in self._held() if self._id(items) == id), None)
        if found is None:
            raise NotFound(f"no change waits under the id {id[:40]!r}", f"it was decided or changed again: {_SEE}")
        return found

    def _id(self, items: Iterable[HeldItem]) -> str:
        seen = sorted({(one.server, one.kind, one.name, one.digest) for one in items})
        return self.prefix + digest([list(one) for one in seen])[:ID_CHARS]

    def _entry(self, items: list[HeldItem]) -> Approval:
        server = items[0].server
        names = sorted({f"{one.kind} {one.name}".strip() for one in items})
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        return Approval(
            id=self._id(items),
            server=server,
            tool="",
            arguments={"items": names},
            who=server,
            session="",
            asked_unix=min(one.since for one in items),
            expires_unix=0.0,
            message=f"show what {server} changed: {', '.join(names[:MAX_NAMES])}{more}",
        )


class _ProjectFile(Struct, frozen=True):
    book: ConfigService
    path: Path
    sha256: str
    state: TrustState


class UntrustedFiles:
    """One entry for each project's file that a client met and nobody has decided on."""

    prefix = "trust-"

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def pending(self) -> list[Approval]:
        return [self._entry(file) for file in self._files()]

    def describe(self, id: str) -> Approval:
        """With what it would run and reach."""
        file = self._find(id)
        entry = self._entry(file)
        contents = file.book.contents(file.path, file.path.read_bytes())
        servers = [summarize_profile(one) for one in contents.profiles] if contents.digest == file.sha256 else []
        return structs.replace(entry, arguments={**entry.arguments, "servers": servers})

    def decide(self, id: str, *, approves: bool, by: str, reason: str) -> Approval:
        file = self._find(id)
        state: Literal["approved", "denied"] = "approved" if approves else "denied"
        decisions = Decisions(self._bridge, by)
        if approves:
            decisions.trust(file.book, file.path, file.sha256)
        else:
            decisions.refuse_trust(file.book, file.path, file.sha256, reason)
        return structs.replace(self._entry(file), state=state, by=by, reason=reason)

    def _files(self) -> Iterator[_ProjectFile]:
        seen: set[Path] = set()
        for view in self._bridge.views():
            try:
                path, sha256, state = view.book.trust_state()
            except (DariError, OSError):
                continue  # no such file there, or one that cannot be read: then it runs nothing
            if state.state == "trusted" or view.book.store.is_refused(path, sha256):
                continue
            if (real := path.resolve()) not in seen:
                seen.add(real)
                yield _ProjectFile(view.book, path, sha256, state)

    def _find(self, id: str) -> _ProjectFile:
        found = next((file for file in self._files() if self._entry(file).id == id), None)
        if found is None:
            hint = f"it was decided or it changed: {_SEE}; to trust a file you denied: dari remote trust"
            raise NotFound(f"no file waits under the id {id[:40]!r}", hint)
        return found

    def _entry(self, file: _ProjectFile) -> Approval:
        changes = {"changes": list(file.state.changes)} if file.state.changes else {}
        return Approval(
            id=self.prefix + digest([str(file.path.resolve()), file.sha256])[:ID_CHARS],
            server="",
            tool="",
            arguments={"file": str(file.path), "sha256": file.sha256, "state": file.state.state, **changes},
            who="a project's file",
            session="",
            asked_unix=0.0,
            expires_unix=0.0,
            message=f"trust {file.path}, which {'changed' if file.state.state == 'changed' else 'is new'}",
        )
