"""Compare a listing of a server with its pins: what may be shown, what is pinned now, what waits for a person.

`RenameFinder` names the removed item that a new one resembles. People see it; it decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Literal

from msgspec import Struct

from dari.bridge.trust.items import KINDS, ItemKind, JsonObject, ListedItem, ServerListing, digest_of, item_of, name_of
from dari.bridge.trust.pin_store import HeldItem, HeldReason, Pin, PinStore, PinWrites
from dari.errors import InvalidInput

MIN_SIMILARITY = 0.6
MAX_CANDIDATES = 20
"""A new item is compared with so many that are gone."""
MAX_COMPARISONS = 60
"""In one review: a comparison costs up to 2.5 ms, and a server may replace two thousand tools at once."""
_WORDS = 150
_TEXT_BYTES = 16 * 1024


class RenameFinder:
    """The comparisons of one review."""

    def __init__(self, content_of: Callable[[str], bytes | None]) -> None:
        self._content_of = content_of
        self._left = MAX_COMPARISONS
        self._words: dict[str, list[str]] = {}

    def former_name(self, item: ListedItem, gone: Iterable[Pin]) -> str:
        """The name of the most similar one, or empty."""
        best, score = "", MIN_SIMILARITY
        if self._left <= 0:
            return best
        from difflib import SequenceMatcher

        new = _words(item.content)
        for pin in islice(gone, min(MAX_CANDIDATES, self._left)):
            self._left -= 1
            matcher = SequenceMatcher(None, self._of(pin.digest), new, autojunk=False)
            if matcher.real_quick_ratio() <= score or matcher.quick_ratio() <= score:
                continue
            if (ratio := matcher.ratio()) > score:
                best, score = pin.name, ratio
        return best

    def _of(self, digest: str) -> list[str]:
        words = self._words.get(digest)
        if words is None:
            words = self._words[digest] = _words(self._content_of(digest) or b"")
        return words


def _words(content: bytes) -> list[str]:
    return re.findall(r"\w+", content[:_TEXT_BYTES].decode(errors="replace"))[:_WORDS]


PinMode = Literal["tofu", "strict", "off"]


class PinReview(Struct, frozen=True, kw_only=True):
    """What became of a listing: `shown` may go to a model, in the server's order."""

    server: str
    profile: str
    shown: dict[ItemKind, list[JsonObject]]
    held: list[HeldItem]
    pinned: int = 0
    missing: list[tuple[ItemKind, str]] = []
    """Pinned earlier, not listed now."""
    unreadable: list[tuple[ItemKind, str]] = []
    """Left out: not plain JSON, or the second of one name."""
    digest: str = ""
    """One hash over all that is shown; empty when pins are off."""


class PinDiff:
    """One listing against the pins of its server as they are when it is made. Writes nothing: see `writes`."""

    def __init__(
        self, store: PinStore, server: str, profile: str, mode: PinMode, now: float, known: Mapping[int, ListedItem]
    ) -> None:
        self._known = known
        self._renames = RenameFinder(store.content)
        self._server, self._profile, self._mode, self._now = server, profile, mode, now
        self.writes = PinWrites()
        """What the store has to take over, complete when `run` or `steps` is."""
        self._seen = store.seen(server)
        self._held = {(held.kind, held.name): held for held in store.held(server) if held.profile == profile}
        self._pins: dict[tuple[ItemKind, str], Pin] = {}
        self._elsewhere: dict[tuple[ItemKind, str], list[Pin]] = {}
        for pin in store.pins(server):
            if pin.profile == profile:
                self._pins[pin.kind, pin.name] = pin
            else:
                self._elsewhere.setdefault((pin.kind, pin.name), []).append(pin)
        self._pinned = 0

        self._shown: dict[ItemKind, list[JsonObject]] = {}
        self._kept_back: list[HeldItem] = []
        self._missing: list[tuple[ItemKind, str]] = []
        self._unreadable: list[tuple[ItemKind, str]] = []
        self._open_items: list[ListedItem] = []

    def run(self, listing: ServerListing) -> PinReview:
        for _ in self.steps(listing):
            pass
        return self.result()

    def steps(self, listing: ServerListing) -> Iterator[None]:
        """The comparison, one item a step."""
        for kind in KINDS:
            objects = listing.of(kind)
            if objects is None:
                continue
            items: dict[str, tuple[ListedItem, JsonObject]] = {}
            for listed in objects:
                self._read(kind, listed, items)
                yield
            gone = self._gone(kind, {*items, *(name for of, name in self._unreadable if of == kind)})
            self._missing += [(kind, name) for name in gone]
            shown = self._shown[kind] = []
            for item, listed in items.values():
                kept_back = self._judged(item, gone)
                if kept_back is None:
                    self._open_items.append(item)
                    shown.append(listed)
                else:
                    self._kept_back.append(kept_back)
                yield
            self.writes.mark_seen(self._server, self._profile, kind)

    def result(self) -> PinReview:
        """After the last step."""
        return PinReview(
            server=self._server,
            profile=self._profile,
            shown=self._shown,
            held=self._kept_back,
            pinned=self._pinned,
            missing=self._missing,
            unreadable=self._unreadable,
            digest=digest_of(self._open_items),
        )

    def _read(self, kind: ItemKind, listed: JsonObject, items: dict[str, tuple[ListedItem, JsonObject]]) -> None:
        try:
            item = self._known.get(id(listed)) or item_of(kind, listed)
        except InvalidInput:
            self._unreadable.append((kind, name_of(kind, listed)))
            return
        # A second tool of one name would be shown beside the first, and never be what is called.
        if item.name in items:
            self._unreadable.append((kind, item.name))
        else:
            items[item.name] = (item, listed)

    def _gone(self, kind: ItemKind, listed: set[str]) -> list[str]:
        """Names that are pinned and not listed; the store remembers them for who approves."""
        gone: list[str] = []
        for (of, name), pin in self._pins.items():
            if of != kind:
                continue
            if name not in listed and pin.state != "retired":
                gone.append(name)
                if pin.state != "missing":
                    self.writes.set_state(pin, "missing")
            elif name in listed and pin.state != "listed":
                self.writes.set_state(pin, "listed")
        return gone

    def _judged(self, item: ListedItem, gone: list[str]) -> HeldItem | None:
        """None when the item may be shown."""
        pin = self._pins.get((item.kind, item.name))
        elsewhere = self._elsewhere.get((item.kind, item.name), [])
        if pin is not None and pin.digest == item.digest:
            self._returned(item)
            return None
        if pin is not None or elsewhere:
            if pin is None and any(other.digest == item.digest for other in elsewhere):
                self._pin(item)  # the same text under other capabilities
                return None
            return self._hold(item, "changed", before=(pin or elsewhere[0]).digest)
        if (item.kind, item.name) in self._held:  # asked before, and still not answered
            known = self._held[item.kind, item.name]
            return self._hold(item, known.reason, was=known.was)
        is_first_here = (self._profile, item.kind) not in self._seen
        is_first_of_all = not any(kind == item.kind for _, kind in self._seen)
        if is_first_of_all or (is_first_here and self._mode == "tofu"):
            self._pin(item)
            return None
        if gone:
            former = [self._pins[item.kind, name] for name in gone]
            return self._hold(item, "renamed", was=self._renames.former_name(item, former))
        if self._mode == "strict":
            return self._hold(item, "added")
        self._pin(item)
        return None

    def _pin(self, item: ListedItem) -> None:
        self.writes.keep(item)
        self.writes.pin(self._server, self._profile, item.kind, item.name, item.digest)
        subject = Pin(self._server, self._profile, item.kind, item.name, item.digest)
        self.writes.note(self._now, "pinned", subject, new=item.digest)
        self._pinned += 1

    def _hold(self, item: ListedItem, reason: HeldReason, before: str = "", was: str = "") -> HeldItem:
        known = self._held.get((item.kind, item.name))
        if known is not None and known.digest == item.digest:
            return known
        held = HeldItem(self._server, self._profile, item.kind, item.name, item.digest, reason, before, was, self._now)
        self.writes.keep(item)
        self.writes.hold(held)
        self.writes.note(self._now, "held", held, old=before, new=item.digest)
        return held

    def _returned(self, item: ListedItem) -> None:
        held = self._held.get((item.kind, item.name))
        if held is not None:
            self.writes.release(held)
            self.writes.note(self._now, "returned", held, old=held.digest, new=item.digest)
