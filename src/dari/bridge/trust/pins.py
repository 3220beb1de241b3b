"""Pins: what a model was shown of a server on first use is what it is shown later, until a person agrees to another.

    tofu     first use pins; a changed item and one that may be a renamed one are held, plain additions are pinned
    strict   first use pins; anything that differs later is held
    off      everything is shown, nothing is kept

A held item is neither shown nor callable: the server would act by its new text, so showing the old one protects nobody.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from dari.bridge.trust.items import KINDS, ItemKind, JsonObject, ListedItem, ServerListing, name_of
from dari.bridge.trust.pin_diff import PinDiff, PinMode, PinReview
from dari.bridge.trust.pin_store import HeldItem, Pin, PinDecision, PinStore, PinWrites
from dari.core.slices import sliced
from dari.errors import Conflict, DariError, Denied, NeedsApproval, NotFound

_LISTS = {"tool": "list-tools", "prompt": "list-prompts", "template": "list-resources", "instructions": "servers"}


class Visibility:
    """`tools` is replaced, never changed, so a reader needs no lock. Nothing is open before the first review."""

    __slots__ = ("server", "tools", "_open", "_held")

    def __init__(self, server: str) -> None:
        self.server = server
        self.tools: frozenset[str] = frozenset()
        self._open: dict[ItemKind, frozenset[str]] = {}
        self._held: dict[tuple[ItemKind, str], HeldItem] = {}

    def check_tool(self, name: str) -> None:
        """Return if the tool may be called; the only part on the hot path."""
        if name not in self.tools:
            raise self._refusal("tool", name)

    def check(self, kind: ItemKind, name: str = "") -> None:
        if name not in self._open.get(kind, ()):
            raise self._refusal(kind, name)

    def update(self, shown: Mapping[ItemKind, list[JsonObject]], held: Iterable[HeldItem]) -> None:
        """Take over a whole review."""
        self._open = {kind: frozenset(name_of(kind, each) for each in objects) for kind, objects in shown.items()}
        self._held = {(each.kind, each.name): each for each in held}
        self.tools = self._open.get("tool", frozenset())

    def _refusal(self, kind: ItemKind, name: str) -> DariError:
        held = self._held.get((kind, name))
        what = f"{kind} {self.server}/{name}" if name else f"the {kind} of {self.server}"
        if held is None:
            return NotFound(f"{self.server} shows no {kind} {name!r}", f"see: dari remote {_LISTS[kind]}")
        if held.rejected_by:
            return Denied(
                f"{what} was rejected by {held.rejected_by}", "a person can still approve it: dari remote approve"
            )
        fact = {"changed": "changed since it was approved", "added": "is new", "renamed": "is new, and others are gone"}
        return NeedsApproval(
            f"{what} {fact[held.reason]}",
            f"a person looks at the difference and agrees: dari remote approve {self.server}",
        )


NO_ITEMS: Mapping[int, ListedItem] = MappingProxyType({})
MAX_CONTENTS_PER_COMMIT = 250
_MAX_TRIES_IN_SLICES = 3


class Pins:
    """One per process. `on_change(server)` is called after a decision that changes what is shown."""

    def __init__(
        self,
        store: PinStore,
        *,
        now: Callable[[], float] = time.time,
        on_change: Callable[[str], None] = lambda server: None,
    ) -> None:
        self.on_change = on_change
        self._store = store
        self._now = now
        self._sights: dict[tuple[str, str], Visibility] = {}
        self._latest: dict[tuple[str, str], tuple[bytes, int, PinMode, ServerListing, PinReview]] = {}

    def visibility(self, server: str, profile: str = "") -> Visibility:
        """What may be seen of a server now. Keep it: it follows every review and decision."""
        return self._sights.setdefault((server, profile), Visibility(server))

    def review(
        self,
        server: str,
        listing: ServerListing,
        *,
        mode: PinMode = "tofu",
        profile: str = "",
        items: Mapping[int, ListedItem] = NO_ITEMS,
    ) -> PinReview:
        """Compare what a server shows with its pins, pin what is new as the mode says, and hold the rest.

        The same listing again costs one encoding and no disk. Lists that are None in `listing` keep their state.
        `items` has by `id` those objects of the listing whose one text is known already.
        """
        key = (server, profile)
        latest = self._latest.get(key)
        if latest is not None:
            listing = _merged(latest[3], listing)
        encoded = msgspec.msgpack.encode(listing)
        version = self._store.version() if mode != "off" else 0
        if latest is not None and latest[:3] == (encoded, version, mode):
            return latest[4]
        if mode == "off":
            review = PinReview(server=server, profile=profile, shown=_everything(listing), held=[])
        else:
            with self._store.changing():
                diff = PinDiff(self._store, server, profile, mode, self._now(), items)
                review = diff.run(listing)
                self._store.write(diff.writes)
        self.visibility(server, profile).update(review.shown, review.held)
        self._latest[key] = (encoded, version, mode, listing, review)
        return review

    async def review_in_slices(
        self,
        server: str,
        listing: Callable[[], ServerListing],
        *,
        mode: PinMode = "tofu",
        items: Mapping[int, ListedItem] = NO_ITEMS,
    ) -> PinReview:
        """`review` of a long listing: others run while it is compared. `listing` is called again when somebody wrote
        pins meanwhile, since the comparison then starts anew."""
        key = (server, "")
        for _ in range(_MAX_TRIES_IN_SLICES if mode != "off" else 0):
            latest = self._latest.get(key)
            given = _merged(latest[3], listing()) if latest is not None else listing()
            encoded = msgspec.msgpack.encode(given)
            version, revision = self._store.version(), self._store.revision()
            if latest is not None and latest[:3] == (encoded, version, mode):
                return latest[4]
            diff = PinDiff(self._store, server, "", mode, self._now(), items)
            async for _step in sliced(diff.steps(given)):
                pass
            review = diff.result()
            if self._store.revision() != revision:
                continue
            contents = list(diff.writes.contents.items())
            for at in range(0, len(contents), MAX_CONTENTS_PER_COMMIT):
                self._store.keep_contents(contents[at : at + MAX_CONTENTS_PER_COMMIT])
                revision = (revision[0], revision[1] + 1)
                await asyncio.sleep(0)
            diff.writes.contents.clear()
            with self._store.changing():
                if self._store.revision() != revision:
                    continue
                self._store.write(diff.writes)
            self.visibility(server).update(review.shown, review.held)
            self._latest[key] = (encoded, version, mode, given, review)
            return review
        return self.review(server, listing(), mode=mode, items=items)

    def refresh(self) -> list[str]:
        """Take over what another process decided; returns the servers that look different now."""
        changed = []
        for (server, profile), (_, version, mode, listing, before) in list(self._latest.items()):
            if mode != "off" and self._store.version() != version:
                after = self.review(server, listing, mode=mode, profile=profile)
                if (after.shown, after.held) != (before.shown, before.held) and server not in changed:
                    changed.append(server)
        for server in changed:
            self.on_change(server)
        return changed

    def held(self, server: str | None = None) -> list[HeldItem]:
        return self._store.held(server)

    def pinned(self, server: str) -> list[Pin]:
        return self._store.pins(server)

    def history(self, server: str | None = None, limit: int = 100) -> list[PinDecision]:
        return self._store.history(server, limit)

    def contents(self, held: HeldItem) -> tuple[bytes | None, bytes]:
        """The pinned and the new content of a held item, to be shown by `diffs.diff`."""
        return self._store.content(held.before) if held.before else None, self._store.content(held.digest) or b"{}"

    def approve(
        self, server: str, kind: ItemKind | None = None, name: str | None = None, *, by: str, digest: str | None = None
    ) -> int:
        """Pin what is held of a server, or one item of it; returns how many.

        With `digest`, only what the person saw is approved: `Conflict` if the server changed it again since.
        """
        return self._decide(server, kind, name, digest, by, approve=True)

    def reject(
        self, server: str, kind: ItemKind | None = None, name: str | None = None, *, by: str, digest: str | None = None
    ) -> int:
        """Keep what is held hidden, and ask no more about this content."""
        return self._decide(server, kind, name, digest, by, approve=False)

    def forget(self, server: str, *, by: str) -> None:
        """Drop every pin of a server: its next listing is a first use."""
        with self._store.changing():
            writes = PinWrites()
            for pin in self._store.pins(server):
                writes.note(self._now(), "forgotten", pin, old=pin.digest, by=by)
            self._store.write(writes)
            self._store.forget(server)
        self._again(server)

    def _decide(
        self, server: str, kind: ItemKind | None, name: str | None, digest: str | None, by: str, *, approve: bool
    ) -> int:
        with self._store.changing():
            wanted = [
                held
                for held in self._store.held(server)
                if kind in (None, held.kind) and name in (None, held.name) and (approve or not held.rejected_by)
            ]
            if not wanted:
                what = f"{kind or 'item'} {name!r} of {server}" if name else f"nothing of {server}"
                raise NotFound(f"{what} is held", f"see what is: dari remote approve {server} --diff")
            if digest is not None:
                name = wanted[0].name
                # One name can be held with two texts, under two capability profiles.
                wanted = [held for held in wanted if held.digest == digest]
                if not wanted:
                    raise Conflict(
                        f"{server} changed {name!r} again after you looked at it", "look at the new diff first"
                    )
            for held in wanted:
                if approve:
                    self._approve(held, by)
                else:
                    writes = PinWrites()
                    writes.hold(msgspec.structs.replace(held, rejected_by=by))
                    writes.note(self._now(), "rejected", held, old=held.before, new=held.digest, by=by)
                    self._store.write(writes)
        self._again(server)
        return len(wanted)

    def _approve(self, held: HeldItem, by: str) -> None:
        writes = PinWrites()
        writes.pin(held.server, held.profile, held.kind, held.name, held.digest)
        writes.release(held)
        writes.note(self._now(), "approved", held, old=held.before, new=held.digest, by=by)
        self._store.write(writes)
        if held.reason == "renamed":
            # Who agrees to the new names agrees that the old ones are gone; else every addition would look renamed.
            writes = PinWrites()
            for pin in self._store.pins(held.server):
                if (pin.profile, pin.kind, pin.state) == (held.profile, held.kind, "missing"):
                    writes.set_state(pin, "retired")
                    writes.note(self._now(), "retired", pin, old=pin.digest, by=by)
            self._store.write(writes)

    def _again(self, server: str) -> None:
        """Look at the last listings of a server once more, after a decision."""
        for (of, profile), (_, _, mode, listing, _) in list(self._latest.items()):
            if of == server:
                del self._latest[of, profile]
                self.review(server, listing, mode=mode, profile=profile)
        self.on_change(server)


def _merged(old: ServerListing, new: ServerListing) -> ServerListing:
    """Lists that were asked for earlier stay known."""
    fields = {name: getattr(new, name) for name in ServerListing.__struct_fields__ if getattr(new, name) is not None}
    return msgspec.structs.replace(old, **fields)


def _everything(listing: ServerListing) -> dict[ItemKind, list[JsonObject]]:
    return {kind: objects for kind in KINDS if (objects := listing.of(kind)) is not None}
